import { LRUCache } from 'lru-cache';
import { boundedBytes } from '../../../application/tenant-cache/cache-memory.ts';
import { CURVES, type SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { MECHANISMS, supportedAlgorithms } from './algorithms.ts';
import { CKF, CKS_RW_USER, CKU_USER, type Cryptoki, type Handle } from './cryptoki.ts';
import { CKR, faultOf, TokenFault } from './fault.ts';
import { createPrivateKey, destroyAll, findPrivateKey, generatePair, type KeyName } from './token-keys.ts';

const KNOWN_KEY_BYTES = 512 * 1024;
/** Larger than any signature: an operation with too small a buffer would stay active. */
const SIGNATURE_BUFFER_BYTES = 256;

export type OpenedToken = {
  readonly algorithms: readonly SigningAlgorithm[];
  /** A login covers the whole process, so another session may have logged in. */
  readonly isLoggedIn: boolean;
};

/**
 * Session with one token. Every function may block for as long as the device does, so the object lives in a thread of its own;
 * `session-thread.ts` controls it remotely. Faults are thrown as `TokenFault`.
 */
export class TokenSession {
  readonly #cryptoki: Cryptoki;
  /** Handles by label and algorithm. They are valid for the session that found them. */
  readonly #keys = new LRUCache<string, Handle>(boundedBytes<Handle>(KNOWN_KEY_BYTES));
  #session: Handle | undefined;

  constructor(cryptoki: Cryptoki) {
    this.#cryptoki = cryptoki;
  }

  initialize(): void {
    try {
      this.#cryptoki.C_Initialize({ flags: CKF.osLocking });
    } catch (error) {
      if (faultOf(error).code !== CKR.alreadyInitialized) throw error;
    }
  }

  finalize(): void {
    this.#cryptoki.C_Finalize();
  }

  /** Replaces the current session. */
  open(label: string): OpenedToken {
    this.close();
    const slot = this.#slotOf(label);
    const session = this.#cryptoki.C_OpenSession(slot, CKF.serial | CKF.readWrite);
    this.#session = session;
    const mechanisms = new Set(this.#cryptoki.C_GetMechanismList(slot));
    const algorithms = supportedAlgorithms((mechanism) =>
      mechanisms.has(mechanism) ? this.#cryptoki.C_GetMechanismInfo(slot, mechanism) : undefined,
    );
    return { algorithms, isLoggedIn: this.#isLoggedIn(session) };
  }

  /** @throws TokenFault `pin` if the PIN is rejected. */
  login(pin: string): void {
    try {
      this.#cryptoki.C_Login(this.#currentSession(), CKU_USER, pin);
    } catch (error) {
      if (faultOf(error).code !== CKR.userAlreadyLoggedIn) throw error;
    }
  }

  close(): void {
    this.#keys.clear();
    const session = this.#session;
    this.#session = undefined;
    try {
      if (session !== undefined) this.#cryptoki.C_CloseSession(session);
    } catch {
      // The session is gone already.
    }
  }

  /** @throws TokenFault unless the session exists and the user is logged in. */
  assertLoggedIn(): void {
    if (!this.#isLoggedIn(this.#currentSession())) throw notLoggedIn();
  }

  /** @param datas input of the mechanism: hashes for ECDSA, the data itself for EdDSA. */
  sign(key: KeyName, datas: readonly Uint8Array[]): Uint8Array[] {
    const cacheKey = `${key.label} ${key.algorithm}`;
    const cachedHandle = this.#keys.get(cacheKey);
    try {
      const handle = cachedHandle ?? this.#find(key);
      this.#keys.set(cacheKey, handle);
      return this.#signAll(key, handle, datas);
    } catch (error) {
      this.#keys.delete(cacheKey);
      // The object may have been replaced, for example by a restored backup.
      if (cachedHandle === undefined || faultOf(error).kind !== 'key') throw error;
      return this.#signAll(key, this.#find(key), datas);
    }
  }

  /** @returns CKA_EC_POINT. */
  generate(key: KeyName): Uint8Array {
    return new Uint8Array(generatePair(this.#cryptoki, this.#currentSession(), key));
  }

  /** @param secret is overwritten afterwards. */
  import(key: KeyName, secret: Uint8Array): void {
    try {
      createPrivateKey(this.#cryptoki, this.#currentSession(), key, bufferOf(secret));
    } finally {
      secret.fill(0);
    }
  }

  remove(key: KeyName): void {
    this.forget(key);
    // Without a login, private objects are invisible.
    this.assertLoggedIn();
    destroyAll(this.#cryptoki, this.#currentSession(), key);
  }

  /** Forgets a handle: the token may reuse the number of a destroyed object. */
  forget(key: KeyName): void {
    this.#keys.delete(`${key.label} ${key.algorithm}`);
  }

  #signAll({ label, algorithm }: KeyName, handle: Handle, datas: readonly Uint8Array[]): Uint8Array[] {
    const { sign: mechanism } = MECHANISMS[algorithm];
    const length = 2 * CURVES[algorithm].bytes;
    return datas.map((data) => {
      this.#cryptoki.C_SignInit(this.#currentSession(), { mechanism }, handle);
      const signature = this.#cryptoki.C_Sign(this.#currentSession(), bufferOf(data), Buffer.alloc(SIGNATURE_BUFFER_BYTES));
      if (signature.length !== length) throw new TokenFault('key', `the signature of ${label} has ${signature.length} bytes`);
      return new Uint8Array(signature);
    });
  }

  #find(key: KeyName): Handle {
    try {
      return findPrivateKey(this.#cryptoki, this.#currentSession(), key);
    } catch (error) {
      // Without a login, private objects are invisible.
      if (faultOf(error).kind === 'key') this.assertLoggedIn();
      throw error;
    }
  }

  #slotOf(requestedLabel: string): Handle {
    const tokens = this.#cryptoki
      .C_GetSlotList(true)
      .map((slot) => ({ slot, label: this.#labelOf(slot) }))
      .filter(({ label }) => label !== undefined);
    const [match, ...more] = tokens.filter(({ label }) => label === requestedLabel);
    if (match === undefined) {
      const message = `no token has the label "${requestedLabel}"; the library shows ${tokens.length} initialized tokens`;
      throw new TokenFault('token', message);
    }
    if (more.length > 0) throw new TokenFault('token', `more than one token has the label "${requestedLabel}"`);
    return match.slot;
  }

  /** Labels are padded with blanks. A slot without information, or with a token that was never initialized, has none. */
  #labelOf(slot: Handle): string | undefined {
    try {
      const { label, flags } = this.#cryptoki.C_GetTokenInfo(slot);
      return (flags & CKF.tokenInitialized) === 0 ? undefined : label.trimEnd();
    } catch (error) {
      if (faultOf(error).code === CKR.notInitialized) throw error;
      return undefined;
    }
  }

  #isLoggedIn(session: Handle): boolean {
    return this.#cryptoki.C_GetSessionInfo(session).state === CKS_RW_USER;
  }

  #currentSession(): Handle {
    if (this.#session === undefined) throw new TokenFault('session', 'there is no session');
    return this.#session;
  }
}

function notLoggedIn(): TokenFault {
  return new TokenFault('session', 'the user is not logged in');
}

/** Messages between threads carry plain bytes; the package needs a Buffer. */
function bufferOf(bytes: Uint8Array): Buffer {
  // An empty array has no address, and libraries reject data without one.
  if (bytes.byteLength === 0) return Buffer.alloc(1).subarray(0, 0);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
