/**
 * Tells whether a call of a backend comes from your tenant, as it was sent, and just now. Needs nothing but Node; copy it.
 * The signatures are those of the Standard Webhooks (https://www.standardwebhooks.com), so any library of theirs does it, too.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export class WebhookVerificationError extends Error {
  name = 'WebhookVerificationError';
}

/**
 * @param headers of the request, as `node:http` or `fetch` has them.
 * @param rawBody the body as it came, byte for byte: parse it afterwards.
 * @param secrets one, or several while they are being changed; a signature of any of them is enough.
 * @param options `toleranceSeconds`: how far the clocks may be apart, and how long a call may take.
 * @returns the id of the delivery: one that you have seen already is to be answered as it was then.
 * @throws WebhookVerificationError for a call that nobody should act on; TypeError for a secret that is none.
 */
export function verifyWebhook(headers, rawBody, secrets, { toleranceSeconds = 300, now = new Date() } = {}) {
  const keys = [secrets].flat().map(keyOf);
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) => headerOf(headers, `webhook-${name}`));
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp is not a valid time');
  if (!(Math.abs(now.getTime() / 1000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookVerificationError('the call is too old, or a clock is wrong');
  }
  const given = signatures.split(' ').map((signature) => Buffer.from(signature));
  const isGenuine = keys.some((key) => {
    const code = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(rawBody).digest('base64');
    const expected = Buffer.from(`v1,${code}`);
    return given.some((signature) => signature.length === expected.length && timingSafeEqual(signature, expected));
  });
  if (!isGenuine) throw new WebhookVerificationError('no signature matches');
  return id;
}

function headerOf(headers, name) {
  const value = typeof headers.get === 'function' ? headers.get(name) : headers[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new WebhookVerificationError(`the header ${name} is missing`);
}

function keyOf(secret) {
  const text = String(secret ?? '').replace(/^whsec_/, '');
  const key = Buffer.from(text, 'base64');
  if (BASE64.test(text) && key.length >= 24 && key.length <= 64) return key;
  throw new TypeError('a secret must be whsec_ and 24 to 64 bytes in base64');
}
