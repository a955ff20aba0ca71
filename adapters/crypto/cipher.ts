import { createCipheriv, createDecipheriv, createSecretKey, hash, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { Cipher } from '../../application/ports/cipher.ts';
import type { Random } from '../../application/ports/random.ts';
import { hmacKeyring, type MacKey, type Macs } from '../../domain/audit/macs.ts';
import { decodeBase64url } from '../../domain/shared/base64url.ts';

const VERSION = 'v1';
const ALGORITHM = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/**
 * Contexts are spread over many keys: one key with random 96-bit IVs is safe for 2^32 messages (NIST SP 800-38D section 8.3), which a busy
 * service would reach within weeks.
 */
const KEYS = 1024;

/**
 * Derives one independent key per purpose from the master secret (HKDF-SHA-256, RFC 5869, without salt).
 * @returns 32 bytes.
 */
export function deriveKey(masterSecret: string, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterSecret, Buffer.alloc(0), label, 32));
}

/**
 * Seals to `v1.<keyId>.<base64url(iv | ciphertext | tag)>`. The first master secret seals and all of them open, so a new secret is put in
 * front of the old ones.
 */
export class MasterCipher extends Cipher {
  override readonly keyIds: readonly [string, ...string[]];
  readonly #sealing: SealingKeys;
  /** All keys, the sealing one first. */
  readonly #allKeys: readonly [SealingKeys, ...SealingKeys[]];
  readonly #opening: ReadonlyMap<string, SealingKeys>;
  readonly #random: Pick<Random, 'bytes'>;

  /** @param settings `random`: generates IVs faster than one library call for each. */
  constructor(settings: { readonly masterSecrets: readonly string[]; readonly random?: Pick<Random, 'bytes'> }) {
    super();
    this.#random = settings.random ?? { bytes: randomBytes };
    const [current, ...previous] = settings.masterSecrets.map((secret) => new SealingKeys(secret));
    if (current === undefined) throw new Error('At least one master secret is required.');
    this.keyIds = [current.id, ...previous.map(({ id }) => id)];
    this.#sealing = current;
    this.#allKeys = [current, ...previous];
    this.#opening = new Map(this.#allKeys.map((key) => [key.id, key]));
  }

  override seal(plaintext: string | Uint8Array, context: string): string {
    const associatedData = Buffer.from(context, 'utf8');
    const iv = this.#random.bytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#sealing.keyOf(associatedData), iv).setAAD(associatedData);
    const body = typeof plaintext === 'string' ? cipher.update(plaintext, 'utf8') : cipher.update(plaintext);
    const sealed = Buffer.concat([iv, body, cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${this.#sealing.id}.${sealed.toString('base64url')}`;
  }

  override open(sealed: string, context: string): Buffer {
    const [version, keyId, text, ...surplus] = sealed.split('.');
    const keys = keyId === undefined ? undefined : this.#opening.get(keyId);
    const bytes = text === undefined ? undefined : decodeBase64url(text);
    if (version !== VERSION || surplus.length > 0 || bytes === undefined) throw new Error('The text is not sealed.');
    if (keys === undefined) throw new Error(`Sealed under the unknown master secret "${keyId}".`);
    if (bytes.length < IV_BYTES + TAG_BYTES) throw new Error('The sealed text is too short.');

    const associatedData = Buffer.from(context, 'utf8');
    const end = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv(ALGORITHM, keys.keyOf(associatedData), bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
      .setAAD(associatedData)
      .setAuthTag(bytes.subarray(end));
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, end)), decipher.final()]);
  }

  override macs(purpose: string, formerKeys: readonly MacKey[] = []): Macs {
    const [current, ...otherKeys] = this.#allKeys;
    const configuredMacKeys = otherKeys.map((keys) => keys.macKey(purpose));
    const removedMacKeys = formerKeys.filter(({ id }) => !this.#opening.has(id));
    return hmacKeyring([current.macKey(purpose), ...configuredMacKeys], removedMacKeys);
  }

  override macKey(purpose: string, keyId: string): Buffer {
    const keys = this.#opening.get(keyId);
    if (keys === undefined) throw new Error(`There is no master secret "${keyId}".`);
    return keys.macKey(purpose).key.export();
  }
}

/** Keys of one master secret. Each is derived on first use and cached. */
class SealingKeys {
  /** Identifies the secret without revealing anything about it. */
  readonly id: string;
  readonly #root: Buffer;
  readonly #macRoot: Buffer;
  readonly #keys: (KeyObject | undefined)[] = new Array(KEYS);

  constructor(masterSecret: string) {
    this.id = deriveKey(masterSecret, 'vidimus/seal-id').subarray(0, 6).toString('base64url');
    this.#root = deriveKey(masterSecret, 'vidimus/seal');
    this.#macRoot = deriveKey(masterSecret, 'vidimus/mac');
  }

  keyOf(context: Buffer): KeyObject {
    const index = hash('sha256', context, 'buffer').readUInt32BE(0) % KEYS;
    const cached = this.#keys[index];
    if (cached !== undefined) return cached;
    const key = createSecretKey(Buffer.from(hkdfSync('sha256', this.#root, '', `place ${index}`, 32)));
    this.#keys[index] = key;
    return key;
  }

  macKey(purpose: string): MacKey {
    return { id: this.id, key: createSecretKey(Buffer.from(hkdfSync('sha256', this.#macRoot, '', purpose, 32))) };
  }
}
