import { constants, createCipheriv, createHash, createPublicKey, type KeyObject, publicEncrypt } from 'node:crypto';
import type { PrivateKeyMaterial, ToSign } from '../../../application/ports/kms.ts';
import type { Random } from '../../../application/ports/random.ts';
import type { SigningKey, StoredKey } from '../../../domain/keys/signing-key.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { CURVES, type SigningAlgorithm, thumbprint } from '../../../domain/shared/jwk.ts';
import { valueOrUndefined } from '../../../domain/shared/value-or-undefined.ts';
import { GuardedCalls, KeyRejectedError } from '../guarded-calls.ts';
import { KmsProvider } from '../kms-provider.ts';
import { parsePrivateKey } from '../private-key.ts';
import { type Outcome, SignatureBatches } from './signature-batches.ts';
import { keyIdOf, newKeyName, parseHandle, parseSignature, parseTransitKey, TRANSIT_TYPES, type TransitKey } from './transit-key.ts';
import { asKeyRejected, isMissingPlace, quotable, VaultError } from './vault-error.ts';
import { VaultSession } from './vault-session.ts';
import { mountPath, type VaultSettings } from './vault-settings.ts';

/** Limit of a text for Ed25519, which signs all of it; Vault accepts requests of up to 32 MiB. */
const MAX_BYTES = 16 * 1024 ** 2;
/** Name of a key that does not exist. */
const NO_KEY = 'vidimus.check';

type Options = {
  /** Name under which the configuration lists this provider. */
  readonly name: string;
  readonly settings: VaultSettings;
  readonly random: Random;
};

type Call = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: JsonObject) => Promise<JsonObject>;

/**
 * Keys in the Transit engine of HashiCorp Vault or OpenBao, which never reveals their private halves. Vault is not called before the first
 * key is needed.
 */
export class VaultKms extends KmsProvider {
  readonly #name: string;
  readonly #settings: VaultSettings;
  readonly #random: Random;
  readonly #mount: string;
  readonly #calls: GuardedCalls;
  readonly #session: VaultSession;
  readonly #batches: SignatureBatches<TransitKey>;
  readonly #leftovers: Leftovers;
  #checking: Promise<void> | undefined;

