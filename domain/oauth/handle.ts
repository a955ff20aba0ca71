import { hash, timingSafeEqual } from 'node:crypto';

/**
 * A handle is the secret name of a stored row for wallets and browsers (`request_uri`, `auth_session`, an upstream `state`): the id of the
 * row and a secret whose SHA-256 the row contains. The row is found by its key, and the hash distinguishes the current handle from earlier
 * ones.
 * Form: `<id>.<secret>`, both unpadded base64url.
 */
export function createHandle(id: string, secret: string): string {
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

/** Compares in constant time. @returns false without a current handle. */
export function isSecret(secret: string, hash: string | undefined): boolean {
  if (hash === undefined) return false;
  const [actual, expected] = [Buffer.from(hashSecret(secret)), Buffer.from(hash)];
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
