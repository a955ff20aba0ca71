import { createHash } from 'node:crypto';
import type { JsonObject } from '../shared/json.ts';
import { isSameIssuer } from '../shared/web-address.ts';
import type { ServerMetadata } from './server-metadata.ts';

/** What goes to the upstream provider. All of it is made for this leg; nothing of the wallet's is passed on. */
export type UpstreamRequest = {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  readonly state: string;
  readonly nonce: string;
  /** 43 to 128 characters (RFC 7636 section 4.1); it is kept, only its hash travels. */
  readonly codeVerifier: string;
};

/** Where the browser goes to log in (OpenID Connect Core 1.0 section 3.1.2.1, RFC 7636 section 4.3). */
export function upstreamAuthorizationUrl(endpoint: string, request: UpstreamRequest): string {
  // RFC 6749 section 3.1: a query of the endpoint stays.
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

/** What the wallet learns of an error of the upstream provider; the rest is between us and the provider. */
export function errorForWallet(upstreamError: string): WalletError {
  if (upstreamError === 'access_denied' || upstreamError === 'temporarily_unavailable') return upstreamError;
  return 'server_error';
}

/**
 * RFC 9207 section 2.4: whether an authorization response is from the server that was asked.
 * @param iss the parameter of the response.
 */
export function isResponseFrom(metadata: ServerMetadata, iss: string | undefined): boolean {
  return iss === undefined ? !metadata.namesItselfInResponses : isSameIssuer(iss, metadata.issuer);
}

/**
 * All claims, unfiltered. What the ID token says is right, for it is signed for us; then what the userinfo endpoint says, which
 * is about the user; then the access token, which is meant for somebody else.
 */
export function mergeClaims(accessToken: JsonObject | undefined, userinfo: JsonObject | undefined, idToken: JsonObject): JsonObject {
  return { ...accessToken, ...userinfo, ...idToken };
}
