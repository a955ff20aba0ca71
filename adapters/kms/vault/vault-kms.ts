import { createHash } from 'node:crypto';
import type { PrivateKeyMaterial, ToSign } from '../../../application/ports/kms.ts';
import type { Random } from '../../../application/ports/random.ts';
import type { SigningKey, StoredKey } from '../../../domain/keys/signing-key.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { CURVES, type SigningAlgorithm, thumbprint } from '../../../domain/shared/jwk.ts';
import { GuardedCalls, KeyRefused } from '../guarded-calls.ts';
import { KmsProvider } from '../kms-provider.ts';
import { readPrivateKey } from '../private-key.ts';
import { Leftovers } from './leftovers.ts';
import { type Outcome, SignatureBatches } from './signature-batches.ts';
import {
  keyIdOf,
  newKeyName,
  openHandle,
  readSignature,
  readTransitKey,
  TRANSIT_TYPES,
  type TransitKey,
} from './transit-key.ts';
import { asKeyRefused, isMissingPlace, quotable, VaultError } from './vault-error.ts';
import { VaultSession } from './vault-session.ts';
import { mountPath, type VaultSettings } from './vault-settings.ts';
import { wrapPrivateKey } from './wrapped-key.ts';

/** Of what is signed with an Ed25519 key, which takes all of it; Vault takes requests of up to 32 MiB. */
const MAX_BYTES = 16 * 1024 ** 2;
/** A key that is not there. */
const NO_KEY = 'vidimus.check';

type Options = {
  /** The name under which the configuration lists this provider. */
  readonly name: string;
  readonly settings: VaultSettings;
  readonly random: Random;
};

type Call = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: JsonObject) => Promise<JsonObject>;

/**
 * Keys in the engine Transit of HashiCorp Vault or OpenBao, which never shows their private halves. Nothing is called before
 * the first key is needed.
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
      refused: (error) => this.#calls.unavailable(error),
    });
    this.#leftovers = new Leftovers((keyName) => this.#destroy(keyName));
  }

  override async generate(tenantId: string, algorithm: SigningAlgorithm): Promise<StoredKey> {
    const name = newKeyName(tenantId, algorithm, this.#random);
    return this.#made(name, algorithm, async (call) => {
      const type = TRANSIT_TYPES[algorithm];
      await call('POST', `keys/${name}`, { type, exportable: false, allow_plaintext_backup: false });
    });
  }

  override async import(tenantId: string, material: PrivateKeyMaterial): Promise<StoredKey> {
    const { key, publicJwk, algorithm } = readPrivateKey(material);
    const name = newKeyName(tenantId, algorithm, this.#random);
    const take = async (call: Call) => {
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
    return this.#made(name, algorithm, take, thumbprint(publicJwk));
  }

  override async sign(key: SigningKey, data: ToSign): Promise<Uint8Array> {
    return this.#signed(key.handle.keyId, openHandle(key), data);
  }

  override async signMany(key: SigningKey, datas: readonly ToSign[]): Promise<readonly Uint8Array[]> {
    const transitKey = openHandle(key);
    return Promise.all(datas.map((data) => this.#signed(key.handle.keyId, transitKey, data)));
  }

  override assertReady(): void {
    this.#calls.assertReady();
  }

  override async remove(key: SigningKey): Promise<void> {
    await this.#destroy(openHandle(key).name);
  }

  /** Not held up by failures of other calls: who asks wants to know what is wrong now. One at a time. */
  override check(): Promise<void> {
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
    if (hash !== null) {
      return this.#batches.sign(keyId, key, createHash(hash).update(data).digest('base64'));
    }
    const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : data;
    if (bytes.length > MAX_BYTES) {
      const reason = new KeyRefused(`with Ed25519 at most ${MAX_BYTES} bytes can be signed`);
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

  /** @param take makes the key in Vault. @param expected thumbprint that the public half must have. */
  async #made(
    name: string,
    algorithm: SigningAlgorithm,
    take: (call: Call) => Promise<void>,
    expected?: string,
  ): Promise<StoredKey> {
    try {
      return await this.#run(async (call) => {
        await take(call);
        const { version, publicJwk } = readTransitKey(await call('GET', `keys/${name}`), algorithm);
        if (expected !== undefined && thumbprint(publicJwk) !== expected) {
          throw new VaultError('it holds another key than the one that it was given');
        }
        return { handle: { kms: this.#name, keyId: keyIdOf(name, version), algorithm }, publicJwk };
      });
    } catch (error) {
      this.#leftovers.add(name);
      throw error;
    }
  }

  /** @returns whether there was such a key. */
  #destroy(name: string): Promise<boolean> {
    return this.#run(async (call) => {
      try {
        await call('POST', `keys/${name}/config`, { deletion_allowed: true });
        await call('DELETE', `keys/${name}`);
        return true;
      } catch (error) {
        // Versions of Vault differ in how they say that a key is not there.
        if (await this.#isThere(call, name)) throw error;
        return false;
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
      const rights = `; its policy has to allow "create", "read", "update" and "delete" on ${mount}/keys/*`;
      const reason = signal.aborted ? `no answer within ${timeoutSeconds} s` : messageOf(error);
      throw new Error(`Vault at ${address}: ${reason}${isForbidden ? rights : ''}`);
    }
  }

  #run<T>(work: (call: Call) => Promise<T>): Promise<T> {
    return this.#calls.run(async (signal) => {
      try {
        return await work(this.#callWith(signal));
      } catch (error) {
        throw asKeyRefused(error);
      }
    });
  }

  #callWith(signal: AbortSignal): Call {
    return (method, path, body) =>
      this.#session.call({ method, path: `${this.#mount}/${path}`, body, signal });
  }
}

function outcomeOf({ signature, error }: JsonObject, key: TransitKey): Outcome {
  if (typeof error === 'string' && error !== '') return new KeyRefused(quotable([error]));
  return (
    readSignature(signature, key) ?? new KeyRefused('it signed with another key or algorithm than asked')
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
