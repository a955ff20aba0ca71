import { createPublicKey } from 'node:crypto';
import type { Random } from '../../../application/ports/random.ts';
import type { SigningKey } from '../../../domain/keys/signing-key.ts';
import { decodeBase64url } from '../../../domain/shared/base64url.ts';
import { isJsonObject, type JsonObject } from '../../../domain/shared/json.ts';
import {
  algorithmOf,
  CURVES,
  type PublicJwk,
  parsePublicJwk,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
} from '../../../domain/shared/jwk.ts';
import { valueOrUndefined } from '../../../domain/shared/value-or-undefined.ts';
import { VaultError } from './vault-error.ts';

/** Version of a key in Transit. Versions differ in their private halves, so the version identifies the key. */
export type TransitKey = { readonly name: string; readonly version: number; readonly algorithm: SigningAlgorithm };

export const TRANSIT_TYPES: Readonly<Record<SigningAlgorithm, string>> = {
  ES256: 'ecdsa-p256',
  ES384: 'ecdsa-p384',
  ES512: 'ecdsa-p521',
  EdDSA: 'ed25519',
};

const HANDLE = /^(?<name>[a-z0-9][a-z0-9-]{0,62}\.[\w-]{22,64}\.(?<type>[a-z0-9]+))@(?<version>[1-9]\d{0,8})$/;
const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;
const RAW_ED25519 = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Returns `<tenant>.<random>.<algorithm>`. Transit would sign with an Ed25519 key in place of a P-256 key, and the signature has the same
 * length: with the algorithm in the name, an altered handle names no key.
 */
export function newKeyName(tenantId: string, algorithm: SigningAlgorithm, random: Random): string {
  if (!TENANT.test(tenantId)) throw new Error('The tenant id cannot be part of a key name.');
  return `${tenantId}.${random.token()}.${algorithm.toLowerCase()}`;
}

/** Key id of a handle, with the version: a rotation inside Vault does not change the signing key. */
export function keyIdOf(name: string, version: number): string {
  return `${name}@${version}`;
}

/** @throws Error unless the handle was created for this tenant and algorithm. */
export function parseHandle({ tenantId, handle: { keyId, algorithm } }: SigningKey): TransitKey {
  const { name, type, version } = HANDLE.exec(keyId)?.groups ?? {};
  if (name === undefined || !name.startsWith(`${tenantId}.`)) {
    throw new Error(`${keyId} is not a Vault key of the tenant ${tenantId}.`);
  }
  if (type !== algorithm.toLowerCase() || !SIGNING_ALGORITHMS.includes(algorithm)) {
    throw new Error(`The key ${keyId} is not for ${algorithm}.`);
  }
  return { name, version: Number(version), algorithm };
}

/**
 * Parses the response of `GET <mount>/keys/<name>` for a new key.
 * @throws VaultError unless it is the requested key and its private half cannot be exported.
 */
export function parseTransitKey(
  { data }: JsonObject,
  algorithm: SigningAlgorithm,
): { readonly version: number; readonly publicJwk: PublicJwk } {
  const key = isJsonObject(data) ? data : {};
  const { type, latest_version: version, keys, exportable, allow_plaintext_backup: backup, derived } = key;
  const isAsMeant = type === TRANSIT_TYPES[algorithm] && !exportable && !backup && !derived;
  if (!isAsMeant || typeof version !== 'number' || !isJsonObject(keys)) {
    throw new VaultError('the created key differs from the request');
  }
  const entry = keys[version];
  const publicJwk = isJsonObject(entry) ? parsePublicKey(entry['public_key'], algorithm) : undefined;
  if (publicJwk === undefined) throw new VaultError('the public key of the created key cannot be parsed');
  return { version, publicJwk };
}

/** Transit returns PEM, or for Ed25519 the 32 bytes in base64. */
function parsePublicKey(text: unknown, algorithm: SigningAlgorithm): PublicJwk | undefined {
  if (typeof text !== 'string') return undefined;
  const publicJwk = RAW_ED25519.test(text) ? rawKey(text) : pemKey(text);
  return publicJwk !== undefined && algorithmOf(publicJwk) === algorithm ? publicJwk : undefined;
}

function rawKey(text: string): PublicJwk | undefined {
  const { kty, name: crv } = CURVES.EdDSA;
  return parsePublicJwk({ kty, crv, x: Buffer.from(text, 'base64').toString('base64url') });
}

function pemKey(text: string): PublicJwk | undefined {
  return valueOrUndefined(() => parsePublicJwk(createPublicKey(text).export({ format: 'jwk' })));
}

/**
 * Parses the bytes of `vault:v<version>:<base64url>`. With `marshaling_algorithm` `jws` they are `r || s` for ECDSA.
 * @returns undefined for a wrong version of the key or a wrong length.
 */
export function parseSignature(value: unknown, { version, algorithm }: TransitKey): Uint8Array | undefined {
  const prefix = `vault:v${version}:`;
  if (typeof value !== 'string' || !value.startsWith(prefix)) return undefined;
  const bytes = decodeBase64url(value.slice(prefix.length));
  return bytes?.length === 2 * CURVES[algorithm].bytes ? bytes : undefined;
}
