import { MOVES, OPEN_STATUSES } from '../sessions/session.ts';
import type { SessionChange } from '../sessions/session-change.ts';
import { Failure } from '../shared/failure.ts';
import type { PublicId, SessionId } from '../shared/ids.ts';
import type { JsonObject } from '../shared/json.ts';

/** Which of the tenant's authorization servers a grant belongs to; each has an issuer and endpoints of its own. */
export type AuthorizationServer = 'built-in' | 'chained';

/** Who may use a grant: the wallet product, its installation, and the key of its DPoP proofs. */
export type GrantHolder = {
  /** Absent for an anonymous wallet. */
  readonly clientId?: string;
  /** RFC 7638 thumbprint of the attested key of this installation. */
  readonly instance?: string;
  /** RFC 7638 thumbprint of the DPoP key. */
  readonly keyThumbprint?: string;
  /** Whether the wallet proved who it is; if not, its DPoP key is all that binds a refresh token. */
  readonly authenticated?: boolean;
};

/** Who redeemed a grant, and for how much of it; refresh tokens are bound to both. */
export type Redeemer = GrantHolder & {
  /** Whether token responses name credential identifiers. */
  readonly identifiers: boolean;
  /** Set when the wallet asked for less than was granted. */
  readonly configurationIds?: readonly string[];
  /** Seconds since 1970: the end of the refresh tokens; access tokens may live longer. */
  readonly refreshableUntil: number;
};

/** What the claims webhook learns of the user. */
export type Identity = { readonly iss: string; readonly sub: string; readonly token_claims: JsonObject };

/** What an authorization code was handed out for. */
export type GrantedAuthorization = {
  readonly holder: GrantHolder;
  /** Absent where the wallet proved its request otherwise: an interactive authorization without a web step. */
  readonly codeChallenge?: string;
  readonly redirectUri?: string;
  readonly scope?: string;
  /** Asked by `authorization_details`: the token response must name identifiers (OpenID4VCI 1.0 section 6.2). */
  readonly byDetails: boolean;
  /** Of the chained authorization server and of interactive authorizations. */
  readonly identity?: Identity;
  /** Whether the code went to the wallet itself, past any browser. */
  readonly interactive?: boolean;
  /** Marks of the interactive actions that were done. */
  readonly actionsDone?: readonly string[];
  /** What was presented before, per DCQL id, for the claims webhook. */
  readonly presented?: readonly JsonObject[];
  /** For the operator alone: what the authorization request said, and the code. */
  readonly queries?: JsonObject;
  readonly code?: string;
  /** When the user had done all that was asked, since 1970; of an earlier release there is none. */
  readonly authorizedAtMs?: number;
};

/** A right to access tokens. The code is found by its SHA-256; an authorization code is kept sealed beside it, to be shown. */
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
  /** End of the code; once redeemed, of the last token that the grant can bring. */
  readonly expiresAt: Date;
  readonly attempts: number;
  readonly consumedAt: Date | null;
  /** Null for a pre-authorized code. Sealed at rest. */
  readonly authorization: GrantedAuthorization | null;
  /** Who redeemed it; null before. */
  readonly holder: Redeemer | null;
  /** How many refresh tokens were replaced. */
  readonly generation: number;
  /** From then on none of its tokens counts. */
  readonly revokedAt: Date | null;
};

/** A grant as it begins. */
export type NewGrant = Omit<Grant, 'attempts' | 'consumedAt' | 'holder' | 'generation' | 'revokedAt'>;

/** Who redeems a grant, and until when the tokens that it brings may live. */
export type Redemption = { readonly holder: Redeemer; readonly until: Date };

/** What can become of a grant. */
export type GrantChange = { readonly id: string } & (
  | {
      readonly act: 'redeem';
      readonly redemption: Redemption;
      /** Fewer transaction codes than this were wrong; absent where none is needed. */
      readonly attemptsBelow?: number;
    }
  /** A transaction code was wrong. */
  | { readonly act: 'attempt'; readonly attemptsBelow: number }
  /** A refresh token of this generation is replaced, as earlier releases do. */
  | { readonly act: 'refresh'; readonly generation: number }
  /** From then on no token of the grant counts. */
  | { readonly act: 'revoke' }
);

