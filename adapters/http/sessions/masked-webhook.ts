import type { WebhookConfigValue } from '../../../domain/sessions/session.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../domain/shared/json.ts';

const MASK = '***';

export type MaskedWebhook = {
  readonly url: string;
  readonly auth?: {
    readonly type: 'apiKey';
    readonly config: { readonly headerName: string; readonly value: string };
  };
};

/** A webhook as an administrator may see it: the key is never shown. */
export function maskWebhook({ url, auth }: WebhookConfigValue): MaskedWebhook {
  if (auth === undefined) return { url };
  return { url, auth: { type: 'apiKey', config: { headerName: auth.config.headerName, value: MASK } } };
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
  const config = isJsonObject(auth['config']) ? { ...auth['config'], value: MASK } : MASK;
  return { ...webhook, auth: { ...auth, config } };
}
