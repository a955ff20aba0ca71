import { createPublicKey, hash, verify } from 'node:crypto';
import type { PrivateKeyMaterial, ToSign } from '../../../application/ports/kms.ts';
import type { Random } from '../../../application/ports/random.ts';
import { parseElement, parseSequence, TAG } from '../../../domain/formats/der/reader.ts';
import type { SigningKey, StoredKey } from '../../../domain/keys/signing-key.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { CURVES, type PublicJwk, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { KmsProvider } from '../kms-provider.ts';
import { parsePrivateKey } from '../private-key.ts';
import { publicJwkOf } from './algorithms.ts';
import { faultOf, TokenFault } from './fault.ts';
import { Pkcs11Library } from './library.ts';
import { SessionPool } from './session-pool.ts';
import type { SessionThread } from './session-thread.ts';
import { type KeyName, removalOutcome } from './token-keys.ts';

type Pkcs11Settings = {
  readonly library: string;
  readonly token: string;
  /** PIN of the user of the token. */
  readonly pin: string;
  readonly sessions: number;
  readonly timeoutSeconds: number;
};

type Options = {
  /** Name under which the configuration lists this provider. */
  readonly name: string;
  readonly settings: Pkcs11Settings;
  readonly random: Random;
};

const ID_BYTES = 16;
/**
 * Signatures that one session creates in a row. Fewer are not worth another session; more would make other calls wait for the whole of a
 * large batch.
 */
const MIN_IN_A_ROW = 4;
const MAX_IN_A_ROW = 32;
const PROBE = 'vidimus';

/** Keys in a hardware security module, accessed by its PKCS#11 library. */
export class Pkcs11Kms extends KmsProvider {
  readonly #name: string;
  readonly #random: Random;
  readonly #sessions: number;
  readonly #pool: SessionPool;

  /**
   * A missing token or a rejected PIN does not prevent the start; `assertReachable` reports it.
   * @throws Error that tells the operator what to install or to correct.
   */
  static async open(options: Options): Promise<Pkcs11Kms> {
    const { name, settings } = options;
    const library = await Pkcs11Library.load(settings.library).catch((error: Error) => {
      throw new Error(`The key provider "${name}" cannot be used: ${error.message}.`);
    });
    const kms = new Pkcs11Kms(options, library);
    // Each later call looks for a missing token again, and the probe reports it as down.
    await kms.assertReachable().catch(() => {});
    return kms;
  }

  constructor({ name, settings, random }: Options, library: Pkcs11Library) {
    super();
    const { token, pin, sessions, timeoutSeconds } = settings;
    this.#name = name;
    this.#random = random;
    this.#sessions = sessions;
    this.#pool = new SessionPool(library, { name, token, pin, sessions, timeoutMs: timeoutSeconds * 1000 });
  }

  override get algorithms(): readonly SigningAlgorithm[] {
    return this.#pool.algorithms ?? SIGNING_ALGORITHMS;
  }

