import type { webhooks } from './api.d.ts';

/** `claims`, `presentation`, `notification` and `webStep`; docs/reference/webhooks.md describes them. */
export type WebhookName = keyof webhooks;

type Json<Content> = Content extends { content: { 'application/json': infer Value } } ? Value : never;

export type WebhookBody<N extends WebhookName = WebhookName> = {
  [K in N]: Json<webhooks[K]['post']['requestBody']>;
}[N];

/** The response that the service expects. */
export type WebhookAnswer<N extends WebhookName = WebhookName> = {
  [K in N]: Json<webhooks[K]['post']['responses']['2XX']>;
}[N];

/** The error for a call that must not be processed. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

export type Delivery<N extends WebhookName = WebhookName> = {
  /** A repeated id must get the same response again. */
  readonly id: string;
  readonly sentAt: Date;
  readonly body: WebhookBody<N>;
};

export type WebhookHeaders = { readonly [name: string]: string | readonly string[] | undefined } | { get(name: string): string | null };

export type VerifyOptions = {
  /** Tolerance for clock differences and transmission; 300 by default. */
  readonly toleranceSeconds?: number;
  readonly now?: Date;
};

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** The service signs with the current secret and three previous ones. */
const MAX_SIGNATURES = 8;

/**
 * Verifies that a webhook call was sent recently and unchanged by your tenant (Standard Webhooks).
 * @param rawBody the exact bytes of the body: parsing and serializing it changes the bytes.
 * @param secrets from `POST /webhook-secret/rotate`; several during a rotation.
 * @throws WebhookVerificationError; TypeError for an invalid secret, and for a parsed body.
 */
export async function verifyWebhook<N extends WebhookName = WebhookName>(
  headers: WebhookHeaders,
  rawBody: string | Uint8Array,
  secrets: string | readonly string[],
  { toleranceSeconds = 300, now = new Date() }: VerifyOptions = {},
): Promise<Delivery<N>> {
  // A server with a body parser passes an object here.
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array))
    throw new TypeError('pass the raw body, a string or bytes; a parsed body cannot be verified');
  const keys = await Promise.all([secrets].flat().map(keyOf));
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp is not a valid time');
  if (!(Math.abs(now.getTime() / 1000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookVerificationError('the call is too old, or a clock is wrong');
  }
  const body = typeof rawBody === 'string' ? new TextEncoder().encode(rawBody) : rawBody;
  const signedContent = concatenate(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  const signatures = signaturesOf(headerOf(headers, 'webhook-signature'));
  if (!(await isGenuine(keys, signatures, signedContent))) throw new WebhookVerificationError('no signature matches');
  return { id, sentAt: new Date(Number(timestamp) * 1000), body: parse(body) };
}

type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** `verify` compares in constant time. */
async function isGenuine(
  keys: readonly Key[],
  signatures: readonly Uint8Array<ArrayBuffer>[],
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  for (const key of keys) {
    for (const signature of signatures) {
      if (await crypto.subtle.verify('HMAC', key, signature, signed)) return true;
    }
  }
  return false;
}

/** Signatures of other versions are ignored. */
function signaturesOf(header: string): readonly Uint8Array<ArrayBuffer>[] {
  const texts = header.split(' ').flatMap((entry) => /^v1,(.+)$/.exec(entry)?.[1] ?? []);
  if (texts.length > MAX_SIGNATURES) throw new WebhookVerificationError('too many signatures');
  return texts.filter((text) => BASE64.test(text)).map(bytesOf);
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    typeof headers.get === 'function' ? headers.get(name) : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  if (typeof value === 'string' && value !== '') return value;
  throw new WebhookVerificationError(`the header ${name} is missing`);
}

async function keyOf(secret: string): Promise<Key> {
  if (!secret) throw new TypeError('The webhook secret is missing. Pass the value that POST /webhook-secret/rotate returned.');
  const text = String(secret ?? '').replace(/^whsec_/, '');
  const key = BASE64.test(text) ? bytesOf(text) : new Uint8Array();
  if (key.length < 24 || key.length > 64) {
    throw new TypeError('a secret must be whsec_ and 24 to 64 bytes in base64');
  }
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function concatenate(entry: Uint8Array, secondBytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(entry.length + secondBytes.length);
  bytes.set(entry);
  bytes.set(secondBytes, entry.length);
  return bytes;
}

function parse<Body>(body: Uint8Array): Body {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new WebhookVerificationError('the body is not JSON');
  }
}
