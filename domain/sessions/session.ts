import type { PublicId, SessionId, TenantId } from '../shared/ids.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import type { SessionFailure } from '../shared/session-failure.ts';
import type { VerificationRequest } from '../verification/verification-request.ts';
import type { WebhookConfig } from '../webhooks/webhook.ts';

export const SESSION_STATUSES = ['active', 'fetched', 'completed', 'expired', 'failed'] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];
export type SessionKind = 'issuance' | 'verification';

/** Events of a session. A wallet may fetch twice; terminal statuses are final. */
export type SessionEvent = 'fetch' | 'complete' | 'expire' | 'fail';

export type SessionTransition = { readonly from: readonly SessionStatus[]; readonly to: SessionStatus };

export const MOVES = {
  fetch: { from: ['active'], to: 'fetched' },
  complete: { from: ['active', 'fetched'], to: 'completed' },
  expire: { from: ['active', 'fetched'], to: 'expired' },
  fail: { from: ['active', 'fetched'], to: 'failed' },
} as const satisfies Readonly<Record<SessionEvent, SessionTransition>>;

/** Statuses of a session that has not ended, although it may have expired. */
export const OPEN_STATUSES: readonly SessionStatus[] = ['active', 'fetched'];

/** Statuses in which credentials are issued; a completed session serves further wallets of the same offer. */
export const ISSUING_STATUSES: readonly SessionStatus[] = ['active', 'fetched', 'completed'];

/** Statuses in which the wallet may renew its credentials. */
export const RENEWING_STATUSES: readonly SessionStatus[] = [...ISSUING_STATUSES, 'expired'];

export function isTerminal(status: SessionStatus): boolean {
  return !OPEN_STATUSES.includes(status);
}

/** One offer or one presentation request, from its creation to its end. */
export type Session = {
  readonly tenantId: TenantId;
  readonly id: SessionId;
  readonly publicId: PublicId;
  readonly kind: SessionKind;
  /** True for the remainder of a deleted session while a wallet may renew its credentials; administrators cannot access it. */
  readonly isHidden?: true;
  readonly status: SessionStatus;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly expiresAt: Date;
  /** The configurations of the session; restrictions of clients are checked against them. */
  readonly configurationIds: readonly string[];
  readonly useDcApi: boolean;
  /** The request. Sealed at rest; null after anonymization. */
  readonly request: SessionRequest | null;
  /** The result. Sealed at rest; null until there is one. */
  readonly outcome: SessionOutcome | null;
  /** Bit i stands for `configurationIds[i]`: that credential has been issued. */
  readonly issuedMask: number;
  /** Set when a wallet's response was accepted; further responses are rejected. */
  readonly claimedAt: Date | null;
};

export type ClaimsSource =
  | { readonly type: 'inline'; readonly claims: JsonObject }
  | { readonly type: 'webhook'; readonly webhook: WebhookConfig };

export type IssuanceRequest = {
  readonly kind: 'issuance';
  /** The body of `POST /issuer/offer`, without the transaction code. */
  readonly offerRequest: JsonObject;
  /** The credential offer that the wallet fetches (OpenID4VCI 1.0 section 4.1.1). */
  readonly offer: JsonObject;
  readonly offerUrl: string;
  readonly credentialClaims: { readonly [configurationId: string]: ClaimsSource };
  readonly notifyWebhook?: WebhookConfig;
};

export type SessionRequest = IssuanceRequest | VerificationRequest;

/** One webhook call: stored as pending before the call, and with the result after it. */
export type Delivery = {
  readonly id: string;
  readonly webhook: 'claims' | 'presentation' | 'notification';
  readonly at: string;
  readonly result: 'pending' | 'delivered' | 'failed';
  readonly detail?: string;
  /** HTTP status of the backend's response, if there was one. */
  readonly status?: number;
  /** Duration of the call; absent if there was none, or its result is unknown. */
  readonly durationMs?: number;
  /** Content that the session stores nowhere else; never shown. */
  readonly told?: JsonObject;
};

/** A refused issuance request. `reason` is a sentence of this service, without claims or tokens. */
export type RefusedAttempt = { readonly at: string; readonly code: string; readonly reason: string; readonly requestId?: string };

export type SessionOutcome = {
  /** The user according to an external authorization server. */
  readonly external?: { readonly issuer: string; readonly subject: string };
  readonly failure?: SessionFailure;
  readonly deliveries?: readonly Delivery[];
  readonly notifications?: readonly JsonObject[];
  /** The first refused issuance requests. */
  readonly attempts?: readonly RefusedAttempt[];
  /** Credentials that were revoked because the provider revoked their wallet. */
  readonly revokedWithWallet?: readonly JsonObject[];
  /** Verified credentials: the requested claims per DCQL id. */
  readonly credentials?: readonly JsonObject[];
  /** Ordered checks of each presentation, for the operator. */
  readonly report?: readonly Json[];
  /**
   * A successful result that waits for the response code (OpenID4VP 1.0 section 14.3): it is not shown, and erased when the session ends.
   * `completed` moves it to `credentials` and `report`.
   */
  readonly awaiting?: Pick<SessionOutcome, 'credentials' | 'report'>;
  /** SHA-256 of the `response_code` that the browser must present, base64url. */
  readonly responseCodeHash?: string;
  /** Times at which the code was created and presented, ISO 8601. */
  readonly responseCodeAt?: string;
  readonly responseCodeUsedAt?: string;
  readonly redirectUri?: string;
};

/** Failure of a session whose response code was not presented in time. */
export const RESPONSE_CODE_MISSING = {
  code: 'response_code_missing',
  message: 'the browser did not return the response code in time',
} as const;

type AwaitingOutcome = Pick<SessionOutcome, 'responseCodeUsedAt'> & { readonly awaiting?: object };

/** True if a session only waits for the response code. */
export function awaitsResponseCode(outcome: AwaitingOutcome | null | undefined): boolean {
  return outcome?.awaiting !== undefined && outcome.responseCodeUsedAt === undefined;
}

/**
 * The status at a given time, independent of the maintenance job: an open session past its end has expired, or has failed if the wallet
 * answered and no browser returned.
 */
export function statusAt(
  session: Pick<Session, 'status' | 'expiresAt'> & { readonly outcome?: AwaitingOutcome | null },
  now: Date,
): SessionStatus {
  if (isTerminal(session.status) || session.expiresAt > now) return session.status;
  return awaitsResponseCode(session.outcome) ? 'failed' : 'expired';
}

/** Counters of a session's issuance limits. */
export type SessionUse = {
  /** Issuances of all configurations. */
  readonly issued: number;
  /** Bits of the configurations that are barred, because their credentials were revoked. */
  readonly barred: number;
};

/**
 * Default limit of issuances of one configuration per session, and limit of its deferred transactions: a wallet's token serves several
 * requests, but not unlimited ones.
 */
export const MAX_ISSUANCES = 100;
