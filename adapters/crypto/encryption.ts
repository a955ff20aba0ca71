import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, inflateRawSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { type DecryptionOptions, Encryption, type EncryptionKeyPair, type HpkeMessage } from '../../application/ports/encryption.ts';
import { boundedBytes } from '../../application/tenant-cache/cache-memory.ts';
import { getOrCreate } from '../../application/tenant-cache/get-or-create.ts';
import { MAX_RESPONSE_BYTES } from '../../domain/formats/credential-size.ts';
import { decodeBase64url, encodeBase64url } from '../../domain/shared/base64url.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { decodeJson, isJsonObject, type JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { valueOrUndefined } from '../../domain/shared/value-or-undefined.ts';
import { agree, deriveContentKey, generateEncryptionKeyPair, keyPairOf, privateKeyOf } from './ecdh-es.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
const MAX_INFLATED_BYTES = 1024 * 1024;
const MAX_HEADER_LENGTH = 32 * 1024;
const MAX_READY_BYTES = 2 * 1024 * 1024;
/** Memory of a private key in the library. */
const KEY_BYTES = 2_000;

type ContentCipher = { readonly cipher: 'aes-128-gcm' | 'aes-256-gcm'; readonly bits: number };

const CIPHERS: ReadonlyMap<unknown, ContentCipher> = new Map([
  ['A128GCM', { cipher: 'aes-128-gcm', bits: 128 }],
  ['A256GCM', { cipher: 'aes-256-gcm', bits: 256 }],
]);

