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
import { type KeyName, whatBecame } from './token-keys.ts';

/** A provider of type `pkcs11` as the configuration describes it. */
type Pkcs11Settings = {
  /** File of the library. */
  readonly library: string;
  /** Label of the token. */
  readonly token: string;
  /** Of its user. */
  readonly pin: string;
  readonly sessions: number;
  readonly timeoutSeconds: number;
};

type Options = {
  /** The name under which the configuration lists this provider. */
  readonly name: string;
  readonly settings: Pkcs11Settings;
  readonly random: Random;
};

const ID_BYTES = 16;
/**
 * Signatures that one session makes in a row. Fewer are not worth another session; more would keep other calls
 * waiting for the whole of a large batch.
 */
const LEAST_IN_A_ROW = 4;
const MOST_IN_A_ROW = 32;
const PROBE = 'vidimus';

/** Keys in a hardware security module, by its PKCS#11 library. */
export class Pkcs11Kms extends KmsProvider {
  readonly #name: string;
  readonly #random: Random;
  readonly #sessions: number;
  readonly #pool: SessionPool;

  /**
   * A token that is not there, or a PIN that is refused, is no reason not to start; `assertReachable` tells.
   * @throws Error that tells the operator what to install or to correct.
   */
  static async open(options: Options): Promise<Pkcs11Kms> {
    const { name, settings } = options;
    const library = await Pkcs11Library.load(settings.library).catch((error: Error) => {
      throw new Error(`The key provider "${name}" cannot be used: ${error.message}.`);
    });
    const kms = new Pkcs11Kms(options, library);
    // A token that is not there yet is looked for anew by each call, and its probe says that it is down.
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
    return this.#make(tenantId, algorithm, async (thread, key) => publicJwkOf(Buffer.from(await thread.call('generate', key)), algorithm));
  }

  override async import(tenantId: string, material: PrivateKeyMaterial): Promise<StoredKey> {
    const { key: imported, publicJwk, algorithm } = parsePrivateKey(material);
    const der = imported.export({ format: 'der', type: 'pkcs8' });
    try {
      const secret = secretIn(der, algorithm);
      return await this.#make(tenantId, algorithm, async (thread, key) => {
        await thread.call('import', key, new Uint8Array(secret));
        return publicJwk;
      });
    } finally {
      der.fill(0);
    }
  }

  override async sign(key: SigningKey, data: ToSign): Promise<Uint8Array> {
    const [signature] = await this.#signInARow(nameOf(key), [toSign(key.handle.algorithm, data)]);
    if (signature === undefined) throw new Error('One signature was asked for, and none came.');
    return signature;
  }

  /** A token signs one thing at a time: several sessions share a batch. */
  override async signMany(key: SigningKey, datas: readonly ToSign[]): Promise<readonly Uint8Array[]> {
    const even = Math.ceil(datas.length / this.#sessions);
    const length = Math.min(MOST_IN_A_ROW, Math.max(LEAST_IN_A_ROW, even));
    const giveUp = new AbortController();
    const parts: Promise<readonly Uint8Array[]>[] = [];
    for (let at = 0; at < datas.length; at += length) {
      const part = datas.slice(at, at + length).map((data) => toSign(key.handle.algorithm, data));
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

  /** A key that does not sign for its public half, or that came too late for its caller, is removed. */
  async #make(
    tenantId: string,
    algorithm: SigningAlgorithm,
    create: (thread: SessionThread, key: KeyName) => Promise<PublicJwk | undefined>,
  ): Promise<StoredKey> {
    if (!this.algorithms.includes(algorithm)) throw this.#refused(`has no keys for ${algorithm}`);
    const keyId = this.#random.bytes(ID_BYTES).toString('hex');
    const handle = { kms: this.#name, keyId, algorithm };
    const key = nameOf({ tenantId, handle });
    try {
      const publicJwk = await this.#pool.run(async (thread, signal, isRepeated) => {
        // The first try may have got as far as the key.
        if (isRepeated) await thread.call('remove', key);
        try {
          const made = await create(thread, key);
          if (made === undefined || !(await isHalfOf(made, thread, key)))
            throw new TokenFault('other', 'the token made a key whose public half does not belong to it');
          signal.throwIfAborted();
          return made;
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
    if (error.kind === 'foreign') return this.#refused(`takes no private keys from outside (${error.message})`);
    this.#pool.withdraw(algorithm);
    return this.#refused(`makes no keys for ${algorithm} (${error.message})`);
  }

  #refused(what: string): Failure {
    return new Failure('invalid_input', `The token of the KMS provider "${this.#name}" ${what}.`);
  }
}

/** @returns the fault, which says so when the key could not be removed. */
async function withRemoval(error: unknown, key: KeyName, thread: SessionThread): Promise<unknown> {
  try {
    await thread.call('remove', key);
    return error;
  } catch {
    const { kind, message, code } = faultOf(error);
    return new TokenFault(kind, `${message}; ${whatBecame(key, false)}`, code);
  }
}

function nameOf({ tenantId, handle: { keyId, algorithm } }: Pick<SigningKey, 'tenantId' | 'handle'>): KeyName {
  return { id: keyId, label: `${tenantId}.${keyId}`, algorithm };
}

/** Tokens hash by mechanisms that not all of them have, and over the whole data, which would travel to them. */
function toSign(algorithm: SigningAlgorithm, data: ToSign): Uint8Array {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : data;
  const { hash: name } = CURVES[algorithm];
  // A copy of its own: what goes to a thread takes the whole buffer along that it is a part of.
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
