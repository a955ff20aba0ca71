import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from '../shared/base64url.ts';

/**
 * A refresh token names its grant and a generation, under a MAC; nothing of it is stored but that number. It is bound to the
 * wallet and stays the same (FAPI 2.0 section 5.3.2.1). Earlier releases replaced it with each use: of such a grant the newest
 * is good and the one before it, for a wallet that never got the answer; one that is older still tells of a theft.
 *
 * Form: `<grant id>.<generation>.<HMAC-SHA-256>`, base64url.
 */
const TOKEN = /^([A-Za-z0-9_-]{16,64})\.(0|[1-9][0-9]{0,8})\.([A-Za-z0-9_-]{43})$/;

export type RefreshToken = { readonly grantId: string; readonly generation: number };

export function makeRefreshToken(key: KeyObject, tenantId: string, token: RefreshToken): string {
  return `${token.grantId}.${token.generation}.${mac(key, tenantId, token).toString('base64url')}`;
}

/** @returns undefined for anything that we did not make for this tenant. */
export function parseRefreshToken(keys: readonly KeyObject[], tenantId: string, text: string): RefreshToken | undefined {
  const [, grantId = '', generation, code] = TOKEN.exec(text) ?? [];
  if (code === undefined) return undefined;
  const token = { grantId, generation: Number(generation) };
  // Strictly: one token has one spelling.
  const received = decodeBase64url(code);
  if (received === undefined) return undefined;
  const isOurs = keys.some((key) => {
    const expected = mac(key, tenantId, token);
    return received.length === expected.length && timingSafeEqual(expected, received);
  });
  return isOurs ? token : undefined;
}

/**
 * Whether a refresh token was replaced by one that was used itself: somebody has a copy.
 * @param current generation that the grant has come to.
 */
export function isStolen(generation: number, current: number): boolean {
  return generation < current - 1 || generation > current;
}

function mac(key: KeyObject, tenantId: string, { grantId, generation }: RefreshToken): Buffer {
  return createHmac('sha256', key).update(`${tenantId} ${grantId} ${generation}`).digest();
}
