import { object, z } from 'zod';
import { NOTIFICATION_EVENTS } from '../../../domain/issuance/notification.ts';
import { type AuthorizationSummary, WALLET_AUTHENTICATIONS } from '../../../domain/oauth/authorization-summary.ts';
import {
  type IssuanceRequest,
  RESPONSE_CODE_MISSING,
  SESSION_STATUSES,
  type Session,
  type SessionOutcome,
  statusAt,
} from '../../../domain/sessions/session.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../domain/shared/json.ts';
import { HIDDEN } from '../../../domain/shared/secrets.ts';
import { listedFailure } from '../../../domain/shared/session-failure.ts';
import { isDcApi, type VerificationRequest } from '../../../domain/verification/verification-request.ts';
import { maskWebhook } from '../../../domain/webhooks/mask-webhook.ts';
import type { WebhookConfig } from '../../../domain/webhooks/webhook.ts';
import { viewOf } from '../output/view-of.ts';
import { type ReferredTenant, TenantReference, toTenantReference } from '../shapes.ts';
import { Presented } from './presented.view.ts';
import { AttemptView, CheckView, FailureView } from './session-reasons.view.ts';

const AnyObject = z.record(z.string(), z.unknown());
const Webhook = object({
  url: z.string(),
  auth: object({ type: z.literal('apiKey'), config: object({ headerName: z.string(), value: z.string() }) }).optional(),
}).meta({ id: 'MaskedWebhook', description: 'A webhook; its key is never shown' });

const NotificationView = object({
  id: z.string().describe('The `notification_id`, one for all credentials of one response'),
  event: z.enum(NOTIFICATION_EVENTS),
  credentialConfigurationId: z.string(),
  eventDescription: z.string().optional().describe('Text of the wallet'),
  at: z.iso.datetime(),
}).meta({ id: 'Notification', description: 'Notification of a wallet about its credentials' });

export const DeliveryView = object({
  id: z.string().describe('The `Idempotency-Key` of its calls'),
  webhook: z.enum(['claims', 'presentation', 'notification']),
  at: z.iso.datetime(),
  result: z.enum(['pending', 'delivered', 'failed']),
  detail: z.string().optional().describe('Reason of the failure'),
  status: z.number().int().optional().describe('HTTP status of the response, if there was one'),
  durationMs: z.number().int().optional().describe('Duration of the call'),
}).meta({ id: 'Delivery', description: 'One delivery to a webhook and its result' });

const SessionState = z.enum(SESSION_STATUSES).meta({ id: 'SessionState', description: 'State of a session' });

export const SessionStatusView = object({ id: z.string(), status: SessionState, updatedAt: z.iso.datetime() }).meta({
  id: 'SessionStatus',
  description: 'The data of one event of the stream',
});

const FallenView = object({
  id: z.string().describe('The `notification_id` with which they were issued'),
  credentialConfigurationId: z.string(),
  at: z.iso.datetime(),
});

export const SessionView = object({
  id: z.string(),
  status: SessionState,
  kind: z.enum(['issuance', 'verification']),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  useDcApi: z.boolean(),
  tenantId: z.string(),
  tenant: TenantReference,
  configurationIds: z.array(z.string()),
  authorizedAt: z.iso.datetime().optional().describe('Time at which the user authorized the wallet whose code was redeemed last'),
  tokenAt: z.iso.datetime().optional().describe('Time of the first token of the wallet'),
  walletAuthentication: z
    .enum(WALLET_AUTHENTICATIONS)
    .optional()
    .describe(
      'Client authentication of that wallet: by a wallet attestation, by a registered key, or none. All three ' +
        'are returned for a single session with an authorization server of this service, and are removed by anonymization',
    ),
  reference: z.string().optional().describe('Reference of the caller'),
  authorization_code: z
    .string()
    .optional()
    .describe('Code of the last wallet at an authorization server of this service; shown once it is consumed'),
  request_uri: z.string().optional(),
  auth_queries: AnyObject.optional().describe(
    'The parameters of its authorization request, from its code to the end of its last token. Both are returned for a single ' +
      'session, not in lists, and are removed by anonymization',
  ),
  offer: AnyObject.optional(),
  offerUrl: z.string().optional(),
  credentialPayload: AnyObject.optional().describe('The request that created the session'),
  notifyWebhook: Webhook.optional(),
  notifications: z.array(NotificationView),
  revokedWithWallet: z
    .array(FallenView)
    .optional()
    .describe('Credentials that were revoked because the wallet provider revoked the wallet or its key storage'),
  requestId: z.string().optional(),
  requestUrl: z.string().optional(),
  requestObject: z.string().optional().describe('Signed request object, compact; absent when unsigned'),
  isoMdocRequest: object({ deviceRequest: z.string(), encryptionInfo: z.string() })
    .optional()
    .describe(
      'Request of a page for an mdoc by the protocol of ISO/IEC TS 18013-7 Annex C: CBOR, base64url. It contains element names and no values',
    ),
  credentials: z.array(Presented).optional().describe('Verified claims'),
  vp_nonce: z.string().optional(),
  clientId: z.string().optional(),
  responseUri: z.string().optional(),
  redirectUri: z.string().nullable(),
  parsedWebhook: Webhook.optional(),
  transaction_data: z.array(AnyObject).optional(),
  failure: FailureView.optional(),
  attempts: z
    .array(AttemptView)
    .optional()
    .describe(
      'Rejected token and credential requests of wallets in this session, and responses to a presentation request that could not be read, decrypted or parsed and left the session open: the first 20. Token requests are included if their code or refresh token is valid',
    ),
  report: z.array(CheckView).optional().describe('The checks of each presentation, in order'),
  deliveries: z.array(DeliveryView).optional().describe('Webhook calls and their results'),
  externalIssuer: z.string().optional().describe('The external authorization server of the user'),
  externalSubject: z.string().optional().describe('`sub` of its access token'),
}).meta({ id: 'Session', description: 'One offer or presentation request, from its creation to its end' });