  constructor({ name, settings, random }: Options) {
    super();
    this.#name = name;
    this.#settings = settings;
    this.#random = random;
    this.#mount = mountPath(settings.mount);
    const { atOnce, timeoutSeconds } = settings;
    this.#calls = new GuardedCalls({ name, atOnce, timeoutMs: timeoutSeconds * 1000 });
    this.#session = new VaultSession(settings, (work) => this.#calls.run(work));
    this.#batches = new SignatureBatches({
      send: (key, texts) => this.#run((call) => this.#signTexts(call, key, texts)),
      toError: (error) => this.#calls.unavailable(error),
    });
    this.#leftovers = new Leftovers((keyName) => this.#destroy(keyName));
  }

  override async generate(tenantId: string, algorithm: SigningAlgorithm): Promise<StoredKey> {
    const name = newKeyName(tenantId, algorithm, this.#random);
    return this.#createKey(name, algorithm, async (call) => {
      const type = TRANSIT_TYPES[algorithm];
      await call('POST', `keys/${name}`, { type, exportable: false, allow_plaintext_backup: false });
    });
  }

  override async import(tenantId: string, material: PrivateKeyMaterial): Promise<StoredKey> {
    const { key, publicJwk, algorithm } = parsePrivateKey(material);
    const name = newKeyName(tenantId, algorithm, this.#random);
    const importKey = async (call: Call) => {
      const { data } = await call('GET', 'wrapping_key');
      const wrappingKey = (data as JsonObject | undefined)?.['public_key'];
      await call('POST', `keys/${name}/import`, {
        type: TRANSIT_TYPES[algorithm],
        ciphertext: wrapPrivateKey(key, wrappingKey, this.#random),
        hash_function: 'SHA256',
        allow_rotation: false,
        exportable: false,
        allow_plaintext_backup: false,
      });
    };
    return this.#createKey(name, algorithm, importKey, thumbprint(publicJwk));
  }

  override async sign(key: SigningKey, data: ToSign): Promise<Uint8Array> {
    return this.#signed(key.handle.keyId, parseHandle(key), data);
  }

  override async signMany(key: SigningKey, datas: readonly ToSign[]): Promise<readonly Uint8Array[]> {
    const transitKey = parseHandle(key);
    return Promise.all(datas.map((data) => this.#signed(key.handle.keyId, transitKey, data)));
  }

  override assertReady(): void {
    this.#calls.assertReady();
  }

  override async remove(key: SigningKey): Promise<void> {
    await this.#destroy(parseHandle(key).name);
  }

  /** Bypasses the circuit breaker, because the current problem is of interest. Runs one check at a time. */
  override assertReachable(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  override async close(): Promise<void> {
    this.#leftovers.close();
    await this.#session.close();
  }

  #signed(keyId: string, key: TransitKey, data: ToSign): Promise<Uint8Array> {
    const { hash } = CURVES[key.algorithm];
    if (hash !== null) return this.#batches.sign(keyId, key, createHash(hash).update(data).digest('base64'));
    const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : data;
    if (bytes.length > MAX_BYTES) {
      const reason = new KeyRejectedError(`with Ed25519 at most ${MAX_BYTES} bytes can be signed`);
      return Promise.reject(this.#calls.unavailable(reason));
    }
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return this.#batches.sign(keyId, key, view.toString('base64'));
  }

  async #signTexts(call: Call, key: TransitKey, texts: readonly string[]): Promise<readonly Outcome[]> {
    const { hash } = CURVES[key.algorithm];
    const path = `sign/${key.name}${hash === null ? '' : `/${hash.replace('sha', 'sha2-')}`}`;
    const { data } = await call('POST', path, {
      key_version: key.version,
      marshaling_algorithm: 'jws',
      ...(hash !== null && { prehashed: true }),
      batch_input: texts.map((input) => ({ input })),
    });
    const results = (data as JsonObject | undefined)?.['batch_results'];
    if (!Array.isArray(results) || results.length !== texts.length) {
      throw new VaultError('it did not answer each of the texts to be signed');
    }
    return results.map((result: JsonObject | null) => outcomeOf(result ?? {}, key));
  }

  /** @param create creates the key in Vault. @param expected thumbprint that the public half must have. */
  async #createKey(
    name: string,
    algorithm: SigningAlgorithm,
    create: (call: Call) => Promise<void>,
    expected?: string,
  ): Promise<StoredKey> {
    try {
      return await this.#run(async (call) => {
        await create(call);
        const { version, publicJwk } = parseTransitKey(await call('GET', `keys/${name}`), algorithm);
        if (expected !== undefined && thumbprint(publicJwk) !== expected) {
          throw new VaultError('it has another key than the imported one');
        }
        return { handle: { kms: this.#name, keyId: keyIdOf(name, version), algorithm }, publicJwk };
      });
    } catch (error) {
      this.#leftovers.add(name);
      throw error;
    }
  }

  /** @returns true if the key existed. */
  #destroy(name: string): Promise<boolean> {
    return this.#run(async (call) => {
      for (let attempt = 1; ; attempt++) {
        try {
          await call('POST', `keys/${name}/config`, { deletion_allowed: true });
          await call('DELETE', `keys/${name}`);
          return true;
        } catch (error) {
          // Versions of Vault report a missing key differently.
          if (!(await this.#isThere(call, name))) return false;
          // Of concurrent removals of one key, one can fail although the key is about to be removed.
          const isFinal = error instanceof VaultError && error.status === 403;
          if (isFinal || attempt === MAX_REMOVALS) throw error;
        }
      }
    });
  }

  async #isThere(call: Call, name: string): Promise<boolean> {
    try {
      await call('GET', `keys/${name}`);
      return true;
    } catch (error) {
      if (error instanceof VaultError && error.status === 404 && !isMissingPlace(error)) return false;
      throw error;
    }
  }

  async #check(): Promise<void> {
    const { address, mount, timeoutSeconds } = this.#settings;
    const signal = AbortSignal.timeout(timeoutSeconds * 1000);
    try {
      await this.#isThere(this.#callWith(signal), NO_KEY);
    } catch (error) {
      const isForbidden = error instanceof VaultError && error.status === 403;
      const rights = `; its policy must allow "create", "read", "update" and "delete" on ${mount}/keys/*`;
      const reason = signal.aborted ? `no answer within ${timeoutSeconds} s` : messageOf(error);
      throw new Error(`Vault at ${address}: ${reason}${isForbidden ? rights : ''}`);
    }
  }

  #run<T>(work: (call: Call) => Promise<T>): Promise<T> {
    return this.#calls.run(async (signal) => {
      try {
        return await work(this.#callWith(signal));
      } catch (error) {
        throw asKeyRejected(error);
      }
    });
  }

  #callWith(signal: AbortSignal): Call {
    return (method, path, body) => this.#session.call({ method, path: `${this.#mount}/${path}`, body, signal });
  }
}

