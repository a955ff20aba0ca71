import { hash, timingSafeEqual } from 'node:crypto';

const KEY_LENGTH = 22;

/**
 * Part of the address of a request for a wallet on another device, base64url. It cannot be derived from the link for the
 * same device: the holder of that one alone must not escape the response code by making the other of it.
 */
export function crossDeviceKey(crossDeviceState: string): string {
  return hash('sha256', `cross-device request ${crossDeviceState}`, 'base64url').slice(0, KEY_LENGTH);
}

export function isCrossDeviceKey(key: string, crossDeviceState: string | undefined): boolean {
  if (crossDeviceState === undefined) return false;
  const [given, expected] = [Buffer.from(key), Buffer.from(crossDeviceKey(crossDeviceState))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
