import { hash, timingSafeEqual } from 'node:crypto';

const KEY_LENGTH = 22;

/**
 * Part of the URL of a request for a wallet on another device, base64url. It cannot be derived from the link for the same device: an
 * attacker with that link alone must not avoid the response code by constructing the other link.
 */
export function crossDeviceKey(crossDeviceState: string): string {
  return hash('sha256', `cross-device request ${crossDeviceState}`, 'base64url').slice(0, KEY_LENGTH);
}

export function isCrossDeviceKey(key: string, crossDeviceState: string | undefined): boolean {
  if (crossDeviceState === undefined) return false;
  const [actual, expected] = [Buffer.from(key), Buffer.from(crossDeviceKey(crossDeviceState))];
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
