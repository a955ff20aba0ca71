import { createHmac, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from '../shared/base64url.ts';

/**
 * A challenge is an authenticated token of time and randomness. Issuing one writes nothing, so attackers cannot fill the database. A
 * consumed challenge is stored until it would have expired anyway.
 * Form: base64url(issue time in ms, 6 bytes | random, 10 bytes | HMAC-SHA-256 truncated to 16 bytes).
 */
const TIME_BYTES = 6;
const RANDOM_BYTES = 10;
const MAC_BYTES = 16;

/** Lifetime of a `c_nonce` (OpenID4VCI 1.0 section 13.8 leaves it to the issuer). */
export const NONCE_LIFETIME_SECONDS = 300;

/** @param purpose of the challenge, for example `c_nonce`; it does not verify for another purpose. */
export function createChallenge(key: KeyObject, tenantId: string, purpose: string, now: Date, random: Buffer): string {
  const body = Buffer.allocUnsafe(TIME_BYTES + RANDOM_BYTES);
  body.writeUIntBE(now.getTime(), 0, TIME_BYTES);
  random.copy(body, TIME_BYTES, 0, RANDOM_BYTES);
  return Buffer.concat([body, mac(key, tenantId, purpose, body)]).toString('base64url');
}

/**
 * @param lifetimeSeconds that of a nonce unless the purpose has another one.
 * @returns the value to consume and its end, or `undefined` for a challenge that was not created for this tenant and purpose, or that has
 * expired.
 */
export function parseChallenge(
  keys: readonly KeyObject[],
  tenantId: string,
  purpose: string,
  now: Date,
  challenge: string,
  lifetimeSeconds = NONCE_LIFETIME_SECONDS,
): { readonly hash: string; readonly expiresAt: Date } | undefined {
  const bytes = challenge.length > 100 ? undefined : decodeBase64url(challenge);
  if (bytes?.length !== TIME_BYTES + RANDOM_BYTES + MAC_BYTES) return undefined;
  const body = bytes.subarray(0, TIME_BYTES + RANDOM_BYTES);
  const receivedMac = bytes.subarray(TIME_BYTES + RANDOM_BYTES);
  if (!keys.some((key) => timingSafeEqual(mac(key, tenantId, purpose, body), receivedMac))) return undefined;
  const expiresAt = new Date(body.readUIntBE(0, TIME_BYTES) + lifetimeSeconds * 1000);
  if (expiresAt <= now) return undefined;
  return { hash: hash('sha256', challenge, 'base64url'), expiresAt };
}

function mac(key: KeyObject, tenantId: string, purpose: string, body: Buffer): Buffer {
  return createHmac('sha256', key).update(`${purpose} ${tenantId} `).update(body).digest().subarray(0, MAC_BYTES);
}
