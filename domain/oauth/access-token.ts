import { defined } from '../shared/defined.ts';
import type { PublicId } from '../shared/ids.ts';
import { isJsonObject, isTexts, type Json, type JsonObject } from '../shared/json.ts';
import type { WalletStatus } from '../status-lists/wallet-status.ts';
import { serverOf } from './servers.ts';

/** Media type of a wallet's access token (RFC 9068 section 2.1). */
export const ACCESS_TOKEN_TYPE = 'at+jwt';

/** OpenID4VCI 1.0 section 13.10: a token that is not bound to a key lives five minutes at most. */
export const BEARER_LIFETIME_SECONDS = 300;
export const BOUND_LIFETIME_SECONDS = 1800;

export type WalletTokenClaims = {
  /** The authorization server: the built-in or the chained one. */
  readonly issuer: string;
  /** The credential issuer. */
  readonly audience: string;
  /** The user at the provider where it logged in; otherwise the session's public id. */
  readonly subject: string;
  /** Names the session that the token is a right to. */
  readonly publicId: PublicId;
  /** What is revoked when the code or a refresh token comes back; absent for a foreign token. */
  readonly grantId?: string;
  readonly scope?: string;
  /** Set for the token of a foreign authorization server: all that it says. */
  readonly foreignClaims?: JsonObject;
  /** The same, where it names credential identifiers: which configuration each stands for. */
  readonly configurationOfIdentifier?: ReadonlyMap<string, string>;
  /** Absent for an anonymous wallet. */
  readonly clientId?: string;
  readonly tokenId: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  readonly credentialConfigurationIds: readonly string[];
  /** Set when the wallet asked with `authorization_details`: it must then name identifiers. */
  readonly identifiers: boolean;
  /** Marks of the interactive actions that the user did on the way to it. */
  readonly actionsDone?: readonly string[];
  /** RFC 7638 thumbprint of the DPoP key; absent for a bearer token. */
  readonly keyThumbprint?: string;
  /** Of the attestation with which the wallet got it, where credentials are going to follow them. */
  readonly walletStatuses?: readonly WalletStatus[];
};

/** RFC 9068 section 2.2, RFC 9396 section 9.1, RFC 9449 section 6.1. */
export function accessTokenPayload(claims: WalletTokenClaims): JsonObject {
  return {
    iss: claims.issuer,
    aud: claims.audience,
    sub: claims.subject,
    jti: claims.tokenId,
    issuer_state: claims.publicId,
    ...(claims.grantId === undefined ? {} : { grant_id: claims.grantId }),
    ...(claims.scope === undefined ? {} : { scope: claims.scope }),
    iat: claims.issuedAtSeconds,
    exp: claims.expiresAtSeconds,
    ...(claims.clientId === undefined ? {} : { client_id: claims.clientId }),
    ...(claims.identifiers
      ? { authorization_details: authorizationDetails(claims.credentialConfigurationIds) }
      : { credential_configuration_ids: claims.credentialConfigurationIds }),
    ...(claims.actionsDone === undefined ? {} : { actions_done: claims.actionsDone }),
    ...(claims.keyThumbprint === undefined ? {} : { cnf: { jkt: claims.keyThumbprint } }),
    // TS3 1.5 section 2.4.3: what the authorization server learned of the wallet reaches the issuer in the token
    ...(claims.walletStatuses === undefined ? {} : { wallet_statuses: claims.walletStatuses.map(toWire) }),
  };
}

function toWire({ uri, idx, anchor, provider, keptUntil }: WalletStatus): JsonObject {
  return { uri, idx, anchor, ...defined({ provider, exp: keptUntil }) };
}

/** @param value of a token that this service signed. */
function parseStatuses(value: Json | undefined): readonly WalletStatus[] {
  const entries = Array.isArray(value) ? value.filter(isJsonObject) : [];
  return entries.flatMap(({ uri, idx, anchor, provider, exp }) =>
    typeof uri === 'string' && typeof idx === 'number' && typeof anchor === 'string'
      ? [{ uri, idx, anchor, ...(typeof provider === 'string' && { provider }), ...(typeof exp === 'number' && { keptUntil: exp }) }]
      : [],
  );
}

/** OpenID4VCI 1.0 section 6.2. One dataset per configuration, so the identifier is the configuration's own. */
export function authorizationDetails(configurationIds: readonly string[]): readonly JsonObject[] {
  return configurationIds.map((id) => ({ type: 'openid_credential', credential_configuration_id: id, credential_identifiers: [id] }));
}

/**
 * @param issuer the credential issuer.
 * @returns undefined unless the payload is one of a server of this service for this issuer and has not expired.
 */
export function parseAccessTokenPayload(payload: JsonObject, issuer: string, now: Date): WalletTokenClaims | undefined {
  const {
    iss,
    aud,
    sub,
    jti,
    iat,
    exp,
    client_id,
    issuer_state,
    grant_id,
    scope,
    credential_configuration_ids,
    authorization_details,
    actions_done,
    cnf,
    wallet_statuses,
  } = payload;
  if (typeof iss !== 'string' || serverOf(iss, issuer) === undefined || aud !== issuer) return undefined;
  if (typeof issuer_state !== 'string' || typeof grant_id !== 'string') return undefined;
  if (typeof sub !== 'string' || typeof jti !== 'string' || typeof iat !== 'number') return undefined;
  if (typeof exp !== 'number' || exp * 1000 <= now.getTime()) return undefined;
  const identifiers = Array.isArray(authorization_details);
  const ids = identifiers
    ? authorization_details.map((entry) => (isJsonObject(entry) ? entry['credential_configuration_id'] : undefined))
    : credential_configuration_ids;
  if (!isTexts(ids)) return undefined;
  const jkt = isJsonObject(cnf) ? cnf['jkt'] : undefined;
  if (cnf !== undefined && typeof jkt !== 'string') return undefined;
  return {
    issuer: iss,
    audience: issuer,
    subject: sub,
    publicId: issuer_state as PublicId,
    grantId: grant_id,
    tokenId: jti,
    issuedAtSeconds: iat,
    expiresAtSeconds: exp,
    credentialConfigurationIds: ids,
    identifiers,
    ...(typeof scope === 'string' ? { scope } : {}),
    ...(typeof client_id === 'string' ? { clientId: client_id } : {}),
    ...(isTexts(actions_done) ? { actionsDone: actions_done } : {}),
    ...(typeof jkt === 'string' ? { keyThumbprint: jkt } : {}),
    ...(wallet_statuses === undefined ? {} : { walletStatuses: parseStatuses(wallet_statuses) }),
  };
}
