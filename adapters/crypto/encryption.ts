import { createDecipheriv, createECDH, createHash } from 'node:crypto';
import { Encryption, type EncryptionKeyPair } from '../../application/ports/encryption.ts';
import { decodeUtf8 } from '../../domain/formats/jose/compact.ts';
import { decodeBase64url } from '../../domain/shared/base64url.ts';
import { isJsonObject, type JsonObject, parseJsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';

const CURVE = 'prime256v1';
const COORDINATE_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const MAX_LENGTH = 1024 * 1024;
const MAX_HEADER_LENGTH = 32 * 1024;

const CIPHERS: ReadonlyMap<
  unknown,
  { readonly cipher: 'aes-128-gcm' | 'aes-256-gcm'; readonly bits: number }
> = new Map([
  ['A128GCM', { cipher: 'aes-128-gcm', bits: 128 }],
  ['A256GCM', { cipher: 'aes-256-gcm', bits: 256 }],
]);

/** A JWS as plaintext: nobody of ours reads one there (OpenID4VP 1.0 section 8.3). */
const NESTED = /^\s*[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\s*$/;

/** ECDH-ES in direct agreement on P-256 with AES-GCM, by node:crypto. */
export class NodeEncryption extends Encryption {
  override generate(): EncryptionKeyPair {
    // Cheaper than generateKeyPairSync, which also makes KeyObjects that nobody needs yet.
    const pair = createECDH(CURVE);
    const point = pair.generateKeys();
    const key: PublicJwk = {
      kty: 'EC',
      crv: 'P-256',
      x: point.toString('base64url', 1, 1 + COORDINATE_BYTES),
      y: point.toString('base64url', 1 + COORDINATE_BYTES),
    };
    // Leading zeros are left out by OpenSSL, but not by RFC 7518 section 6.2.2.1.
    const scalar = Buffer.alloc(COORDINATE_BYTES);
    const d = pair.getPrivateKey();
    d.copy(scalar, COORDINATE_BYTES - d.length);
    return {
      publicJwk: { ...key, kid: thumbprint(key), use: 'enc', alg: 'ECDH-ES' },
      d: scalar.toString('base64url'),
    };
  }

  override decrypt(jwe: string, key: EncryptionKeyPair): string | undefined {
    if (jwe.length > MAX_LENGTH) return undefined;
    const parts = jwe.split('.', 6);
    const [protectedHeader = '', encryptedKey, ...rest] = parts;
    // RFC 7518 section 4.6: direct agreement has no encrypted key.
    if (parts.length !== 5 || encryptedKey !== '') return undefined;
    const header = readHeader(protectedHeader, key.publicJwk.kid);
    const cipher = CIPHERS.get(header?.['enc']);
    const [iv, ciphertext, tag] = rest.map(decodeBase64url);
    if (header === undefined || cipher === undefined || ciphertext === undefined) return undefined;
    // RFC 7518 section 5.3
    if (iv?.length !== IV_BYTES || tag?.length !== TAG_BYTES) return undefined;
    const secret = agree(header, key.d);
    const contentKey = secret === undefined ? undefined : deriveKey(secret, header, cipher.bits);
    if (contentKey === undefined) return undefined;

    const decipher = createDecipheriv(cipher.cipher, contentKey, iv, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(protectedHeader, 'ascii'));
    decipher.setAuthTag(tag);
    const opened = decipher.update(ciphertext);
    try {
      decipher.final();
    } catch {
      return undefined;
    }
    const plaintext = decodeUtf8(opened);
    return plaintext === undefined || NESTED.test(plaintext) ? undefined : plaintext;
  }
}

/** The header when it is one we answer to. */
function readHeader(part: string, kid: string): JsonObject | undefined {
  const bytes = part.length > MAX_HEADER_LENGTH ? undefined : decodeBase64url(part);
  const text = bytes === undefined ? undefined : decodeUtf8(bytes);
  const header = text === undefined ? undefined : parseJsonObject(text);
  if (header === undefined || header['alg'] !== 'ECDH-ES' || header['kid'] !== kid) return undefined;
  // RFC 7516 section 4.1.13: we understand no extension. Compressed plaintext could grow beyond every limit.
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'zip')) return undefined;
  // RFC 7519 section 5.2: announces a nested JWT.
  if (String(header['cty'] ?? '').toUpperCase() === 'JWT') return undefined;
  return header;
}

/** The shared secret (RFC 7518 section 4.6), or `undefined` for a foreign or invalid ephemeral key. */
function agree(header: JsonObject, d: string): Buffer | undefined {
  const { epk } = header;
  // RFC 7518 section 4.6.1.1: a public key on the recipient's curve, nothing private
  if (!isJsonObject(epk) || epk['kty'] !== 'EC' || epk['crv'] !== 'P-256') return undefined;
  if (Object.hasOwn(epk, 'd')) return undefined;
  const x = readBytes(epk['x']);
  const y = readBytes(epk['y']);
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
function deriveKey(secret: Buffer, header: JsonObject, bits: number): Buffer | undefined {
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
