import { z } from 'zod';
import {
  type IssuanceRequest,
  isDcApi,
  RESPONSE_CODE_MISSING,
  SESSION_STATUSES,
  type Session,
  statusAt,
  type VerificationRequest,
  type WebhookConfigValue,
} from '../../../domain/sessions/session.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../domain/shared/json.ts';
import { HIDDEN } from '../../../domain/shared/secrets.ts';
import { maskWebhook } from '../../../domain/webhooks/mask-webhook.ts';
import { TenantReference } from '../shapes.ts';
import { viewOf } from '../view-of.ts';

const AnyObject = z.record(z.string(), z.unknown());
const Webhook = z
  .object({
    url: z.string(),
    auth: z
      .object({ type: z.literal('apiKey'), config: z.object({ headerName: z.string(), value: z.string() }) })
      .optional(),
  })
  .meta({ id: 'MaskedWebhook', description: 'A webhook; its key is never shown' });

export const SessionView = z
  .object({
    id: z.string(),
    status: z.enum(SESSION_STATUSES),
    kind: z.enum(['issuance', 'verification']),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
    useDcApi: z.boolean(),
    tenantId: z.string(),
    tenant: TenantReference,
    configurationIds: z.array(z.string()),
    request_uri: z.string().optional(),
    offer: AnyObject.optional(),
    offerUrl: z.string().optional(),
    credentialPayload: AnyObject.optional().describe('The request that made the session'),
    notifyWebhook: Webhook.optional(),
    notifications: z.array(AnyObject),
    requestId: z.string().optional(),
    requestUrl: z.string().optional(),
    requestObject: z.string().optional().describe('Signed request object, compact; absent when unsigned'),
    credentials: z.array(AnyObject).optional().describe('Verified credentials'),
    vp_nonce: z.string().optional(),
    clientId: z.string().optional(),
    responseUri: z.string().optional(),
    redirectUri: z.string().nullable(),
    parsedWebhook: Webhook.optional(),
    transaction_data: z.array(AnyObject).optional(),
    failure: z.object({ code: z.string(), message: z.string() }).optional(),
    report: z.array(z.unknown()).optional().describe('The checks of each presentation, in their order'),
    deliveries: z.array(AnyObject).optional().describe('Webhook calls and what came of them'),
    externalIssuer: z.string().optional().describe('The external authorization server of the user'),
    externalSubject: z.string().optional().describe('`sub` of its access token'),
  })
  .meta({ id: 'Session', description: 'One offer or presentation request, from its creation to its end' });

type TenantName = { readonly id: string; readonly name: string };

export function toSessionView(session: Session, tenant: TenantName, now: Date) {
  const { outcome, request } = session;
  const status = statusAt(session, now);
  const ofRequest = request?.kind === 'verification' ? request.redirectUri : undefined;
  return viewOf(SessionView, {
    ...session,
    ...outcome,
    ...(status === 'failed' && session.status !== 'failed' && { failure: RESPONSE_CODE_MISSING }),
    status,
    updatedAt: status === session.status ? session.updatedAt : session.expiresAt,
    tenant: viewOf(TenantReference, tenant),
    ...(request?.kind === 'issuance' && issuanceFields(request)),
    ...(request?.kind === 'verification' && verificationFields(request, session)),
    notifications: outcome?.notifications ?? [],
    redirectUri: outcome?.redirectUri ?? ofRequest,
    externalIssuer: outcome?.external?.issuer,
    externalSubject: outcome?.external?.subject,
  });
}

function issuanceFields(request: IssuanceRequest) {
  return {
    offer: request.offer,
    offerUrl: request.offerUrl,
    credentialPayload: maskOfferRequest(request.offerRequest),
    notifyWebhook: request.notifyWebhook && maskWebhook(request.notifyWebhook),
    parsedWebhook: claimsWebhookOf(request),
  };
}

function claimsWebhookOf({ credentialClaims }: IssuanceRequest): WebhookConfigValue | undefined {
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
    vp_nonce: request.nonce,
    clientId: request.clientId,
    responseUri: isDcApi(request) ? undefined : request.responseUri,
    parsedWebhook: request.webhook && maskWebhook(request.webhook),
    transaction_data: request.transactionDataObjects,
  };
}

/** The body of an offer or presentation request with the keys of its webhooks masked. */
export function maskOfferRequest(body: JsonObject): JsonObject {
  const masked: Record<string, Json> = { ...body };
  for (const name of ['webhook', 'notifyWebhook']) {
    if (masked[name] !== undefined) masked[name] = maskJson(masked[name]);
  }
  const sources = masked['credentialClaims'];
  if (!isJsonObject(sources)) return masked;
  const entries = Object.entries(sources).map(([id, source]): [string, Json] =>
    isJsonObject(source) && source['webhook'] !== undefined
      ? [id, { ...source, webhook: maskJson(source['webhook']) }]
      : [id, source],
  );
  return { ...masked, credentialClaims: Object.fromEntries(entries) };
}

function maskJson(webhook: Json): Json {
  if (!isJsonObject(webhook) || !isJsonObject(webhook['auth'])) return webhook;
  const { auth } = webhook;
  const config = isJsonObject(auth['config']) ? { ...auth['config'], value: HIDDEN } : HIDDEN;
  return { ...webhook, auth: { ...auth, config } };
}