/** A JWS as plaintext is rejected, because nested JWTs are not supported (OpenID4VP 1.0 section 8.3). */
const NESTED = /^\s*[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\s*$/;

const deflate = promisify(deflateRaw);

/** ECDH-ES in direct agreement on P-256 with AES-GCM, by node:crypto. */
export class NodeEncryption extends Encryption {
  readonly #requestKeys: RequestEncryptionKeys;
  /** Private keys by their scalar: the most recent key is usually used next, and importing a key costs half of an agreement. */
  readonly #ready = new LRUCache<string, KeyObject>(boundedBytes<KeyObject>(MAX_READY_BYTES, () => KEY_BYTES));

  /** @param settings keys from which those of the tenants are derived; the first one yields the published keys. */
  constructor(settings: { readonly encryptionKeys: readonly KeyObject[] } = { encryptionKeys: [] }) {
    super();
    this.#requestKeys = new RequestEncryptionKeys(settings.encryptionKeys);
  }

  override generate(): EncryptionKeyPair {
    const { pair, privateKey } = generateEncryptionKeyPair();
    this.#ready.set(pair.d, privateKey);
    return pair;
  }

  override requestKeys(tenantId: TenantId): readonly EncryptionKeyPair[] {
    return this.#requestKeys.of(tenantId);
  }

  override decrypt(jwe: string, key: EncryptionKeyPair, options: DecryptionOptions = {}): string | undefined {
    if (jwe.length > MAX_RESPONSE_BYTES) return undefined;
    const parts = jwe.split('.', 6);
    const [protectedHeader = '', encryptedKey, ...textParts] = parts;
    // RFC 7518 section 4.6: direct agreement has no encrypted key.
    if (parts.length !== 5 || encryptedKey !== '') return undefined;
    const header = parseHeader(protectedHeader, key.publicJwk.kid, options.inflate === true);
    const cipher = CIPHERS.get(header?.['enc']);
    const [iv, ciphertext, tag] = textParts.map(decodeBase64url);
    if (header === undefined || cipher === undefined || ciphertext === undefined) return undefined;
    // RFC 7518 section 5.3
    if (iv?.length !== IV_BYTES || tag?.length !== TAG_BYTES) return undefined;
    const secret = agree(header['epk'], this.#privateKey(key));
    const contentKey = secret === undefined ? undefined : deriveContentKey(secret, header, cipher.bits);
    if (contentKey === undefined) return undefined;

    // With raw bytes, Node would throw two exceptions internally before it accepts them as a key.
    const decipher = createDecipheriv(cipher.cipher, createSecretKey(contentKey), iv, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(protectedHeader, 'ascii'));
    decipher.setAuthTag(tag);
    const decrypted = decipher.update(ciphertext);
    try {
      decipher.final();
    } catch {
      return undefined;
    }
    const bytes = Object.hasOwn(header, 'zip') ? inflate(decrypted) : decrypted;
    const plaintext = bytes === undefined ? undefined : decodeUtf8(bytes);
    return plaintext === undefined || NESTED.test(plaintext) ? undefined : plaintext;
  }

  #privateKey(pair: EncryptionKeyPair): KeyObject {
    return getOrCreate(this.#ready, pair.d, () => privateKeyOf(pair));
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
    const { pair, privateKey } = generateEncryptionKeyPair();
    const { kty, crv, x, y } = pair.publicJwk;
    const header = {
      alg: 'ECDH-ES',
      enc,
      ...defined({ kid: recipient.kid, zip, cty: contentType }),
      epk: { kty, crv, x, ...(y !== undefined && { y }) },
    };
    const secret = agree(recipient, privateKey);
    const contentKey = cipher && secret && deriveContentKey(secret, header, cipher.bits);
    if (cipher === undefined || contentKey === undefined) throw new Error('not a recipient of this service');

    const bytes = Buffer.from(plaintext, 'utf8');
    const message = zip === undefined ? bytes : await deflate(bytes);
    const protectedHeader = encodeBase64url(JSON.stringify(header));
    const iv = randomBytes(IV_BYTES);
    const encipher = createCipheriv(cipher.cipher, createSecretKey(contentKey), iv, { authTagLength: TAG_BYTES });
    encipher.setAAD(Buffer.from(protectedHeader, 'ascii'));
    const ciphertext = Buffer.concat([encipher.update(message), encipher.final()]);
    const binaryParts = [iv, ciphertext, encipher.getAuthTag()].map(encodeBase64url);
    return [protectedHeader, '', ...binaryParts].join('.');
  }
}

/** Returns the header if it is supported. */
function parseHeader(part: string, kid: string, inflates: boolean): JsonObject | undefined {
  const header = part.length > MAX_HEADER_LENGTH ? undefined : decodeJson(part);
  if (!isJsonObject(header) || header['alg'] !== 'ECDH-ES' || header['kid'] !== kid) return undefined;
  // RFC 7516 section 4.1.13: no extensions are supported.
  if (Object.hasOwn(header, 'crit')) return undefined;
  // RFC 7516 section 4.1.3: compressed plaintext could grow without limit, so only a caller that bounds it accepts it.
  if (Object.hasOwn(header, 'zip') && !(inflates && header['zip'] === 'DEF')) return undefined;
  // RFC 7519 section 5.2: announces a nested JWT.
  if (String(header['cty'] ?? '').toUpperCase() === 'JWT') return undefined;
  return header;
}

/** Stops at the limit, so that a small message costs no more than a large uncompressed one. */
function inflate(bytes: Buffer): Buffer | undefined {
  return valueOrUndefined(() => inflateRawSync(bytes, { maxOutputLength: MAX_INFLATED_BYTES }));
}

/** Loaded with the first message, because most services never get one. */
async function suite() {
  const { Aes128Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } = await import('@hpke/core');
  return new CipherSuite({ kem: new DhkemP256HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });
}

/** See `Encryption.openHpke`. */
async function openHpke({ enc, cipherText }: HpkeMessage, { publicJwk, d }: EncryptionKeyPair, info: Buffer): Promise<Buffer | undefined> {
  const hpke = await suite();
  const { kty, crv, x, y } = publicJwk;
  const recipientKey = await hpke.kem.importKey('jwk', { kty, crv, x, y, d }, false);
  try {
    const recipient = await hpke.createRecipientContext({ recipientKey, enc: bytes(enc), info: bytes(info) });
    return Buffer.from(await recipient.open(bytes(cipherText)));
  } catch {
    // An invalid point, another key, another transcript, a wrong tag: the library distinguishes them, but callers must not learn the
    // difference.
    return undefined;
  }
}

/** Copies into a buffer of its own, because buffers of Node are views of a larger one. */
function bytes(view: Uint8Array): ArrayBuffer {
  return Uint8Array.from(view).buffer;
}

/** Order of P-256 (NIST SP 800-186 section 3.2.1.3). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
/** The 256 bits of the order and 64 more, as FIPS 186-5 appendix A.2.1 requires at least, and a margin. */
const SEED_BYTES = 48;
const MAX_BYTES = 4 * 1024 * 1024;
/** Memory of a pair with its key object. */
const PAIR_BYTES = 4_000;

/**
 * Keys to which wallets encrypt credential requests. They are derived from master secret and tenant, so that nothing is stored and every
 * instance has them; a wallet that read the metadata before a new secret was put in front still finds its key.
 */
class RequestEncryptionKeys {
  readonly #tenants: LRUCache<TenantId, readonly EncryptionKeyPair[]>;

  constructor(masterKeys: readonly KeyObject[]) {
    const memoMethod = (tenantId: TenantId) => masterKeys.map((key) => keyPairOf(scalarOf(key, tenantId)));
    this.#tenants = new LRUCache<TenantId, readonly EncryptionKeyPair[]>({
      ...boundedBytes<readonly EncryptionKeyPair[]>(MAX_BYTES, ({ length }) => length * PAIR_BYTES),
      memoMethod,
    });
  }

  /** @returns one key pair for each master secret, in their order. */
  of(tenantId: TenantId): readonly EncryptionKeyPair[] {
    return this.#tenants.memo(tenantId);
  }
}

/** FIPS 186-5 appendix A.2.1: a number between 1 and the order less 1, with negligible bias. */
function scalarOf(key: KeyObject, tenantId: TenantId): Buffer {
  const seed = Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), tenantId, SEED_BYTES));
  const scalar = (BigInt(`0x${seed.toString('hex')}`) % (ORDER - 1n)) + 1n;
  return Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex');
}
