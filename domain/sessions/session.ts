import type { ConfirmingElement } from '../formats/mdoc/transaction-data.ts';
import type { PublicId, SessionId, TenantId } from '../shared/ids.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import type { ScaSchemas } from '../verification/sca/payload.ts';
import type { VerificationPolicy } from '../verification/verification-policy.ts';
import type { WebhookConfig } from '../webhooks/webhook.ts';
import type { SessionFailure } from './failure-code.ts';

export const SESSION_STATUSES = ['active', 'fetched', 'completed', 'expired', 'failed'] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];
export type SessionKind = 'issuance' | 'verification';

/** What can happen to a session. A wallet may fetch twice; nothing leaves a terminal status. */
export type SessionEvent = 'fetch' | 'complete' | 'expire' | 'fail';

export type SessionTransition = {
  readonly from: readonly SessionStatus[];
  readonly to: SessionStatus;
};

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

/** A webhook as a session keeps it. */
export type WebhookConfigValue = WebhookConfig;

export type ClaimsSource =
  | { readonly type: 'inline'; readonly claims: JsonObject }
  | { readonly type: 'webhook'; readonly webhook: WebhookConfigValue };

export type IssuanceRequest = {
  readonly kind: 'issuance';
  /** The body of `POST /issuer/offer`, without the transaction code. */
  readonly offerRequest: JsonObject;
  /** The credential offer that the wallet fetches (OpenID4VCI 1.0 section 4.1.1). */
  readonly offer: JsonObject;
  readonly offerUrl: string;
  readonly credentialClaims: { readonly [configurationId: string]: ClaimsSource };
  readonly notifyWebhook?: WebhookConfigValue;
};

type AskedPresentation = {
  readonly kind: 'verification';
  readonly offerRequest: JsonObject;
  readonly dcqlQuery: JsonObject;
  readonly nonce: string;
  readonly requestUrl: string;
  /** Signed request object, compact; served byte for byte however often it is fetched. Absent when unsigned. */
  readonly requestObject?: string;
  /** Who signed it, when `clientId` does not say: the `x509_hash` identifier of the certificate. */
  readonly signedAs?: string;
  /** Ephemeral key of this request; absent when the response comes in the clear. */
  readonly encryption?: { readonly publicJwk: JsonObject; readonly d: string };
  /** What the presentation is verified by. Absent in sessions of an earlier release: the configuration decides there. */
  readonly policy?: VerificationPolicy;
  readonly webhook?: WebhookConfigValue;
  readonly redirectUri?: string;
  /**
   * The result is kept until the browser brings the response code. Never through the Digital Credentials API, nor with
   * `crossDeviceState`.
   */
  readonly awaitsResponseCode?: true;
  /** The exact strings sent, since hashes cover their characters (OpenID4VP 1.0 section 8.4). */
  readonly transactionData?: readonly string[];
  readonly transactionDataObjects?: readonly JsonObject[];
  /** Per type the element in which a device confirms it. */
  readonly transactionDataElements?: { readonly [type: string]: ConfirmingElement };
  /** Per type the schema of TS12 that its payload has. */
  readonly transactionDataSchemas?: ScaSchemas;
};

/** A wallet posts its answer to an address of this service (OpenID4VP 1.0 section 8.2). */
export type PostedVerification = AskedPresentation & {
  readonly responseMode: 'direct_post' | 'direct_post.jwt';
  readonly clientId: string;
  readonly responseUri: string;
  readonly state: string;
  /**
   * The `state` of the same request for a wallet on another device than the browser. A response with it is not redirected
   * to `redirectUri`. Absent where no redirect can follow, and with `requireResponseCode: true`.
   */
  readonly crossDeviceState?: string;
  /** The request itself, when it is unsigned. */
  readonly parameters?: JsonObject;
};

/** The request of ISO/IEC TS 18013-7 Annex C, and what its answer is held against. */
export type IsoMdocAsked = {
  /** CBOR as base64url, both. */
  readonly deviceRequest: string;
  readonly encryptionInfo: string;
  /** The one page that it was made for. */
  readonly origin: string;
  /** Which credential query a document answers, by its type. */
  readonly queryIds: { readonly [docType: string]: string };
  readonly encryption: { readonly publicJwk: JsonObject; readonly d: string };
};

/** A page hands the answer over that its browser got from a wallet (OpenID4VP 1.0 appendix A). */
export type DcApiVerification = AskedPresentation & {
  readonly responseMode: 'dc_api' | 'dc_api.jwt';
  /** Whose pages may ask; a presentation is made for one of them. */
  readonly origins: readonly string[];
  /** Absent in an unsigned request, and in one that several sign. */
  readonly clientId?: string;
  /** The request itself, when it is unsigned. */
  readonly parameters?: JsonObject;
  /** The request in the JSON form of a JWS, when several sign it, and the `x509_hash` identifiers of all of them. */
  readonly multisigned?: JsonObject;
  readonly clientIds?: readonly string[];
  /** Absent unless the protocol of ISO is offered. */
  readonly isoMdoc?: IsoMdocAsked;
};

export type VerificationRequest = PostedVerification | DcApiVerification;

export function isDcApi(request: VerificationRequest): request is DcApiVerification {
  return 'origins' in request;
}

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
export type RefusedAttempt = {
  readonly at: string;
  readonly code: string;
  readonly reason: string;
  readonly requestId?: string;
};

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
export function statusAt(
  session: Pick<Session, 'status' | 'expiresAt'> & { readonly outcome?: Waiting | null },
  now: Date,
): SessionStatus {
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
