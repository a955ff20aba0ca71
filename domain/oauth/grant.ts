import { MOVES, OPEN_STATUSES } from '../sessions/session.ts';
import type { SessionChange } from '../sessions/session-change.ts';
import { Failure } from '../shared/failure.ts';
import type { PublicId, SessionId } from '../shared/ids.ts';
import type { JsonObject } from '../shared/json.ts';

/** The authorization servers of a tenant; each has its own issuer and endpoints. */
export type AuthorizationServer = 'built-in' | 'chained';

/** The party that may use a grant: wallet product, installation, and the key of its DPoP proofs. */
export type GrantHolder = {
  /** Absent for an anonymous wallet. */
  readonly clientId?: string;
  /** RFC 7638 thumbprint of the attested key of this installation. */
  readonly instance?: string;
  /** RFC 7638 thumbprint of the DPoP key. */
  readonly keyThumbprint?: string;
  /** True if the wallet authenticated; otherwise only its DPoP key binds a refresh token. */
  readonly authenticated?: boolean;
};

/** The holder who redeemed a grant, and the part that was requested; refresh tokens are bound to both. */
export type Redeemer = GrantHolder & {
  /** True if token responses contain credential identifiers. */
  readonly identifiers: boolean;
  /** Set when the wallet requested less than was granted. */
  readonly configurationIds?: readonly string[];
  /** End of the refresh tokens in seconds since 1970; access tokens may live longer. */
  readonly refreshableUntil: number;
};

/** Identity of the user for the claims webhook. */
export type Identity = { readonly iss: string; readonly sub: string; readonly token_claims: JsonObject };

/** The authorization behind an authorization code. */
export type GrantedAuthorization = {
  readonly holder: GrantHolder;
  /** Absent for an interactive authorization without a web step, in which the wallet proved its request differently. */
  readonly codeChallenge?: string;
  readonly redirectUri?: string;
  readonly scope?: string;
  /** True for `authorization_details`: the token response must contain identifiers (OpenID4VCI 1.0 section 6.2). */
  readonly byDetails: boolean;
  /** Set by the chained authorization server and by interactive authorizations. */
  readonly identity?: Identity;
  /** True if the code was returned to the wallet directly, without a browser. */
  readonly interactive?: boolean;
  /** Fingerprints of the completed interactive actions. */
  readonly actionsDone?: readonly string[];
  /** Presented credentials per DCQL id, for the claims webhook. */
  readonly presented?: readonly JsonObject[];
  /** Shown to the operator only: the parameters of the authorization request, and the code. */
  readonly queries?: JsonObject;
  readonly code?: string;
  /** Completion of the user's steps in milliseconds since 1970; absent in grants of earlier releases. */
  readonly authorizedAtMs?: number;
};

/** A grant authorizes access tokens. It is found by the SHA-256 of its code; an authorization code is also stored sealed, to be shown. */
export type Grant = {
  readonly id: string;
  readonly kind: 'pre_authorized_code' | 'authorization_code';
  readonly server: AuthorizationServer;
  readonly sessionId: SessionId;
  readonly publicId: PublicId;
  readonly codeHash: string;
  /** Keyed hash of the transaction code; null when none is needed. */
  readonly txCodeHash: string | null;
  readonly credentialConfigurationIds: readonly string[];
  /** End of the code; after redemption, end of the last token that the grant can issue. */
  readonly expiresAt: Date;
  readonly attempts: number;
  readonly consumedAt: Date | null;
  /** Null for a pre-authorized code. Sealed at rest. */
  readonly authorization: GrantedAuthorization | null;
  /** Null until the grant is redeemed. */
  readonly holder: Redeemer | null;
  readonly generation: number;
  /** Tokens of the grant are invalid from this time. */
  readonly revokedAt: Date | null;
};

/** A grant before its redemption. */
export type NewGrant = Omit<Grant, 'attempts' | 'consumedAt' | 'holder' | 'generation' | 'revokedAt'>;

/** The holder that redeems a grant, and the end of the tokens that it issues. */
export type Redemption = { readonly holder: Redeemer; readonly until: Date };

export type GrantChange = { readonly id: string } & (
  | {
      readonly act: 'redeem';
      readonly redemption: Redemption;
      /** Limit of wrong transaction codes; absent when no code is needed. */
      readonly attemptsBelow?: number;
    }
  /** Counts a wrong transaction code. */
  | { readonly act: 'attempt'; readonly attemptsBelow: number }
  /** Replaces a refresh token of this generation, as earlier releases did. */
  | { readonly act: 'refresh'; readonly generation: number }
  /** Invalidates all tokens of the grant. */
  | { readonly act: 'revoke' }
);

