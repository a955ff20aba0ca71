import { escapedUri } from '../shared/uri.ts';

/** The redirect of the user agent after the response (OpenID4VP 1.0 section 8.2). A fragment is retained for the frontend. */
export function redirectAddress(template: string, sessionId: string): string {
  // An earlier release accepted addresses that some wallets cannot parse as a URI.
  return escapedUri(new URL(template.replaceAll('{sessionId}', encodeURIComponent(sessionId))).href);
}

/** The browser returns at once; an older code is useful to an attacker only. */
export const RESPONSE_CODE_SECONDS = 300;

/** OpenID4VP 1.0 section 13.3: proves that the browser comes from this response. */
export function withResponseCode(address: string, responseCode: string): string {
  const url = new URL(address);
  url.searchParams.set('response_code', responseCode);
  return url.href;
}