/** The stage that a grant must be in for each act, and how time and earlier acts bear on it. */
export const GRANT_ACTS = {
  redeem: { consumed: false, unexpired: true, unrevoked: false },
  attempt: { consumed: false, unexpired: false, unrevoked: false },
  refresh: { consumed: true, unexpired: true, unrevoked: true },
  revoke: { consumed: undefined, unexpired: false, unrevoked: true },
} as const satisfies Record<
  GrantChange['act'],
  {
    /** Whether it was redeemed; undefined where that does not matter. */
    readonly consumed: boolean | undefined;
    readonly unexpired: boolean;
    readonly unrevoked: boolean;
  }
>;

/**
 * What the session of a grant must be for its redemption. An authorization code may be for one that has completed: one
 * offer serves more than one wallet.
 */
export function redeemable({ sessionId, kind }: Pick<Grant, 'sessionId' | 'kind'>): SessionChange {
  return {
    id: sessionId,
    running: OPEN_STATUSES,
    ...(kind === 'authorization_code' && { anytime: [MOVES.complete.to] }),
  };
}

/** Wrong transaction codes after which the pre-authorized code is spent (OpenID4VCI 1.0 section 13.6.3). */
export const MAX_TX_CODE_ATTEMPTS = 5;

/** Seconds that an authorization code lives (FAPI 2.0 section 5.3.2.1). */
export const CODE_LIFETIME_SECONDS = 60;

/**
 * Decides what a redemption does to a pre-authorized code. A wrong transaction code counts an attempt and does not burn
 * the offer until the last one; the attempt is taken before anybody learns that the code was wrong, so that many at once
 * get no more guesses than one by one.
 * @throws Failure `invalid_grant` for a code that is unknown, spent or expired, the same for each
 *   (OpenID4VCI 1.0 section 6.3); `invalid_request` when a transaction code is missing or was never asked for.
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
    throw spent();
  }
  if (grant.txCodeHash === null && txCodeHash !== null) throw new Failure('invalid_request', 'this offer needs no tx_code');
  if (grant.txCodeHash !== null && txCodeHash === null) throw new Failure('invalid_request', 'tx_code is missing');
  return { grant, act: grant.txCodeHash === txCodeHash ? 'redeem' : 'attempt' };
}

/** Seconds in which the wallet that redeemed a pre-authorized code gets its answer again. */
const ANSWERED_AGAIN_SECONDS = 60;

/** What a wallet asks for with a code: how its token shall name credentials, and which of them. */
export type Asked = { readonly identifiers: boolean; readonly configurationIds: readonly string[] | undefined };

/**
 * Whether who sends a pre-authorized code is the wallet that redeemed it a moment ago, by the key that its tokens are bound
 * to, and asks for the same: then its answer got lost. For anybody else the code is spent.
 */
export function isAnsweredAgain(
  grant: Grant | undefined,
  txCodeHash: string | null,
  caller: GrantHolder,
  asked: Asked,
  now: Date,
): grant is Grant & { readonly holder: Redeemer } {
  if (grant?.kind !== 'pre_authorized_code' || grant.consumedAt === null || grant.holder === null) return false;
  const { holder, consumedAt, generation, revokedAt } = grant;
  if (revokedAt !== null || grant.txCodeHash !== txCodeHash) return false;
  // A refresh token that was replaced was received.
  if (generation > 0 || consumedAt.getTime() + ANSWERED_AGAIN_SECONDS * 1000 <= now.getTime()) return false;
  const isSame = (['clientId', 'instance', 'keyThumbprint'] as const).every((name) => holder[name] === caller[name]);
  if (!isSame || caller.keyThumbprint === undefined) return false;
  const wanted = asked.configurationIds?.join(' ');
  return holder.identifiers === asked.identifiers && holder.configurationIds?.join(' ') === wanted;
}

/** What the session must be while an answer is repeated: a wallet that got a credential, or is promised one, had it. */
export function unused({ sessionId }: Pick<Grant, 'sessionId'>): SessionChange {
  return { id: sessionId, running: OPEN_STATUSES, issuedExactly: 0, deferredBelow: 1 };
}

/** For a pre-authorized code that brings nothing, whatever the reason. */
export function spent(): Failure {
  return new Failure('invalid_grant', 'the pre-authorized code is unknown, used or expired');
}