function outcomeOf({ signature, error }: JsonObject, key: TransitKey): Outcome {
  if (typeof error === 'string' && error !== '') return new KeyRejectedError(quotable([error]));
  return parseSignature(signature, key) ?? new KeyRejectedError('it signed with another key or algorithm than requested');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Attempts to remove a key that still exists. */
const MAX_REMOVALS = 3;
const MAX_NAMES = 1_000;
const MAX_TRIES = 10;
const PAUSE_MS = 10_000;

/**
 * Keys that may exist although the call that creates them failed: nothing refers to them, so they are removed. A missing key is looked up
 * once more, because Vault may still execute a call that was aborted.
 */
class Leftovers {
  readonly #remove: (name: string) => Promise<boolean>;
  /** Number of attempts per key. */
  readonly #tries = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #isSweeping = false;
  #isClosed = false;

  /** @param remove returns true if the key existed. */
  constructor(remove: (name: string) => Promise<boolean>) {
    this.#remove = remove;
  }

  /** Removes the key in the background; keys beyond the limit stay in Vault, unused. */
  add(name: string): void {
    if (this.#tries.size >= MAX_NAMES || this.#isClosed) return;
    this.#tries.set(name, 0);
    void this.#sweep();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    // Names that are added meanwhile come last and are visited as well.
    for (const [name, tries] of this.#tries) {
      if (this.#isClosed) break;
      const wasThere = await this.#remove(name).catch(() => undefined);
      const isDone = wasThere === true || (wasThere === false && tries > 0) || tries + 1 >= MAX_TRIES;
      if (isDone) this.#tries.delete(name);
      else this.#tries.set(name, tries + 1);
    }
    this.#isSweeping = false;
    if (this.#tries.size > 0 && !this.#isClosed) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.#sweep(), PAUSE_MS).unref();
    }
  }
}

/** RFC 5649 section 3 */
const ALTERNATIVE_INITIAL_VALUE = Buffer.from('a65959a6', 'hex');
const AES_KEY_BYTES = 32;
const MIN_RSA_BITS = 3072;

/**
 * Wraps a private key for the import into Transit: a single-use AES key, encrypted by RSA-OAEP with SHA-256 for Transit's wrapping key,
 * followed by the PKCS#8 structure wrapped by that AES key (AES-KWP, RFC 5649).
 * @param wrappingKey PEM of `GET <mount>/wrapping_key`.
 * @returns base64. @throws VaultError for an invalid wrapping key.
 */
function wrapPrivateKey(privateKey: KeyObject, wrappingKey: unknown, random: Random): string {
  const recipient = readWrappingKey(wrappingKey);
  const aesKey = random.bytes(AES_KEY_BYTES);
  const der = privateKey.export({ format: 'der', type: 'pkcs8' });
  try {
    const cipher = createCipheriv('id-aes256-wrap-pad', aesKey, ALTERNATIVE_INITIAL_VALUE);
    const wrapped = Buffer.concat([cipher.update(der), cipher.final()]);
    const padding = constants.RSA_PKCS1_OAEP_PADDING;
    const forRecipient = publicEncrypt({ key: recipient, padding, oaepHash: 'sha256' }, aesKey);
    return Buffer.concat([forRecipient, wrapped]).toString('base64');
  } finally {
    der.fill(0);
    aesKey.fill(0);
  }
}

function readWrappingKey(pem: unknown): KeyObject {
  const key = typeof pem === 'string' ? parsed(pem) : undefined;
  const bits = key?.asymmetricKeyDetails?.modulusLength ?? 0;
  if (key?.asymmetricKeyType !== 'rsa' || bits < MIN_RSA_BITS) {
    throw new VaultError('its wrapping key is not an RSA key of at least 3072 bits');
  }
  return key;
}

function parsed(pem: string): KeyObject | undefined {
  return valueOrUndefined(() => createPublicKey(pem));
}
