import type { webhooks } from './api.d.ts';

/** `claims`, `presentation`, `notification` and `webStep`; docs/webhooks.md says when each is called. */
export type WebhookName = keyof webhooks;

type Json<Content> = Content extends { content: { 'application/json': infer Value } } ? Value : never;

/** What the service sends to a webhook. */
export type WebhookBody<N extends WebhookName = WebhookName> = {
  [K in N]: Json<webhooks[K]['post']['requestBody']>;
}[N];

/** What it takes for an answer. */
export type WebhookAnswer<N extends WebhookName = WebhookName> = {
  [K in N]: Json<webhooks[K]['post']['responses']['2XX']>;
}[N];

/** A call that nobody should act on. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

export type Delivery<N extends WebhookName = WebhookName> = {
  /** One that you have seen already is to be answered as it was then. */
  readonly id: string;
  readonly sentAt: Date;
  readonly body: WebhookBody<N>;
};

export type WebhookHeaders = { readonly [name: string]: string | readonly string[] | undefined } | { get(name: string): string | null };

export type VerifyOptions = {
  /** How far the clocks may be apart, and how long a call may take; 300 unless stated. */
  readonly toleranceSeconds?: number;
  readonly now?: Date;
};

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** The service signs with the present secret and three former ones. */
const MAX_SIGNATURES = 8;

/**
 * Whether a call comes from your tenant, as it was sent, and just now (Standard Webhooks).
 * @param rawBody the body as it came, byte for byte: one that was parsed and written again is another.
 * @param secrets what `POST /webhook-secret/rotate` told; several while they are being changed.
 * @throws WebhookVerificationError; TypeError for a secret that is none, and for a body that was parsed.
 */
export async function verifyWebhook<N extends WebhookName = WebhookName>(
  headers: WebhookHeaders,
  rawBody: string | Uint8Array,
  secrets: string | readonly string[],
  { toleranceSeconds = 300, now = new Date() }: VerifyOptions = {},
): Promise<Delivery<N>> {
  // A server that parses bodies by itself hands over an object here.
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array))
    throw new TypeError('give the body as it came, a string or bytes; one that was parsed cannot be verified');
  const keys = await Promise.all([secrets].flat().map(keyOf));
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp is no time');
  if (!(Math.abs(now.getTime() / 1000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookVerificationError('the call was made too long ago, or a clock is wrong');
  }
  const body = typeof rawBody === 'string' ? new TextEncoder().encode(rawBody) : rawBody;
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  const signatures = signaturesOf(headerOf(headers, 'webhook-signature'));
  if (!(await isGenuine(keys, signatures, signed))) throw new WebhookVerificationError('no signature fits');
  return { id, sentAt: new Date(Number(timestamp) * 1000), body: parse(body) };
}

type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** `verify` compares in a time that tells nothing. */
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

/** Those of other versions are for others. */
function signaturesOf(header: string): readonly Uint8Array<ArrayBuffer>[] {
  const texts = header.split(' ').flatMap((one) => /^v1,(.+)$/.exec(one)?.[1] ?? []);
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
  const text = String(secret ?? '').replace(/^whsec_/, '');
  const key = BASE64.test(text) ? bytesOf(text) : new Uint8Array();
  if (key.length < 24 || key.length > 64) {
    throw new TypeError('a secret is whsec_ and 24 to 64 bytes in base64');
  }
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}

function parse<Body>(body: Uint8Array): Body {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new WebhookVerificationError('the body is no JSON');
  }
}
