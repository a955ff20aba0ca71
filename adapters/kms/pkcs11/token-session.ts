import { LRUCache } from 'lru-cache';
import { boundedBytes } from '../../../application/tenant-cache/bounded.ts';
import { CURVES, type SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { MECHANISMS, offeredBy } from './algorithms.ts';
import { CKF, CKS_RW_USER, CKU_USER, type Cryptoki, type Handle } from './cryptoki.ts';
import { CKR, faultOf, TokenFault } from './fault.ts';
import { createPrivateKey, destroyAll, findPrivateKey, generatePair, type KeyName } from './token-keys.ts';

const KNOWN_KEY_BYTES = 512 * 1024;
/** More than any signature here takes: an operation whose room is too small would stay open. */
const ROOM_BYTES = 256;

/** What an opened token says of itself. */
export type OpenedToken = {
  readonly algorithms: readonly SigningAlgorithm[];
  /** The login is the whole process', so that another session may have done it. */
  readonly isLoggedIn: boolean;
};

/**
 * One session with one token. Every function may block for as long as the device likes, so that this lives in a thread
 * of its own; `session-thread.ts` is its remote control. What goes wrong is thrown as `TokenFault`.
 */
export class TokenSession {
  readonly #cryptoki: Cryptoki;
  /** By label and algorithm. Handles of objects are good for the session that found them. */
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

  /** In place of the session that there was. */
  open(label: string): OpenedToken {
    this.close();
    const slot = this.#slotOf(label);
    const session = this.#cryptoki.C_OpenSession(slot, CKF.serial | CKF.readWrite);
    this.#session = session;
    const mechanisms = new Set(this.#cryptoki.C_GetMechanismList(slot));
    const algorithms = offeredBy((mechanism) =>
      mechanisms.has(mechanism) ? this.#cryptoki.C_GetMechanismInfo(slot, mechanism) : undefined,
    );
    return { algorithms, isLoggedIn: this.#isLoggedIn(session) };
  }

  /** @throws TokenFault `pin` when it is refused. */
  login(pin: string): void {
    try {
      this.#cryptoki.C_Login(this.#opened(), CKU_USER, pin);
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
      // It is gone already.
    }
  }

  /** The session is there, and the user logged in. */
  assertLoggedIn(): void {
    if (!this.#isLoggedIn(this.#opened())) throw notLoggedIn();
  }

  /** @param datas what the mechanism takes: hashes for ECDSA, the data itself for EdDSA. */
  sign(key: KeyName, datas: readonly Uint8Array[]): Uint8Array[] {
    const place = `${key.label} ${key.algorithm}`;
    const known = this.#keys.get(place);
    try {
      const handle = known ?? this.#find(key);
      this.#keys.set(place, handle);
      return this.#signAll(key, handle, datas);
    } catch (error) {
      this.#keys.delete(place);
      // Somebody may have made the object anew, as a restored backup does.
      if (known === undefined || faultOf(error).kind !== 'key') throw error;
      return this.#signAll(key, this.#find(key), datas);
    }
  }

  /** @returns CKA_EC_POINT. */
  generate(key: KeyName): Uint8Array {
    return new Uint8Array(generatePair(this.#cryptoki, this.#opened(), key));
  }

  /** @param secret is overwritten. */
  import(key: KeyName, secret: Uint8Array): void {
    try {
      createPrivateKey(this.#cryptoki, this.#opened(), key, bufferOf(secret));
    } finally {
      secret.fill(0);
    }
  }

  remove(key: KeyName): void {
    this.forget(key);
    // Who is not logged in sees no private objects.
    this.assertLoggedIn();
    destroyAll(this.#cryptoki, this.#opened(), key);
  }

  /** The token may give the number of a destroyed object to another one. */
  forget(key: KeyName): void {
    this.#keys.delete(`${key.label} ${key.algorithm}`);
  }

  #signAll({ label, algorithm }: KeyName, handle: Handle, datas: readonly Uint8Array[]): Uint8Array[] {
    const { sign: mechanism } = MECHANISMS[algorithm];
    const length = 2 * CURVES[algorithm].bytes;
    return datas.map((data) => {
      this.#cryptoki.C_SignInit(this.#opened(), { mechanism }, handle);
      const signature = this.#cryptoki.C_Sign(this.#opened(), bufferOf(data), Buffer.alloc(ROOM_BYTES));
      if (signature.length !== length) throw new TokenFault('key', `the signature of ${label} has ${signature.length} bytes`);
      return new Uint8Array(signature);
    });
  }

  #find(key: KeyName): Handle {
    try {
      return findPrivateKey(this.#cryptoki, this.#opened(), key);
    } catch (error) {
      // Who is not logged in sees no private objects.
      if (faultOf(error).kind === 'key') this.assertLoggedIn();
      throw error;
    }
  }

  #slotOf(wanted: string): Handle {
    const tokens = this.#cryptoki
      .C_GetSlotList(true)
      .map((slot) => ({ slot, label: this.#labelOf(slot) }))
      .filter(({ label }) => label !== undefined);
    const [found, ...more] = tokens.filter(({ label }) => label === wanted);
    if (found === undefined) {
      const message = `no token is labelled "${wanted}"; the library shows ${tokens.length} initialized ones`;
      throw new TokenFault('token', message);
    }
    if (more.length > 0) throw new TokenFault('token', `more than one token is labelled "${wanted}"`);
    return found.slot;
  }

  /** Labels are padded with blanks. A slot that does not tell, or whose token was never initialized, has none. */
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

  #opened(): Handle {
    if (this.#session === undefined) throw new TokenFault('session', 'there is no session');
    return this.#session;
  }
}

function notLoggedIn(): TokenFault {
  return new TokenFault('session', 'the user is not logged in');
}

/** Messages between threads carry plain bytes; the package wants its own kind. */
function bufferOf(bytes: Uint8Array): Buffer {
  // Nothing at all has no address, and libraries refuse data without one.
  if (bytes.byteLength === 0) return Buffer.alloc(1).subarray(0, 0);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
