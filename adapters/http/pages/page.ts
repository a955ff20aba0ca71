import { createHash } from 'node:crypto';
import type { Reply } from '../route.ts';

/** A page that users see in a browser: no script, nothing from elsewhere, readable by every assistive device. */
const STYLE = `
:root { color-scheme: light dark; }
body { font: 1.0625rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 34rem; padding: 2rem 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
ul { padding-left: 1.25rem; }
form { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 2rem; }
button { border: 2px solid #1d4ed8; border-radius: .5rem; cursor: pointer; font: inherit; min-height: 2.75rem; padding: .5rem 1.5rem; }
button.primary { background: #1d4ed8; color: #fff; }
button.secondary { background: transparent; color: inherit; }
button:focus-visible { outline: 3px solid #f59e0b; outline-offset: 2px; }
.warning { border-left: .25rem solid #b45309; margin-top: 1.5rem; padding-left: 1rem; }
#destination, #client { overflow-wrap: anywhere; }
.note { font-size: .875rem; opacity: .8; overflow-wrap: anywhere; }
`;

export const PAGE_TYPE = 'text/html; charset=utf-8';

/**
 * The form may lead on to the wallet, whose address can have any scheme, so no `form-action` stands here; the address
 * was checked when the request was pushed.
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': `default-src 'none'; frame-ancestors 'none'; base-uri 'none'; style-src 'sha256-${createHash(
    'sha256',
  )
    .update(STYLE)
    .digest('base64')}'`,
  'Referrer-Policy': 'no-referrer',
};

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** @param main HTML whose parts are escaped already. */
export function page(title: string, main: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`;
}

export function pageReply(text: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status: 200, text, contentType: PAGE_TYPE, headers: { ...PAGE_HEADERS, ...headers } };
}

/** What a user sees when there is no safe way back to the wallet. */
export function errorPage(title: string, message: string, requestId: string): string {
  return page(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p role="alert">${escapeHtml(message)}</p>
<p>Go back to your wallet and start again.</p>
<p class="note">Reference: ${escapeHtml(requestId)}</p>`,
  );
}
