import { hash, timingSafeEqual } from 'node:crypto';

/**
 * A secret name for something stored, as wallets and browsers carry it (`request_uri`, `auth_session`, an upstream `state`): the id of the
 * row and a secret of which the row keeps the SHA-256. The row is found by its key, and an old handle of it is told from the current one.
 *
 * Form: `<id>.<secret>`, both unpadded base64url.
 */
export function makeHandle(id: string, secret: string): string {
  return `${id}.${secret}`;
}

const HANDLE = /^([A-Za-z0-9_-]{16,64})\.([A-Za-z0-9_-]{20,100})$/;

export function parseHandle(text: string): { readonly id: string; readonly secret: string } | undefined {
  const [, id = '', secret] = HANDLE.exec(text) ?? [];
  return secret === undefined ? undefined : { id, secret };
}

export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** In constant time. @returns false when there is no such handle at present. */
export function isSecret(secret: string, hash: string | undefined): boolean {
  if (hash === undefined) return false;
  const [given, expected] = [Buffer.from(hashSecret(secret)), Buffer.from(hash)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
