import { createHash } from 'node:crypto';
import type { JsonObject } from '../shared/json.ts';
import { isSameIssuer } from '../shared/web-address.ts';
import type { ServerMetadata } from './server-metadata.ts';

/** The authorization request to the upstream provider. All values are created for it; nothing is passed on from the wallet. */
export type UpstreamRequest = {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  readonly state: string;
  readonly nonce: string;
  /** 43 to 128 characters (RFC 7636 section 4.1); only its hash is sent. */
  readonly codeVerifier: string;
};

/** The login URL for the browser (OpenID Connect Core 1.0 section 3.1.2.1, RFC 7636 section 4.3). */
export function upstreamAuthorizationUrl(endpoint: string, request: UpstreamRequest): string {
  // RFC 6749 section 3.1: an existing query of the endpoint is retained.
  const url = new URL(endpoint);
  const parameters = {
    response_type: 'code',
    client_id: request.clientId,
    redirect_uri: request.redirectUri,
    // OpenID Connect Core 1.0 section 3.1.2.1: without `openid` there is no ID token.
    scope: [...new Set(['openid', ...request.scopes])].join(' '),
    state: request.state,
    nonce: request.nonce,
    code_challenge: createHash('sha256').update(request.codeVerifier).digest('base64url'),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

export type WalletError = 'access_denied' | 'temporarily_unavailable' | 'server_error';

/** Maps an error of the upstream provider to one for the wallet; details are not disclosed. */
export function errorForWallet(upstreamError: string): WalletError {
  if (upstreamError === 'access_denied' || upstreamError === 'temporarily_unavailable') return upstreamError;
  return 'server_error';
}

/**
 * RFC 9207 section 2.4: true if an authorization response is from the expected server.
 * @param iss the parameter of the response.
 */
export function isResponseFrom(metadata: ServerMetadata, iss: string | undefined): boolean {
  return iss === undefined ? !metadata.namesItselfInResponses : isSameIssuer(iss, metadata.issuer);
}

/**
 * Merges all claims, unfiltered. The ID token takes precedence, because it is signed for us; then the userinfo response, which is about the
 * user; then the access token, whose audience is another service.
 */
export function mergeClaims(accessToken: JsonObject | undefined, userinfo: JsonObject | undefined, idToken: JsonObject): JsonObject {
  return { ...accessToken, ...userinfo, ...idToken };
}