  override generate(tenantId: string, algorithm: SigningAlgorithm): Promise<StoredKey> {
    return this.#createKey(tenantId, algorithm, async (thread, key) =>
      publicJwkOf(Buffer.from(await thread.call('generate', key)), algorithm),
    );
  }

  override async import(tenantId: string, material: PrivateKeyMaterial): Promise<StoredKey> {
    const { key: imported, publicJwk, algorithm } = parsePrivateKey(material);
    const der = imported.export({ format: 'der', type: 'pkcs8' });
    try {
      const secret = secretIn(der, algorithm);
      return await this.#createKey(tenantId, algorithm, async (thread, key) => {
        await thread.call('import', key, new Uint8Array(secret));
        return publicJwk;
      });
    } finally {
      der.fill(0);
    }
  }

  override async sign(key: SigningKey, data: ToSign): Promise<Uint8Array> {
    const [signature] = await this.#signInARow(nameOf(key), [toSign(key.handle.algorithm, data)]);
    if (signature === undefined) throw new Error('The token returned no signature.');
    return signature;
  }

  /** A token signs one text at a time, so several sessions share a batch. */
  override async signMany(key: SigningKey, datas: readonly ToSign[]): Promise<readonly Uint8Array[]> {
    const even = Math.ceil(datas.length / this.#sessions);
    const length = Math.min(MAX_IN_A_ROW, Math.max(MIN_IN_A_ROW, even));
    const giveUp = new AbortController();
    const parts: Promise<readonly Uint8Array[]>[] = [];
    for (let offset = 0; offset < datas.length; offset += length) {
      const part = datas.slice(offset, offset + length).map((data) => toSign(key.handle.algorithm, data));
      parts.push(this.#signInARow(nameOf(key), part, giveUp.signal));
    }
    try {
      return (await Promise.all(parts)).flat();
    } catch (error) {
      giveUp.abort();
      throw error;
    }
  }

  override assertReady(): void {
    this.#pool.assertReady();
  }

  override async remove(key: SigningKey): Promise<void> {
    const name = nameOf(key);
    await this.#pool.run((thread) => thread.call('remove', name));
    this.#pool.forget(name);
  }

  override async assertReachable(): Promise<void> {
    try {
      await this.#pool.run((thread) => thread.call('assertLoggedIn'));
    } catch (error) {
      const reason = this.#pool.lastFault;
      if (reason === undefined) throw error instanceof Failure && error.cause instanceof Error ? error.cause : error;
      throw new Error(`the key provider "${this.#name}" does not work: ${reason.message}`);
    }
  }

  override close(): Promise<void> {
    return this.#pool.close();
  }

  #signInARow(key: KeyName, datas: readonly Uint8Array[], giveUp?: AbortSignal): Promise<readonly Uint8Array[]> {
    return this.#pool.run(async (thread) => (giveUp?.aborted === true ? [] : thread.call('sign', key, datas)));
  }

  /** Removes a new key that does not match its public half, or whose caller has given up. */
  async #createKey(
    tenantId: string,
    algorithm: SigningAlgorithm,
    create: (thread: SessionThread, key: KeyName) => Promise<PublicJwk | undefined>,
  ): Promise<StoredKey> {
    if (!this.algorithms.includes(algorithm)) throw this.#invalidInputError(`has no keys for ${algorithm}`);
    const keyId = this.#random.bytes(ID_BYTES).toString('hex');
    const handle = { kms: this.#name, keyId, algorithm };
    const key = nameOf({ tenantId, handle });
    try {
      const publicJwk = await this.#pool.run(async (thread, signal, isRepeated) => {
        // The first attempt may have created the key already.
        if (isRepeated) await thread.call('remove', key);
        try {
          const created = await create(thread, key);
          if (created === undefined || !(await isHalfOf(created, thread, key)))
            throw new TokenFault('other', 'the token created a key with a wrong public key');
          signal.throwIfAborted();
          return created;
        } catch (error) {
          throw await withRemoval(error, key, thread);
        }
      });
      return { handle, publicJwk };
    } catch (error) {
      throw this.#asFailure(error, algorithm);
    }
  }

  #asFailure(error: unknown, algorithm: SigningAlgorithm): unknown {
    if (!(error instanceof TokenFault)) return error;
    if (error.kind === 'foreign') return this.#invalidInputError(`does not import private keys (${error.message})`);
    this.#pool.withdraw(algorithm);
    return this.#invalidInputError(`does not create keys for ${algorithm} (${error.message})`);
  }

  #invalidInputError(what: string): Failure {
    return new Failure('invalid_input', `The token of the KMS provider "${this.#name}" ${what}.`);
  }
}

/** @returns the fault, with a note if the key could not be removed. */
async function withRemoval(error: unknown, key: KeyName, thread: SessionThread): Promise<unknown> {
  try {
    await thread.call('remove', key);
    return error;
  } catch {
    const { kind, message, code } = faultOf(error);
    return new TokenFault(kind, `${message}; ${removalOutcome(key, false)}`, code);
  }
}

function nameOf({ tenantId, handle: { keyId, algorithm } }: Pick<SigningKey, 'tenantId' | 'handle'>): KeyName {
  return { id: keyId, label: `${tenantId}.${keyId}`, algorithm };
}

/** Hashes locally: not all tokens have hash mechanisms, and those would need the whole data. */
function toSign(algorithm: SigningAlgorithm, data: ToSign): Uint8Array {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : data;
  const { hash: name } = CURVES[algorithm];
  // A copy: a message to a thread would otherwise carry the whole underlying buffer.
  return new Uint8Array(name === null ? bytes : hash(name, bytes, 'buffer'));
}

async function isHalfOf(publicJwk: PublicJwk, thread: SessionThread, key: KeyName): Promise<boolean> {
  const [signature] = await thread.call('sign', key, [toSign(key.algorithm, PROBE)]);
  const half = createPublicKey({ key: { ...publicJwk }, format: 'jwk' });
  const data = Buffer.from(PROBE);
  const options = { key: half, dsaEncoding: 'ieee-p1363' } as const;
  return signature !== undefined && verify(CURVES[key.algorithm].hash, data, options, signature);
}

/** @returns a part of `der`: the private number (RFC 5915 section 3), or the seed (RFC 8410 section 7). */
function secretIn(der: Buffer, algorithm: SigningAlgorithm): Buffer {
  const inner = parseSequence(der)[2]?.content ?? Buffer.alloc(0);
  if (CURVES[algorithm].kty === 'OKP') return parseElement(inner, TAG.octetString).content;
  return parseSequence(inner)[1]?.content ?? Buffer.alloc(0);
}
