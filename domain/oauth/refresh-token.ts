import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from '../shared/base64url.ts';

/**
 * A refresh token consists of its grant id and a generation, protected by a MAC; only the generation is stored. It is bound to the wallet
 * and stays the same (FAPI 2.0 section 5.3.2.1). Earlier releases replaced it with each use. For such a grant the newest token is valid and
 * the previous one, for a wallet that did not receive the response; an older one indicates a theft.
 * Form: `<grant id>.<generation>.<HMAC-SHA-256>`, base64url.
 */
const TOKEN = /^([A-Za-z0-9_-]{16,64})\.(0|[1-9][0-9]{0,8})\.([A-Za-z0-9_-]{43})$/;

export type RefreshToken = { readonly grantId: string; readonly generation: number };

export function createRefreshToken(key: KeyObject, tenantId: string, token: RefreshToken): string {
  return `${token.grantId}.${token.generation}.${mac(key, tenantId, token).toString('base64url')}`;
}

/** @returns undefined for a text that was not created for this tenant. */
export function parseRefreshToken(keys: readonly KeyObject[], tenantId: string, text: string): RefreshToken | undefined {
  const [, grantId = '', generation, code] = TOKEN.exec(text) ?? [];
  if (code === undefined) return undefined;
  const token = { grantId, generation: Number(generation) };
  // Strict decoding: one token has one spelling.
  const receivedMac = decodeBase64url(code);
  if (receivedMac === undefined) return undefined;
  const isOurs = keys.some((key) => {
    const expected = mac(key, tenantId, token);
    return receivedMac.length === expected.length && timingSafeEqual(expected, receivedMac);
  });
  return isOurs ? token : undefined;
}

/**
 * True if a refresh token was used after its successor had been used: an attacker has a copy.
 * @param current generation of the grant.
 */
export function isReplayedGeneration(generation: number, current: number): boolean {
  return generation < current - 1 || generation > current;
}

function mac(key: KeyObject, tenantId: string, { grantId, generation }: RefreshToken): Buffer {
  return createHmac('sha256', key).update(`${tenantId} ${grantId} ${generation}`).digest();
}
