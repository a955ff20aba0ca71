import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

const { resolve } = createRequire(import.meta.url);

const SCRIPT = 'text/javascript; charset=utf-8';

/** The script is a file, because the policy of the page allows no inline scripts. */
const START = `window.addEventListener('load', () => {
  const place = document.getElementById('swagger-ui');
  window.ui = SwaggerUIBundle({
    url: place.dataset.document,
    domNode: place,
    deepLinking: true,
    validatorUrl: null,
    persistAuthorization: false,
  });
});
`;

/** Files of the page: those of Swagger UI, by their path in its package, and the script. */
export const DOCUMENTATION_FILES: Readonly<
  Record<string, { readonly contentType: string; readonly from?: string; readonly text?: string }>
> = {
  'swagger-ui.css': { contentType: 'text/css; charset=utf-8', from: 'swagger-ui-dist/swagger-ui.css' },
  'swagger-ui-bundle.js': { contentType: SCRIPT, from: 'swagger-ui-dist/swagger-ui-bundle.js' },
  'favicon-32x32.png': { contentType: 'image/png', from: 'swagger-ui-dist/favicon-32x32.png' },
  'start.js': { contentType: SCRIPT, text: START },
};

const contents = new Map<string, Promise<Buffer>>();

/** @returns undefined for an unknown file name. Files are read once. */
export async function readDocumentationFile(
  name: string,
): Promise<{ readonly content: Buffer | string; readonly contentType: string } | undefined> {
  const file = Object.hasOwn(DOCUMENTATION_FILES, name) ? DOCUMENTATION_FILES[name] : undefined;
  if (file === undefined) return undefined;
  const { contentType, from, text } = file;
  if (from === undefined) return { content: text ?? '', contentType };
  const content = contents.get(name) ?? readFile(resolve(from));
  contents.set(name, content);
  content.catch(() => contents.delete(name));
  return { content: await content, contentType };
}

/** @param base path of the public address without a trailing slash, often empty. */
export function documentationPage(base: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Vidimus API</title>
    <link rel="icon" type="image/png" href="${base}/docs/favicon-32x32.png">
    <link rel="stylesheet" href="${base}/docs/swagger-ui.css">
  </head>
  <body>
    <div id="swagger-ui" data-document="${base}/openapi.json"></div>
    <script src="${base}/docs/swagger-ui-bundle.js"></script>
    <script src="${base}/docs/start.js"></script>
  </body>
</html>
`;
}
