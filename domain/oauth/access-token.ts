import { defined } from '../shared/defined.ts';
import type { PublicId } from '../shared/ids.ts';
import { isJsonObject, isStringArray, type Json, type JsonObject } from '../shared/json.ts';
import type { WalletStatus } from '../status-lists/wallet-status.ts';
import { serverOf } from './servers.ts';

/** Media type of a wallet's access token (RFC 9068 section 2.1). */
export const ACCESS_TOKEN_TYPE = 'at+jwt';

/** OpenID4VCI 1.0 section 13.10: a token that is not bound to a key lives five minutes at most. */
export const BEARER_LIFETIME_SECONDS = 300;
export const BOUND_LIFETIME_SECONDS = 1800;

export type WalletTokenClaims = {
  /** Issuer of the token: the built-in or the chained authorization server. */
  readonly issuer: string;
  /** The credential issuer. */
  readonly audience: string;
  /** The user at the upstream provider; without a login the session's public id. */
  readonly subject: string;
  /** Identifies the session whose credentials the token authorizes. */
  readonly publicId: PublicId;
  /** Revoked when the code or a refresh token is replayed; absent for an external token. */
  readonly grantId?: string;
  readonly scope?: string;
  /** All claims of a token of an external authorization server. */
  readonly foreignClaims?: JsonObject;
  readonly configurationOfIdentifier?: ReadonlyMap<string, string>;
  /** Absent for an anonymous wallet. */
  readonly clientId?: string;
  readonly tokenId: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  readonly credentialConfigurationIds: readonly string[];
  /** True if the wallet sent `authorization_details`: it must then use identifiers. */
  readonly identifiers: boolean;
  /** Fingerprints of the interactive actions that the user completed for it. */
  readonly actionsDone?: readonly string[];
  /** RFC 7638 thumbprint of the DPoP key; absent for a bearer token. */
  readonly keyThumbprint?: string;
  /** Statuses of the attestation that the wallet presented, if credentials follow them. */
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
    // TS3 1.5 section 2.4.3: the token carries the wallet's statuses from the authorization server to the issuer
    ...(claims.walletStatuses === undefined ? {} : { wallet_statuses: claims.walletStatuses.map(toWire) }),
  };
}

function toWire({ uri, idx, anchor, provider, keptUntil }: WalletStatus): JsonObject {
  return { uri, idx, anchor, ...defined({ provider, exp: keptUntil }) };
}

/** @param value of a token that this service signed. */
function parseWalletStatuses(value: Json | undefined): readonly WalletStatus[] {
  const entries = Array.isArray(value) ? value.filter(isJsonObject) : [];
  return entries.flatMap(({ uri, idx, anchor, provider, exp }) =>
    typeof uri === 'string' && typeof idx === 'number' && typeof anchor === 'string'
      ? [{ uri, idx, anchor, ...(typeof provider === 'string' && { provider }), ...(typeof exp === 'number' && { keptUntil: exp }) }]
      : [],
  );
}

/** OpenID4VCI 1.0 section 6.2. There is one dataset per configuration, so its identifier is the configuration id. */
export function authorizationDetails(configurationIds: readonly string[]): readonly JsonObject[] {
  return configurationIds.map((id) => ({ type: 'openid_credential', credential_configuration_id: id, credential_identifiers: [id] }));
}

/**
 * @param issuer the credential issuer.
 * @returns undefined unless a server of this service issued the payload for this issuer and it has not expired.
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
  if (!isStringArray(ids)) return undefined;
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
    ...(isStringArray(actions_done) ? { actionsDone: actions_done } : {}),
    ...(typeof jkt === 'string' ? { keyThumbprint: jkt } : {}),
    ...(wallet_statuses === undefined ? {} : { walletStatuses: parseWalletStatuses(wallet_statuses) }),
  };
}
