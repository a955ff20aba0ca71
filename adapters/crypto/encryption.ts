import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, inflateRawSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { boundedBytes } from '../../application/bounded.ts';
import { madeOnce } from '../../application/made-once.ts';
import {
  type DecryptionOptions,
  Encryption,
  type EncryptionKeyPair,
  type HpkeMessage,
} from '../../application/ports/encryption.ts';
import { MAX_RESPONSE_BYTES } from '../../domain/formats/credential-size.ts';
import { decodeBase64url, encodeBase64url } from '../../domain/shared/base64url.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { decodeJson, isJsonObject, type JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { agree, deriveContentKey, makeKeyPair, privateKeyOf } from './ecdh-es.ts';
import { openHpke } from './hpke.ts';
import { RequestEncryptionKeys } from './request-encryption-keys.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
const MAX_INFLATED_BYTES = 1024 * 1024;
const MAX_HEADER_LENGTH = 32 * 1024;
const MAX_READY_BYTES = 2 * 1024 * 1024;
/** What the library holds for a private key. */
const KEY_BYTES = 2_000;

type ContentCipher = { readonly cipher: 'aes-128-gcm' | 'aes-256-gcm'; readonly bits: number };

const CIPHERS: ReadonlyMap<unknown, ContentCipher> = new Map([
  ['A128GCM', { cipher: 'aes-128-gcm', bits: 128 }],
  ['A256GCM', { cipher: 'aes-256-gcm', bits: 256 }],
]);

/** A JWS as plaintext: nobody here reads one there (OpenID4VP 1.0 section 8.3). */
const NESTED = /^\s*[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\s*$/;

const deflate = promisify(deflateRaw);

/** ECDH-ES in direct agreement on P-256 with AES-GCM, by node:crypto. */
export class NodeEncryption extends Encryption {
  readonly #requestKeys: RequestEncryptionKeys;
  /** By their scalar: what was made or used last is mostly used next, and taking a key in costs half of an agreement. */
  readonly #ready = new LRUCache<string, KeyObject>(
    boundedBytes<KeyObject>(MAX_READY_BYTES, () => KEY_BYTES),
  );

  /** @param settings keys to derive those of the tenants from; the first makes the published ones. */
  constructor(settings: { readonly encryptionKeys: readonly KeyObject[] } = { encryptionKeys: [] }) {
    super();
    this.#requestKeys = new RequestEncryptionKeys(settings.encryptionKeys);
  }

  override generate(): EncryptionKeyPair {
    const { pair, privateKey } = makeKeyPair();
    this.#ready.set(pair.d, privateKey);
    return pair;
  }

  override requestKeys(tenantId: TenantId): readonly EncryptionKeyPair[] {
    return this.#requestKeys.of(tenantId);
  }

  override decrypt(jwe: string, key: EncryptionKeyPair, options: DecryptionOptions = {}): string | undefined {
    if (jwe.length > MAX_RESPONSE_BYTES) return undefined;
    const parts = jwe.split('.', 6);
    const [protectedHeader = '', encryptedKey, ...rest] = parts;
    // RFC 7518 section 4.6: direct agreement has no encrypted key.
    if (parts.length !== 5 || encryptedKey !== '') return undefined;
    const header = readHeader(protectedHeader, key.publicJwk.kid, options.inflate === true);
    const cipher = CIPHERS.get(header?.['enc']);
    const [iv, ciphertext, tag] = rest.map(decodeBase64url);
    if (header === undefined || cipher === undefined || ciphertext === undefined) return undefined;
    // RFC 7518 section 5.3
    if (iv?.length !== IV_BYTES || tag?.length !== TAG_BYTES) return undefined;
    const secret = agree(header['epk'], this.#privateKey(key));
    const contentKey = secret === undefined ? undefined : deriveContentKey(secret, header, cipher.bits);
    if (contentKey === undefined) return undefined;

    // Of bytes, node finds out by two exceptions that they are no key object.
    const decipher = createDecipheriv(cipher.cipher, createSecretKey(contentKey), iv, {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(protectedHeader, 'ascii'));
    decipher.setAuthTag(tag);
    const opened = decipher.update(ciphertext);
    try {
      decipher.final();
    } catch {
      return undefined;
    }
    const bytes = Object.hasOwn(header, 'zip') ? inflate(opened) : opened;
    const plaintext = bytes === undefined ? undefined : decodeUtf8(bytes);
    return plaintext === undefined || NESTED.test(plaintext) ? undefined : plaintext;
  }

  #privateKey(pair: EncryptionKeyPair): KeyObject {
    return madeOnce(this.#ready, pair.d, () => privateKeyOf(pair));
  }

  override openHpke(message: HpkeMessage, key: EncryptionKeyPair, info: Buffer): Promise<Buffer | undefined> {
    return openHpke(message, key, info);
  }

  override async encrypt(
    plaintext: string,
    recipient: PublicJwk,
    { enc, zip, contentType }: Parameters<Encryption['encrypt']>[2],
  ): Promise<string> {
    const cipher = CIPHERS.get(enc);
    const { pair, privateKey } = makeKeyPair();
    const { kty, crv, x, y } = pair.publicJwk;
    const header = {
      alg: 'ECDH-ES',
      enc,
      ...defined({ kid: recipient.kid, zip, cty: contentType }),
      epk: { kty, crv, x, ...(y !== undefined && { y }) },
    };
    const secret = agree(recipient, privateKey);
    const contentKey = cipher && secret && deriveContentKey(secret, header, cipher.bits);
    if (cipher === undefined || contentKey === undefined) throw new Error('not a recipient of ours');

    const bytes = Buffer.from(plaintext, 'utf8');
    const message = zip === undefined ? bytes : await deflate(bytes);
    const protectedHeader = encodeBase64url(JSON.stringify(header));
    const iv = randomBytes(IV_BYTES);
    const encipher = createCipheriv(cipher.cipher, createSecretKey(contentKey), iv, {
      authTagLength: TAG_BYTES,
    });
    encipher.setAAD(Buffer.from(protectedHeader, 'ascii'));
    const ciphertext = Buffer.concat([encipher.update(message), encipher.final()]);
    return [protectedHeader, '', ...[iv, ciphertext, encipher.getAuthTag()].map(encodeBase64url)].join('.');
  }
}

/** The header when it is one we answer to. */
function readHeader(part: string, kid: string, inflates: boolean): JsonObject | undefined {
  const header = part.length > MAX_HEADER_LENGTH ? undefined : decodeJson(part);
  if (!isJsonObject(header) || header['alg'] !== 'ECDH-ES' || header['kid'] !== kid) return undefined;
  // RFC 7516 section 4.1.13: we understand no extension.
  if (Object.hasOwn(header, 'crit')) return undefined;
  // RFC 7516 section 4.1.3: compressed plaintext could grow beyond every limit, so only the one who bounds it takes it.
  if (Object.hasOwn(header, 'zip') && !(inflates && header['zip'] === 'DEF')) return undefined;
  // RFC 7519 section 5.2: announces a nested JWT.
  if (String(header['cty'] ?? '').toUpperCase() === 'JWT') return undefined;
  return header;
}

/** Stops at the limit, so that a small message costs no more than a large one that is not compressed. */
function inflate(bytes: Buffer): Buffer | undefined {
  try {
    return inflateRawSync(bytes, { maxOutputLength: MAX_INFLATED_BYTES });
  } catch {
    return undefined;
  }
}
