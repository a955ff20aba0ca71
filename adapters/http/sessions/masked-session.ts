import type { z } from 'zod';
import { isJsonObject, type Json, type JsonObject } from '../../../domain/shared/json.ts';
import type { SessionView } from './session.view.ts';

/** Replaces a personal value; neither its length nor its type is revealed. */
export const MASK = '•••';

type View = z.output<typeof SessionView>;

/** Codes of failures whose message is written by the service and not by a wallet or a backend. */
const SERVICE_MESSAGES: ReadonlySet<string> = new Set([
  'code_replayed',
  'refresh_token_replayed',
  'tx_code_attempts',
  'decryption_failed',
  'malformed',
  'presentation_refused',
  'response_code_missing',
  'response_mode',
  'webhook_failed',
  'cancelled',
  'internal_error',
]);
/** Properties of the request body that contain no personal data. All others are masked. */
const UNMASKED_REQUEST_PROPERTIES: ReadonlySet<string> = new Set([
  'response_type',
  'flow',
  'credentialConfigurationIds',
  'authorization_server',
  'requestId',
  'reference',
  'origin',
]);
/** Properties of transaction data for its type and its credentials (OpenID4VP 1.0 section 8.4). */
const UNMASKED_TRANSACTION_PROPERTIES: ReadonlySet<string> = new Set(['type', 'credential_ids', 'transaction_data_hashes_alg']);

/** Replaces every personal value of a session; names of claims stay. */
export function maskSession(view: View): View {
  const { credentials, failure, report, deliveries, attempts, offer, requestObject } = view;
  const masked: Record<string, unknown> = {
    ...view,
    redirectUri: view.redirectUri && originOf(view.redirectUri),
    notifyWebhook: view.notifyWebhook && withPlainAddress(view.notifyWebhook),
    parsedWebhook: view.parsedWebhook && withPlainAddress(view.parsedWebhook),
    credentialPayload: view.credentialPayload && maskRequest(view.credentialPayload as JsonObject),
    offer: offer && maskQueries(maskCode(offer as JsonObject)),
    requestObject: requestObject && maskRequestObject(requestObject),
    transaction_data: view.transaction_data?.map((data) => maskTransaction(data as Json)),
    auth_queries: view.auth_queries && maskLeaves(view.auth_queries as Json),
    externalSubject: view.externalSubject && MASK,
    credentials: credentials?.map(({ values, authentication, ...properties }) => ({
      ...properties,
      ...(values !== undefined && { values: maskLeaves(values as Json) }),
      ...(authentication !== undefined && { authentication: maskLeaves(authentication) }),
    })),
    notifications: view.notifications.map((notification) =>
      notification.eventDescription === undefined ? notification : { ...notification, eventDescription: MASK },
    ),
    failure: failure && (SERVICE_MESSAGES.has(failure.code) ? failure : { ...failure, message: MASK }),
    report,
    deliveries,
    attempts,
  };
  return Object.fromEntries(Object.entries(masked).filter(([, value]) => value !== undefined)) as View;
}

/** Names and the number of elements stay. */
function maskLeaves(value: Json): Json {
  if (Array.isArray(value)) return value.map(maskLeaves);
  if (!isJsonObject(value)) return MASK;
  return mapMembers(value, (_name, inner) => maskLeaves(inner));
}

/** The description of a transaction code is free text, and its length would help an attacker. */
function maskCode(offer: JsonObject): JsonObject {
  const { grants } = offer;
  if (!isJsonObject(grants)) return offer;
  const masked = mapMembers(grants, (_name, grant) =>
    isJsonObject(grant) && grant['tx_code'] !== undefined ? { ...grant, tx_code: maskLeaves(grant['tx_code']) } : grant,
  );
  return { ...offer, grants: masked };
}

function maskRequest(body: JsonObject): JsonObject {
  return mapMembers(body, (name, value) => {
    if (UNMASKED_REQUEST_PROPERTIES.has(name)) return value;
    if (name === 'credentialClaims' && isJsonObject(value)) return mapMembers(value, (_id, source) => maskSource(source));
    if (name === 'transaction_data' && Array.isArray(value)) return value.map(maskTransaction);
    if (name === 'redirectUri' && typeof value === 'string') return originOf(value);
    if (/webhook$/i.test(name) && isJsonObject(value)) return withPlainAddress(value);
    return maskLeaves(value);
  });
}

function maskSource(source: Json): Json {
  if (!isJsonObject(source)) return MASK;
  return mapMembers(source, (name, value) => {
    if (name === 'type') return value;
    return name === 'webhook' && isJsonObject(value) ? withPlainAddress(value) : maskLeaves(value);
  });
}

function maskTransaction(data: Json): Json {
  // Transaction data in a request object is encoded, so it cannot be masked by property.
  if (!isJsonObject(data)) return MASK;
  return mapMembers(data, (name, value) => (UNMASKED_TRANSACTION_PROPERTIES.has(name) ? value : maskLeaves(value)));
}

/** A query names claims by their paths, and may ask for values of one person (OpenID4VP 1.0 section 6.3). */
function maskQueries(value: Json): Json {
  if (Array.isArray(value)) return value.map(maskQueries);
  if (!isJsonObject(value)) return value;
  return mapMembers(value, (name, inner) => (name === 'values' && 'path' in value ? maskLeaves(inner) : maskQueries(inner)));
}

/** The masked object has no signature, because it would be invalid. */
function maskRequestObject(compact: string): string {
  const [header = '', payload = ''] = compact.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as JsonObject;
  const masked = mapMembers(claims, (name, value) => {
    if (name === 'transaction_data' && Array.isArray(value)) return value.map(maskTransaction);
    return name === 'dcql_query' ? maskQueries(value) : value;
  });
  return `${header}.${Buffer.from(JSON.stringify(masked)).toString('base64url')}.`;
}

function withPlainAddress<T extends { readonly url?: unknown }>(webhook: T): T {
  return typeof webhook.url === 'string' ? { ...webhook, url: originOf(webhook.url) } : webhook;
}

/** Keeps the origin of an address: paths may identify customers and orders. */
function originOf(address: string): string {
  const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(address)?.[0];
  return origin === undefined ? MASK : origin === address ? address : `${origin}/${MASK}`;
}

function mapMembers(object: JsonObject, change: (name: string, value: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(name, value)]));
}
