import { createECDH, createHash } from 'node:crypto';
import type { EncryptionKeyPair } from '../../application/ports/encryption.ts';
import { decodeBase64url } from '../../domain/shared/base64url.ts';
import { isJsonObject, type JsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';

/** Key agreement of a JWE (RFC 7518 section 4.6): ECDH-ES on P-256, direct. */
const CURVE = 'prime256v1';
const COORDINATE_BYTES = 32;

/** @param scalar 32 bytes; absent: a fresh key. */
export function makeKeyPair(scalar?: Buffer): EncryptionKeyPair {
  // Cheaper than generateKeyPairSync, which also makes KeyObjects that nobody needs yet.
  const pair = createECDH(CURVE);
  if (scalar === undefined) pair.generateKeys();
  else pair.setPrivateKey(scalar);
  const point = pair.getPublicKey();
  const key: PublicJwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.toString('base64url', 1, 1 + COORDINATE_BYTES),
    y: point.toString('base64url', 1 + COORDINATE_BYTES),
  };
  // Leading zeros are left out by OpenSSL, but not by RFC 7518 section 6.2.2.1.
  const padded = Buffer.alloc(COORDINATE_BYTES);
  const d = pair.getPrivateKey();
  d.copy(padded, COORDINATE_BYTES - d.length);
  return {
    publicJwk: { ...key, kid: thumbprint(key), use: 'enc', alg: 'ECDH-ES' },
    d: padded.toString('base64url'),
  };
}

/** The shared secret, or `undefined` for a foreign or invalid public key. */
export function agree(publicKey: unknown, d: string): Buffer | undefined {
  // RFC 7518 section 4.6.1.1: a public key on the recipient's curve, nothing private
  if (!isJsonObject(publicKey) || publicKey['kty'] !== 'EC' || publicKey['crv'] !== 'P-256') return undefined;
  if (Object.hasOwn(publicKey, 'd')) return undefined;
  const x = readBytes(publicKey['x']);
  const y = readBytes(publicKey['y']);
  if (x?.length !== COORDINATE_BYTES || y?.length !== COORDINATE_BYTES) return undefined;
  const pair = createECDH(CURVE);
  try {
    pair.setPrivateKey(Buffer.from(d, 'base64url'));
    // Throws for a point that is not on the curve.
    return pair.computeSecret(Buffer.concat([Buffer.of(4), x, y]));
  } catch {
    return undefined;
  }
}

function readBytes(value: unknown): Buffer | undefined {
  return typeof value === 'string' ? decodeBase64url(value) : undefined;
}

/** Concat KDF with SHA-256 (RFC 7518 section 4.6.2); one round gives the 256 bits that are enough. */
export function deriveContentKey(secret: Buffer, header: JsonObject, bits: number): Buffer | undefined {
  const apu = readBytes(header['apu'] ?? '');
  const apv = readBytes(header['apv'] ?? '');
  if (apu === undefined || apv === undefined) return undefined;
  return createHash('sha256')
    .update(uint32(1))
    .update(secret)
    .update(lengthPrefixed(Buffer.from(String(header['enc']), 'ascii')))
    .update(lengthPrefixed(apu))
    .update(lengthPrefixed(apv))
    .update(uint32(bits))
    .digest()
    .subarray(0, bits / 8);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function lengthPrefixed(bytes: Buffer): Buffer {
  return Buffer.concat([uint32(bytes.length), bytes]);
}
