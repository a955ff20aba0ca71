import type { ConsoleManifest } from './console-files.ts';

/**
 * Everything from this service, no script or style in the page itself, and nobody frames it.
 * @param provider issuer that people log in at, which the page asks for the token.
 */
export function consoleHeaders(provider: string | undefined): Readonly<Record<string, string>> {
  const called = provider === undefined ? "'self'" : `'self' ${new URL(provider).origin}`;
  return {
    'Content-Security-Policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
      `connect-src ${called}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
    'Referrer-Policy': 'no-referrer',
    'X-Frame-Options': 'DENY',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
  };
}

/** @param base path of the public address without a trailing slash, often empty. */
export function consolePage(base: string, { script, style }: ConsoleManifest): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Vidimus console</title>
<link rel="icon" href="${base}/console/icon.svg">
<link rel="stylesheet" href="${base}/console/${style}">
<script type="module" src="${base}/console/${script}"></script>
</head>
<body>
<div id="console" data-base="${base}"><p>The console is loading. It needs JavaScript.</p></div>
</body>
</html>
`;
}

/** For a checkout in which the build never ran. */
export const NOT_BUILT = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Vidimus console</title></head>
<body><main><h1>The console is not built</h1><p>Run <code>npm run build</code> and reload this page. <code>npm start</code> and
<code>npm run demo</code> do it by themselves.</p></main></body></html>
`;
