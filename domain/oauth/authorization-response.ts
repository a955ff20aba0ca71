/**
 * Where the wallet's browser goes (RFC 6749 section 4.1.2, RFC 9207 section 2). What the redirect address had in its
 * query stays.
 */
export function authorizationResponse(
  redirectUri: string,
  parameters: { readonly issuer: string; readonly state?: string | undefined } & (
    | { readonly code: string }
    | { readonly authSession: string }
    | { readonly error: string; readonly description?: string }
  ),
): string {
  const url = new URL(redirectUri);
  const append = (name: string, value: string | undefined) => {
    if (value !== undefined) url.searchParams.append(name, value);
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
  return url.href;
}
