/**
 * The redirect of the wallet's browser (RFC 6749 section 4.1.2, RFC 9207 section 2). The redirect address is used unchanged (RFC 6749
 * section 3.1.2): parsing and serializing would change its query.
 * @param redirectUri has no fragment; `parseAuthorizationRequest` rejects one.
 */
export function authorizationResponse(
  redirectUri: string,
  parameters: { readonly issuer: string; readonly state?: string | undefined } & (
    | { readonly code: string }
    | { readonly authSession: string }
    | { readonly error: string; readonly description?: string }
  ),
): string {
  const query = new URLSearchParams();
  const append = (name: string, value: string | undefined) => {
    if (value !== undefined) query.append(name, value);
  };
  if ('code' in parameters) append('code', parameters.code);
  // OpenID4VCI 1.1 section 6.2.1.2: the wallet continues at the interactive authorization endpoint
  else if ('authSession' in parameters) append('auth_session', parameters.authSession);
  else {
    append('error', parameters.error);
    append('error_description', parameters.description);
  }
  append('state', parameters.state);
  append('iss', parameters.issuer);
  return `${redirectUri}${separatorAfter(redirectUri)}${query}`;
}

function separatorAfter(address: string): string {
  if (!address.includes('?')) return '?';
  return /[?&]$/.test(address) ? '' : '&';
}

/**
 * The part of a redirect address that users recognize: its host, or its scheme if that selects the app. A host in another script is shown
 * in ASCII, which prevents look-alikes.
 */
export function redirectDestination(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return protocol === 'https:' || protocol === 'http:' ? host : protocol;
}