type SessionDetails = {
  readonly session: Session;
  readonly tenant: ReferredTenant;
  readonly now: Date;
  readonly authorization?: AuthorizationSummary | undefined;
};

/** Stored results have the form that the domain gave them. */
type StoredResults = Pick<
  z.output<typeof SessionView>,
  'notifications' | 'revokedWithWallet' | 'credentials' | 'report' | 'deliveries' | 'attempts' | 'redirectUri'
>;

/** @param details lists of sessions leave out the authorization. */
export function toSessionView({ session, tenant, now, authorization }: SessionDetails) {
  const { request } = session;
  const outcome = session.outcome as (Omit<SessionOutcome, keyof StoredResults> & Partial<StoredResults>) | null;
  const status = statusAt(session, now);
  const failureByTime = status === 'failed' && session.status !== 'failed' ? RESPONSE_CODE_MISSING : undefined;
  const requestedRedirectUri = request?.kind === 'verification' ? request.redirectUri : undefined;
  return viewOf(SessionView, {
    ...session,
    ...outcome,
    status,
    updatedAt: status === session.status ? session.updatedAt : session.expiresAt,
    tenant: toTenantReference(tenant),
    ...(request?.kind === 'issuance' && issuanceFields(request)),
    ...(request?.kind === 'verification' && verificationFields(request, session)),
    reference: request?.offerRequest['reference'] as string | undefined,
    deliveries: outcome?.deliveries?.map(toDeliveryView),
    notifications: outcome?.notifications ?? [],
    failure: outcome?.failure ? listedFailure(outcome.failure) : failureByTime,
    redirectUri: outcome?.redirectUri ?? requestedRedirectUri,
    externalIssuer: outcome?.external?.issuer,
    externalSubject: outcome?.external?.subject,
    authorizedAt: authorization?.authorizedAt,
    tokenAt: authorization?.tokenAt,
    walletAuthentication: authorization?.walletAuthentication,
    authorization_code: authorization?.code,
    auth_queries: authorization?.queries,
  });
}

export function toDeliveryView(delivery: z.output<typeof DeliveryView>) {
  return viewOf(DeliveryView, delivery);
}

function issuanceFields(request: IssuanceRequest) {
  return {
    offer: request.offer,
    offerUrl: request.offerUrl,
    credentialPayload: maskOfferRequest(wholeOfferRequest(request)),
    notifyWebhook: request.notifyWebhook && maskWebhook(request.notifyWebhook),
    parsedWebhook: claimsWebhookOf(request),
  };
}

function claimsWebhookOf({ credentialClaims }: IssuanceRequest): WebhookConfig | undefined {
  for (const source of Object.values(credentialClaims)) {
    if (source.type === 'webhook') return maskWebhook(source.webhook);
  }
  return undefined;
}

function verificationFields(request: VerificationRequest, session: Session) {
  return {
    request_uri: request.requestUrl,
    offer: { dcql_query: request.dcqlQuery },
    credentialPayload: maskOfferRequest(request.offerRequest),
    requestId: session.configurationIds[0],
    requestUrl: request.requestUrl,
    requestObject: request.requestObject,
    isoMdocRequest: isoRequestOf(request),
    vp_nonce: request.nonce,
    clientId: request.clientId,
    responseUri: isDcApi(request) ? undefined : request.responseUri,
    parsedWebhook: request.webhook && maskWebhook(request.webhook),
    transaction_data: request.transactionDataObjects,
  };
}

function isoRequestOf(request: VerificationRequest) {
  if (!isDcApi(request) || request.isoMdoc === undefined) return undefined;
  const { deviceRequest, encryptionInfo } = request.isoMdoc;
  return { deviceRequest, encryptionInfo };
}

/** Adds claims and webhooks, which are stored once and apart from the rest of the body. */
export function wholeOfferRequest({ offerRequest, credentialClaims, notifyWebhook }: IssuanceRequest): JsonObject {
  const isStated = Object.keys(credentialClaims).length > 0;
  return {
    ...offerRequest,
    ...(isStated && { credentialClaims: credentialClaims as unknown as JsonObject }),
    ...(notifyWebhook !== undefined && { notifyWebhook: notifyWebhook as unknown as JsonObject }),
  };
}

/** Body of an offer or presentation request with the keys of its webhooks masked. */
export function maskOfferRequest(body: JsonObject): JsonObject {
  const masked: Record<string, Json> = { ...body };
  for (const name of ['webhook', 'notifyWebhook']) {
    if (masked[name] !== undefined) masked[name] = maskJson(masked[name]);
  }
  const sources = masked['credentialClaims'];
  if (!isJsonObject(sources)) return masked;
  const entries = Object.entries(sources).map(([id, source]): [string, Json] =>
    isJsonObject(source) && source['webhook'] !== undefined ? [id, { ...source, webhook: maskJson(source['webhook']) }] : [id, source],
  );
  return { ...masked, credentialClaims: Object.fromEntries(entries) };
}

function maskJson(webhook: Json): Json {
  if (!isJsonObject(webhook) || !isJsonObject(webhook['auth'])) return webhook;
  const { auth } = webhook;
  const config = isJsonObject(auth['config']) ? { ...auth['config'], value: HIDDEN } : HIDDEN;
  return { ...webhook, auth: { ...auth, config } };
}
