import type { IssuanceRequest } from '../../../domain/sessions/session.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../domain/shared/json.ts';
import { HIDDEN } from '../../../domain/shared/secrets.ts';

/** Claims and webhooks are stored once, apart from the rest of the body. */
export function wholeOfferRequest({
  offerRequest,
  credentialClaims,
  notifyWebhook,
}: IssuanceRequest): JsonObject {
  const isStated = Object.keys(credentialClaims).length > 0;
  return {
    ...offerRequest,
    ...(isStated && { credentialClaims: credentialClaims as unknown as JsonObject }),
    ...(notifyWebhook !== undefined && { notifyWebhook: notifyWebhook as unknown as JsonObject }),
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
