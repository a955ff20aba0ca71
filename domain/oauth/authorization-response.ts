/**
 * Where the wallet's browser goes (RFC 6749 section 4.1.2, RFC 9207 section 2). The redirect address stays letter by
 * letter what the wallet wrote (RFC 6749 section 3.1.2): parsing and writing it again would change its query.
 * @param redirectUri has no fragment; `parseAuthorizationRequest` refuses one.
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
  // OpenID4VCI 1.1 section 6.2.1.2: the wallet goes on at the interactive authorization endpoint
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
 * What users can know a redirect address by: its host, or its scheme where that alone decides which app opens. A host
 * in another script is told in ASCII, in which it looks like no other one.
 */
export function destinationOf(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return protocol === 'https:' || protocol === 'http:' ? host : protocol;
}