/** Conditions of each change on the state of the grant. */
export const GRANT_ACTS = {
  redeem: { consumed: false, unexpired: true, unrevoked: false },
  attempt: { consumed: false, unexpired: false, unrevoked: false },
  refresh: { consumed: true, unexpired: true, unrevoked: true },
  revoke: { consumed: undefined, unexpired: false, unrevoked: true },
} as const satisfies Record<
  GrantChange['act'],
  {
    /** True if the grant must be redeemed; undefined if both states are allowed. */
    readonly consumed: boolean | undefined;
    readonly unexpired: boolean;
    readonly unrevoked: boolean;
  }
>;

/**
 * Conditions on the session for the redemption of a grant. An authorization code may belong to a completed session, because one offer
 * serves several wallets.
 */
export function redeemableSession({ sessionId, kind }: Pick<Grant, 'sessionId' | 'kind'>): SessionChange {
  return { id: sessionId, running: OPEN_STATUSES, ...(kind === 'authorization_code' && { anytime: [MOVES.complete.to] }) };
}

/** Limit of wrong transaction codes after which the pre-authorized code is invalid (OpenID4VCI 1.0 section 13.6.3). */
export const MAX_TX_CODE_ATTEMPTS = 5;

/** Lifetime of an authorization code (FAPI 2.0 section 5.3.2.1). */
export const CODE_LIFETIME_SECONDS = 60;

/**
 * Decides the change for a redemption of a pre-authorized code. A wrong transaction code counts as an attempt, and the last attempt
 * invalidates the code. The attempt is committed before the error is returned, so that parallel requests get no more guesses than
 * sequential ones.
 * @throws Failure `invalid_grant` for an unknown, consumed or expired code, with the same error for each (OpenID4VCI 1.0 section 6.3);
 * `invalid_request` for a missing or unexpected transaction code.
 */
export function redeem(
  grant: Grant | undefined,
  txCodeHash: string | null,
  now: Date,
): { readonly grant: Grant; readonly act: 'redeem' | 'attempt' } {
  if (
    grant === undefined ||
    grant.kind !== 'pre_authorized_code' ||
    grant.consumedAt !== null ||
    grant.expiresAt <= now ||
    grant.attempts >= MAX_TX_CODE_ATTEMPTS
  ) {
    throw invalidCodeError();
  }
  if (grant.txCodeHash === null && txCodeHash !== null) throw new Failure('invalid_request', 'this offer has no tx_code');
  if (grant.txCodeHash !== null && txCodeHash === null) throw new Failure('invalid_request', 'tx_code is missing');
  return { grant, act: grant.txCodeHash === txCodeHash ? 'redeem' : 'attempt' };
}

/** After redeeming a pre-authorized code, the wallet may repeat the request for this time. */
const RETRY_WINDOW_SECONDS = 60;

/** The request of a wallet that redeems a code: token with or without identifiers, and the configurations. */
export type RequestedRights = { readonly identifiers: boolean; readonly configurationIds: readonly string[] | undefined };

/**
 * True if the wallet that redeemed a pre-authorized code repeats the same request because the response was lost. The wallet is identified
 * by the key of its tokens. For any other caller the code is consumed.
 */
export function isRedemptionRetry(
  grant: Grant | undefined,
  txCodeHash: string | null,
  caller: GrantHolder,
  requestedRights: RequestedRights,
  now: Date,
): grant is Grant & { readonly holder: Redeemer } {
  if (grant?.kind !== 'pre_authorized_code' || grant.consumedAt === null || grant.holder === null) return false;
  const { holder, consumedAt, generation, revokedAt } = grant;
  if (revokedAt !== null || grant.txCodeHash !== txCodeHash) return false;
  // A replaced refresh token proves that the response was received.
  if (generation > 0 || consumedAt.getTime() + RETRY_WINDOW_SECONDS * 1000 <= now.getTime()) return false;
  const isSame = (['clientId', 'instance', 'keyThumbprint'] as const).every((name) => holder[name] === caller[name]);
  if (!isSame || caller.keyThumbprint === undefined) return false;
  const requestedIds = requestedRights.configurationIds?.join(' ');
  return holder.identifiers === requestedRights.identifiers && holder.configurationIds?.join(' ') === requestedIds;
}

/** Conditions on the session for repeating a response: a wallet that got a credential or a deferred transaction had received it. */
export function unusedSession({ sessionId }: Pick<Grant, 'sessionId'>): SessionChange {
  return { id: sessionId, running: OPEN_STATUSES, issuedExactly: 0, deferredBelow: 1 };
}

export function invalidCodeError(): Failure {
  return new Failure('invalid_grant', 'the pre-authorized code is unknown, used or expired');
}
