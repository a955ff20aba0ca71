import type { PublicId, SessionId, TenantId } from '../shared/ids.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import type { SessionFailure } from '../shared/session-failure.ts';
import type { VerificationRequest } from '../verification/verification-request.ts';
import type { WebhookConfig } from '../webhooks/webhook.ts';

export const SESSION_STATUSES = ['active', 'fetched', 'completed', 'expired', 'failed'] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];
export type SessionKind = 'issuance' | 'verification';

/** What can happen to a session. A wallet may fetch twice; nothing leaves a terminal status. */
export type SessionEvent = 'fetch' | 'complete' | 'expire' | 'fail';

export type SessionTransition = { readonly from: readonly SessionStatus[]; readonly to: SessionStatus };

export const MOVES = {
  fetch: { from: ['active'], to: 'fetched' },
  complete: { from: ['active', 'fetched'], to: 'completed' },
  expire: { from: ['active', 'fetched'], to: 'expired' },
  fail: { from: ['active', 'fetched'], to: 'failed' },
} as const satisfies Readonly<Record<SessionEvent, SessionTransition>>;

/** A session that has not ended; its time may be over all the same. */
export const OPEN_STATUSES: readonly SessionStatus[] = ['active', 'fetched'];

/** A session that hands out credentials; one that completed serves another wallet of the same offer. */
export const ISSUING_STATUSES: readonly SessionStatus[] = ['active', 'fetched', 'completed'];

/** A session whose credentials may be renewed by the wallet that has them. */
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
  /** What is left of one that its tenant removed, while a wallet may renew what it issued; nobody else gets to it. */
  readonly isHidden?: true;
  readonly status: SessionStatus;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly expiresAt: Date;
  /** The configurations that the session is about; restrictions of clients are checked against them. */
  readonly configurationIds: readonly string[];
  readonly useDcApi: boolean;
  /** What was asked for. Sealed at rest; null after anonymisation. */
  readonly request: SessionRequest | null;
  /** What came of it. Sealed at rest; null until there is something to say. */
  readonly outcome: SessionOutcome | null;
  /** Bit i stands for `configurationIds[i]`: that credential has been issued. */
  readonly issuedMask: number;
  /** Set when a wallet's response was taken in; nobody else can answer after that. */
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

/** One webhook call: the intent is stored before it is made, the outcome after it. */
export type Delivery = {
  readonly id: string;
  readonly webhook: 'claims' | 'presentation' | 'notification';
  readonly at: string;
  readonly result: 'pending' | 'delivered' | 'failed';
  readonly detail?: string;
  /** HTTP status of the backend, where it answered with one. */
  readonly status?: number;
  /** How long the call took; absent where none was made, or nobody knows how it went. */
  readonly durationMs?: number;
  /** What it tells, where the session has it nowhere else; never shown. */
  readonly told?: JsonObject;
};

/** Why a wallet that came to collect went away without. `reason` is our own sentence, without a claim or a token. */
export type RefusedAttempt = { readonly at: string; readonly code: string; readonly reason: string; readonly requestId?: string };

export type SessionOutcome = {
  /** Who an external authorization server says the user is. */
  readonly external?: { readonly issuer: string; readonly subject: string };
  readonly failure?: SessionFailure;
  readonly deliveries?: readonly Delivery[];
  readonly notifications?: readonly JsonObject[];
  /** Refused requests of wallets that came to collect; the first ones. */
  readonly attempts?: readonly RefusedAttempt[];
  /** Credentials that were revoked since the provider of their wallet revoked it. */
  readonly revokedWithWallet?: readonly JsonObject[];
  /** Verified credentials: per DCQL id the claims that were asked for. */
  readonly credentials?: readonly JsonObject[];
  /** Ordered checks of each presentation, for the operator. */
  readonly report?: readonly Json[];
  /**
   * A good result that waits for the response code (OpenID4VP 1.0 section 14.3): nobody sees it, and it is gone when the
   * session ends. `completed` gives it to `credentials` and `report`.
   */
  readonly awaiting?: Pick<SessionOutcome, 'credentials' | 'report'>;
  /** SHA-256 of the `response_code` that the browser brings back, base64url. */
  readonly responseCodeHash?: string;
  /** When the code was made and when it was brought back, ISO 8601. */
  readonly responseCodeAt?: string;
  readonly responseCodeUsedAt?: string;
  readonly redirectUri?: string;
};

/** Why a session failed whose response code did not come in time. */
export const RESPONSE_CODE_MISSING = {
  code: 'response_code_missing',
  message: 'the browser did not bring the response code back in time',
} as const;

type Waiting = Pick<SessionOutcome, 'responseCodeUsedAt'> & { readonly awaiting?: object };

/** Whether all that a session waits for is the response code. */
export function awaitsResponseCode(outcome: Waiting | null | undefined): boolean {
  return outcome?.awaiting !== undefined && outcome.responseCodeUsedAt === undefined;
}

/**
 * The status that the clock says, even before the job wrote it down: an open session past its end is expired, or has
 * failed where the wallet answered and no browser came.
 */
export function statusAt(session: Pick<Session, 'status' | 'expiresAt'> & { readonly outcome?: Waiting | null }, now: Date): SessionStatus {
  if (isTerminal(session.status) || session.expiresAt > now) return session.status;
  return awaitsResponseCode(session.outcome) ? 'failed' : 'expired';
}

/** What a session has used up of what it may issue. */
export type SessionUse = {
  /** Issuances of all configurations. */
  readonly issued: number;
  /** Bits of the configurations that it may issue no more, since their credentials were revoked. */
  readonly barred: number;
};

/**
 * Issuances of one configuration that a session records unless that says otherwise, and its deferred transactions; a wallet's
 * token serves several requests, but not without end.
 */
export const MAX_ISSUANCES = 100;
