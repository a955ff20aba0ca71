import { bytesOf, textOf } from './bytes.ts';

export const PRIVATE_KEY =
  'It was not sent anywhere, and nothing of it is shown. Clear it, close what you copied it from, and replace the key if others could read it.';
const SEQUENCE = 0x30;
const INTEGER = 0x02;
/** Keys in one set, and levels that are looked through. */
const MAX_KEYS = 1_000;
const MAX_DEPTH = 8;

export function holdsPrivateKey(text: string): boolean {
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY/.test(text)) return true;
  if (/^[[{]/.test(text)) return hasPrivate(parsed(text), MAX_DEPTH);
  const [, encoded] = /^did:jwk:([\w-]+)/.exec(text) ?? [];
  const bytes = bytesOf(encoded ?? text);
  if (bytes === undefined) return false;
  if (encoded === undefined && bytes[0] === SEQUENCE) return isVersioned(bytes);
  return bytes[0] === 0x7b && hasPrivate(parsed(decoded(bytes)), MAX_DEPTH);
}

function hasPrivate(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null || depth === 0) return false;
  if (Array.isArray(value)) return value.slice(0, MAX_KEYS).some((inner) => hasPrivate(inner, depth - 1));
  const members = value as Readonly<Record<string, unknown>>;
  const has = (name: string) => typeof members[name] === 'string';
  if (has('kty') && (has('d') || (members['kty'] === 'oct' && has('k')))) return true;
  return Object.values(members)
    .slice(0, MAX_KEYS)
    .some((inner) => hasPrivate(inner, depth - 1));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decoded(bytes: Uint8Array): string {
  try {
    return textOf(bytes);
  } catch {
    return '';
  }
}

/** PKCS #1, PKCS #8 and SEC 1 begin with the number of their version, which is one byte; a public key begins with a longer one. */
function isVersioned(der: Uint8Array): boolean {
  const length = der[1] ?? 0;
  const inside = der.subarray(length > 0x80 ? 2 + (length & 0x7f) : 2);
  return inside[0] === INTEGER && inside[1] === 1;
}
