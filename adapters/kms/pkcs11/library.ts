import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createKeyedQueue } from '../../../application/queues/keyed-queue.ts';
import { type Cryptoki, loadCryptoki } from './cryptoki.ts';
import { CKR, TokenFault } from './fault.ts';
import { SessionThread } from './session-thread.ts';
import type { OpenedToken } from './token-session.ts';

/** All sessions of a token are lost together; reopened ones form the next generation. */
type Token = {
  readonly label: string;
  generation: number;
  /** All sessions before this generation are closed. */
  cleared: number;
};

/** Session that a thread has open. */
type OpenSession = { readonly token: Token; generation: number };
const NONE = -1;

/** Keeps libraries referenced, because threads may run in them until the process ends. */
const REFERENCED: Cryptoki[] = [];
const OPENING = 'opening';

/**
 * PKCS#11 library, loaded once per process for all providers: the first session initializes it, the last provider finalizes it, and a login
 * to a token covers the whole process. Sessions are opened one at a time.
 */
export class Pkcs11Library {
  /** Libraries by file. */
  static readonly #loaded = new Map<string, Promise<Pkcs11Library>>();

  readonly file: string;
  readonly #tokens = new Map<string, Token>();
  readonly #threads = new Map<SessionThread, OpenSession | undefined>();
  /** Reasons by token and digest of the PIN. Devices lock their user after a few wrong PINs. */
  readonly #refused = new Map<string, string>();
  readonly #openings = createKeyedQueue(1_000);
  #users = 0;
  #isInitialized = false;

  /** @throws Error that tells the operator what to install or to correct. */
  static load(file: string): Promise<Pkcs11Library> {
    let real: string;
    try {
      real = realpathSync(file);
    } catch {
      return Promise.reject(new Error(`there is no PKCS#11 library ${file}; install the software of the vendor, or correct "library"`));
    }
    const loaded = Pkcs11Library.#loaded.get(real);
    if (loaded !== undefined) return loaded;
    const loading = loadCryptoki(real).then((cryptoki) => {
      REFERENCED.push(cryptoki);
      return new Pkcs11Library(real);
    });
    Pkcs11Library.#loaded.set(real, loading);
    loading.catch(() => Pkcs11Library.#loaded.delete(real));
    return loading;
  }

  constructor(file: string) {
    this.file = file;
  }

  /** Registers a provider that uses the library, until it calls `leave`. */
  enter(): void {
    this.#users++;
  }

  /**
   * @param threads of the provider, whose sessions are closed. The library is finalized with the last provider, unless a call to it is
   * still running.
   */
  leave(threads: readonly SessionThread[], signal: AbortSignal): Promise<void> {
    return this.#openings.run(OPENING, async () => {
      this.#users--;
      for (const thread of threads) this.drop(thread);
      const thread = threads.find(({ isEnded }) => !isEnded);
      if (thread === undefined || thread.isBusy || this.#users > 0 || !this.#isInitialized) return;
      if (!this.#isUsed(thread)) await this.#finalize(thread, signal);
    });
  }

  start(): SessionThread {
    const thread = new SessionThread(this.file);
    this.#threads.set(thread, undefined);
    thread.ended.then(() => this.#threads.delete(thread));
    return thread;
  }

  isOpen(thread: SessionThread): boolean {
    const session = this.#threads.get(thread);
    return session !== undefined && session.generation === session.token.generation;
  }

  /** The session of `thread` is lost, and so are all sessions of its generation. */
  lose(thread: SessionThread, { code }: TokenFault): void {
    const session = this.#threads.get(thread);
    if (session !== undefined && session.generation === session.token.generation) session.token.generation++;
    if (code === CKR.notInitialized) this.#isInitialized = false;
  }

  /** Discards the session of this thread only: its next call opens another one. */
  drop(thread: SessionThread): void {
    const session = this.#threads.get(thread);
    if (session !== undefined) session.generation = NONE;
  }

  /**
   * Opens a session in the thread, and logs in if no other session has.
   * @throws TokenFault with the reason if that fails.
   */
  open(thread: SessionThread, label: string, pin: string, signal: AbortSignal): Promise<OpenedToken> {
    return this.#openings.run(OPENING, async () => {
      // The call may have waited too long in the queue.
      signal.throwIfAborted();
      const pinKey = `${label} ${createHash('sha256').update(pin).digest('hex')}`;
      const rejectionReason = this.#refused.get(pinKey);
      if (rejectionReason !== undefined) throw new TokenFault('pin', rejectionReason);
      const token = this.#tokenOf(label);
      const session: OpenSession = { token, generation: NONE };
      this.#threads.set(thread, session);
      const openedToken = await this.#openSession(thread, token, signal);
      if (!openedToken.isLoggedIn) await this.#login(thread, pinKey, pin);
      // Other sessions may have been lost meanwhile: then this one is closed with them.
      session.generation = token.cleared;
      return openedToken;
    });
  }

  async #openSession(thread: SessionThread, token: Token, signal: AbortSignal): Promise<OpenedToken> {
    if (!this.#isInitialized) await this.#initialize(thread, signal);
    const { generation } = token;
    if (token.cleared < generation) {
      await this.#closeAll(signal, token);
      token.cleared = generation;
    }
    try {
      return await thread.call('open', token.label);
    } catch (error) {
      if (!(error instanceof TokenFault)) throw error;
      // Many libraries detect tokens only during initialization.
      const needsRescan = error.kind === 'token' && !this.#isUsed(thread);
      if (!needsRescan && error.code !== CKR.notInitialized) throw error;
      if (needsRescan) await this.#finalize(thread, signal);
    }
    await this.#initialize(thread, signal);
    return thread.call('open', token.label);
  }

  /**
   * Closes the sessions of one token, or of all. Each thread closes its session after its current call, so that no session is closed while
   * it is used, and no handle of a former session is taken for a new one.
   */
  async #closeAll(signal: AbortSignal, token?: Token): Promise<void> {
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    for (const [thread, session] of this.#threads) {
      if (token !== undefined && session?.token !== token) continue;
      // A session that is gone counts as closed.
      await Promise.race([thread.call('close').catch(() => {}), aborted]);
      signal.throwIfAborted();
    }
  }

  async #login(thread: SessionThread, pinKey: string, pin: string): Promise<void> {
    try {
      await thread.call('login', pin);
    } catch (error) {
      if (!(error instanceof TokenFault) || error.kind !== 'pin') throw error;
      const reason = `the PIN was rejected (${error.message}) and is not retried; correct it and restart`;
      this.#refused.set(pinKey, reason);
      throw new TokenFault('pin', reason);
    }
  }

  async #initialize(thread: SessionThread, signal: AbortSignal): Promise<void> {
    this.#isInitialized = false;
    await this.#closeAll(signal);
    await thread.call('initialize');
    this.#isInitialized = true;
  }

  async #finalize(thread: SessionThread, signal: AbortSignal): Promise<void> {
    await this.#closeAll(signal);
    this.#isInitialized = false;
    await thread.call('finalize');
  }

  /** Returns true if another thread has a session, or is inside the library. */
  #isUsed(but: SessionThread): boolean {
    return [...this.#threads.keys()].some((thread) => thread !== but && (thread.isBusy || this.isOpen(thread)));
  }

  #tokenOf(label: string): Token {
    const existingToken = this.#tokens.get(label);
    if (existingToken !== undefined) return existingToken;
    const token: Token = { label, generation: 0, cleared: 0 };
    this.#tokens.set(label, token);
    return token;
  }
}
