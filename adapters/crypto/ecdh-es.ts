import { createECDH, createHash, createPrivateKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { EncryptionKeyPair } from '../../application/ports/encryption.ts';
import { decodeBase64url } from '../../domain/shared/base64url.ts';
import { isJsonObject, type JsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, publicKeyOf, thumbprint } from '../../domain/shared/jwk.ts';

/** Key agreement of a JWE (RFC 7518 section 4.6): ECDH-ES on P-256, direct. */
const CURVE = 'prime256v1';
const COORDINATE_BYTES = 32;
/** ECPrivateKey (RFC 5915 section 3) of P-256 up to its scalar, and from there to its uncompressed point. */
const BEFORE_SCALAR = Buffer.from('30770201010420', 'hex');
const BEFORE_POINT = Buffer.from('a00a06082a8648ce3d030107a14403420004', 'hex');

/** Generates a key pair, with its private half ready for use. */
export function generateEncryptionKeyPair(): { readonly pair: EncryptionKeyPair; readonly privateKey: KeyObject } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: CURVE });
  const { x = '', y = '', d = '' } = privateKey.export({ format: 'jwk' });
  return { pair: pairOf(x, y, d), privateKey };
}

/** @param scalar 32 bytes, above 0 and below the order of P-256. */
export function keyPairOf(scalar: Buffer): EncryptionKeyPair {
  const ecdh = createECDH(CURVE);
  ecdh.setPrivateKey(scalar);
  const point = ecdh.getPublicKey();
  const [x, y] = [point.subarray(1, 1 + COORDINATE_BYTES), point.subarray(1 + COORDINATE_BYTES)];
  return pairOf(x.toString('base64url'), y.toString('base64url'), scalar.toString('base64url'));
}

function pairOf(x: string, y: string, d: string): EncryptionKeyPair {
  const key: PublicJwk = { kty: 'EC', crv: 'P-256', x, y };
  return { publicJwk: { ...key, kid: thumbprint(key), use: 'enc', alg: 'ECDH-ES' }, d };
}

/** Private half of a stored pair, ready for use. The point is included, because it would be computed otherwise. */
export function privateKeyOf({ publicJwk: { x, y = '' }, d }: EncryptionKeyPair): KeyObject {
  const [scalar, ...point] = [d, x, y].map((part) => Buffer.from(part, 'base64url'));
  const der = Buffer.concat([BEFORE_SCALAR, scalar ?? Buffer.of(), BEFORE_POINT, ...point]);
  return createPrivateKey(`-----BEGIN EC PRIVATE KEY-----\n${der.toString('base64')}\n-----END EC PRIVATE KEY-----`);
}

/** The shared secret, or `undefined` for a foreign or invalid public key. */
export function agree(publicKey: unknown, privateKey: KeyObject): Buffer | undefined {
  // RFC 7518 section 4.6.1.1: a public key on the recipient's curve, nothing private
  if (!isJsonObject(publicKey) || publicKey['kty'] !== 'EC' || publicKey['crv'] !== 'P-256') return undefined;
  if (Object.hasOwn(publicKey, 'd')) return undefined;
  const { x, y } = publicKey;
  if (parseBytes(x)?.length !== COORDINATE_BYTES || parseBytes(y)?.length !== COORDINATE_BYTES) return undefined;
  // Undefined for a point that is not on the curve.
  const theirs = publicKeyOf({ kty: 'EC', crv: 'P-256', x: String(x), y: String(y) });
  return theirs && diffieHellman({ privateKey, publicKey: theirs });
}

function parseBytes(value: unknown): Buffer | undefined {
  return typeof value === 'string' ? decodeBase64url(value) : undefined;
}

/** Concat KDF with SHA-256 (RFC 7518 section 4.6.2); one round yields 256 bits, which are enough. */
export function deriveContentKey(secret: Buffer, header: JsonObject, bits: number): Buffer | undefined {
  const apu = parseBytes(header['apu'] ?? '');
  const apv = parseBytes(header['apv'] ?? '');
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
