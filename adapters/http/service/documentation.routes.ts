import { z } from 'zod';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { type Reply, type Route, route } from '../route.ts';
import { DOCUMENTATION_FILES, documentationPage, readDocumentationFile } from './documentation-page.ts';

/** Allows resources of this service only; the style sheet contains its images as data. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const CACHED = { 'Cache-Control': 'public, max-age=3600' } as const;
const common = { tag: 'Service', surface: 'document', access: 'public', method: 'get' } as const;

/**
 * API description for programs and for persons.
 * @param document the OpenAPI document; built at the first request, when all routes are known.
 */
export function documentationRoutes(document: () => Promise<object>, { publicUrl }: Pick<ServiceSettings, 'publicUrl'>): readonly Route[] {
  const base = new URL(publicUrl).pathname.replace(/\/$/, '');
  let text: Buffer | undefined;
  return [
    route({
      ...common,
      path: '/openapi.json',
      operationId: 'getApiDocument',
      summary: 'This description (OpenAPI 3.1)',
      responses: { 200: z.record(z.string(), z.unknown()) },
      async handle() {
        text ??= Buffer.from(JSON.stringify(await document()));
        return { status: 200, text, contentType: 'application/json', headers: CACHED };
      },
    }),
    route({
      ...common,
      path: '/docs',
      operationId: 'getApiPage',
      summary: 'This description as a page',
      responses: { 200: { description: 'An HTML page', contentType: 'text/html' } },
      handle: () => ({
        status: 200,
        text: documentationPage(base),
        contentType: 'text/html; charset=utf-8',
        headers: { ...CACHED, 'Content-Security-Policy': CONTENT_SECURITY_POLICY },
      }),
    }),
    route({
      ...common,
      path: '/docs/:file',
      operationId: 'getApiPageFile',
      exampleParameters: { file: 'swagger-ui.css' },
      summary: 'A file of the page',
      params: z.object({ file: z.string().max(64) }),
      responses: { 200: `One of: ${Object.keys(DOCUMENTATION_FILES).join(', ')}` },
      handle: ({ params: { file } }): Promise<Reply> => serveFile(file),
    }),
  ];
}

async function serveFile(name: string): Promise<Reply> {
  const file = await readDocumentationFile(name);
  if (file === undefined) throw new Failure('not_found', 'unknown address');
  return { status: 200, text: file.content, contentType: file.contentType, headers: CACHED };
}
