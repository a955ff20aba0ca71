import { escapedUri } from '../shared/uri.ts';

/** Where the user agent goes after the response (OpenID4VP 1.0 section 8.2). The fragment, if any, stays the frontend's own. */
export function returnAddress(template: string, sessionId: string): string {
  // An earlier release took what some wallets fail to read as a URI.
  return escapedUri(new URL(template.replaceAll('{sessionId}', encodeURIComponent(sessionId))).href);
}

/** The browser comes back at once; a code that lies about longer is of use to somebody else only. */
export const RESPONSE_CODE_SECONDS = 300;

/** OpenID4VP 1.0 section 13.3: proves that the browser comes from this very response. */
export function withResponseCode(address: string, responseCode: string): string {
  const url = new URL(address);
  url.searchParams.set('response_code', responseCode);
  return url.href;
}
