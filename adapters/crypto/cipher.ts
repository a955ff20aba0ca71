import { createCipheriv, createDecipheriv, createSecretKey, hash, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { Cipher } from '../../application/ports/cipher.ts';
import type { Random } from '../../application/ports/random.ts';
import { hmacs, type MacKey, type Macs } from '../../domain/audit/macs.ts';
import { decodeBase64url } from '../../domain/shared/base64url.ts';

const VERSION = 'v1';
const ALGORITHM = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/**
 * Places are spread over many keys: random 96-bit IVs bear 2^32 messages under one key (NIST SP 800-38D section
 * 8.3), which a busy service would reach within weeks.
 */
const KEYS = 1024;

/**
 * One independent key per purpose out of the master secret (HKDF-SHA-256, RFC 5869, without salt).
 * @returns 32 bytes.
 */
export function deriveKey(masterSecret: string, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterSecret, Buffer.alloc(0), label, 32));
}

/**
 * Seals to `v1.<keyId>.<base64url(iv | ciphertext | tag)>`. The first master secret seals, all of them open,
 * so a new secret is put in front and the old ones stay behind it.
 */
export class MasterCipher extends Cipher {
  override readonly keyIds: readonly [string, ...string[]];
  readonly #sealing: SealingKeys;
  /** The sealing one first. */
  readonly #all: readonly [SealingKeys, ...SealingKeys[]];
  readonly #opening: ReadonlyMap<string, SealingKeys>;
  readonly #random: Pick<Random, 'bytes'>;

  /** @param settings `random`: what makes vectors quicker than one call of the library for each. */
  constructor(settings: { readonly masterSecrets: readonly string[]; readonly random?: Pick<Random, 'bytes'> }) {
    super();
    this.#random = settings.random ?? { bytes: randomBytes };
    const [first, ...others] = settings.masterSecrets.map((secret) => new SealingKeys(secret));
    if (first === undefined) throw new Error('At least one master secret is needed to seal.');
    this.keyIds = [first.id, ...others.map(({ id }) => id)];
    this.#sealing = first;
    this.#all = [first, ...others];
    this.#opening = new Map(this.#all.map((key) => [key.id, key]));
  }

  override seal(plaintext: string | Uint8Array, context: string): string {
    const place = Buffer.from(context, 'utf8');
    const iv = this.#random.bytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#sealing.keyOf(place), iv).setAAD(place);
    const body = typeof plaintext === 'string' ? cipher.update(plaintext, 'utf8') : cipher.update(plaintext);
    const sealed = Buffer.concat([iv, body, cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${this.#sealing.id}.${sealed.toString('base64url')}`;
  }

  override open(sealed: string, context: string): Buffer {
    const [version, keyId, text, ...rest] = sealed.split('.');
    const known = keyId === undefined ? undefined : this.#opening.get(keyId);
    const bytes = text === undefined ? undefined : decodeBase64url(text);
    if (version !== VERSION || rest.length > 0 || bytes === undefined) throw new Error('Not a sealed text.');
    if (known === undefined) throw new Error(`Sealed under the unknown master secret "${keyId}".`);
    if (bytes.length < IV_BYTES + TAG_BYTES) throw new Error('The sealed text is too short.');

    const place = Buffer.from(context, 'utf8');
    const end = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv(ALGORITHM, known.keyOf(place), bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
      .setAAD(place)
      .setAuthTag(bytes.subarray(end));
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, end)), decipher.final()]);
  }

  override macs(purpose: string, former: readonly MacKey[] = []): Macs {
    const [first, ...others] = this.#all;
    const listed = others.map((keys) => keys.macKey(purpose));
    const kept = former.filter(({ id }) => !this.#opening.has(id));
    return hmacs([first.macKey(purpose), ...listed], kept);
  }

  override macKey(purpose: string, keyId: string): Buffer {
    const keys = this.#opening.get(keyId);
    if (keys === undefined) throw new Error(`There is no master secret "${keyId}".`);
    return keys.macKey(purpose).key.export();
  }
}

/** The keys of one master secret. Each is derived when it is first needed and kept, ready for use. */
class SealingKeys {
  /** Tells which secret made a text, and nothing about the secret. */
  readonly id: string;
  readonly #root: Buffer;
  readonly #macRoot: Buffer;
  readonly #keys: (KeyObject | undefined)[] = new Array(KEYS);

  constructor(masterSecret: string) {
    this.id = deriveKey(masterSecret, 'vidimus/seal-id').subarray(0, 6).toString('base64url');
    this.#root = deriveKey(masterSecret, 'vidimus/seal');
    this.#macRoot = deriveKey(masterSecret, 'vidimus/mac');
  }

  keyOf(place: Buffer): KeyObject {
    const index = hash('sha256', place, 'buffer').readUInt32BE(0) % KEYS;
    const known = this.#keys[index];
    if (known !== undefined) return known;
    const key = createSecretKey(Buffer.from(hkdfSync('sha256', this.#root, '', `place ${index}`, 32)));
    this.#keys[index] = key;
    return key;
  }

  macKey(purpose: string): MacKey {
    return {
      id: this.id,
      key: createSecretKey(Buffer.from(hkdfSync('sha256', this.#macRoot, '', purpose, 32))),
    };
  }
}
