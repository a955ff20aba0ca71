import type { Identity } from '../../domain/oauth/grant.ts';
import { mergeClaims } from '../../domain/oauth/upstream.ts';
import type { AuthorizationServers, CodeExchange } from '../ports/authorization-servers.ts';

/**
 * Turns the code of an upstream provider into who logged in: exchange, ID token, then the claims of both tokens.
 * The tokens themselves end here.
 * @param login `issuer` is the configured one; `nonce` went into the authorization request.
 * @throws AuthorizationServerError, ForeignTokenError
 */
export async function completeUpstreamLogin(
  authorizationServers: AuthorizationServers,
  login: CodeExchange & { readonly issuer: string; readonly nonce: string; readonly now: Date },
): Promise<Identity> {
  const { issuer, clientId, nonce, now } = login;
  const { idToken, accessToken } = await authorizationServers.exchangeCode(issuer, login);
  const claims = await authorizationServers.verifyIdToken(issuer, idToken, {
    clientId,
    nonce,
    accessToken,
    now,
  });
  const others =
    accessToken === undefined
      ? undefined
      : await authorizationServers.readOwnAccessToken(issuer, accessToken, now);
  return { iss: issuer, sub: String(claims['sub']), token_claims: mergeClaims(others, claims) };
}
