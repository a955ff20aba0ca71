import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createKeyedQueue } from '../../../application/queues/keyed-queue.ts';
import { type Cryptoki, loadCryptoki } from './cryptoki.ts';
import { CKR, TokenFault } from './fault.ts';
import { SessionThread } from './session-thread.ts';
import type { OpenedToken } from './token-session.ts';

/** All sessions of a token are lost together, and opened anew as the next generation. */
type Token = {
  readonly label: string;
  generation: number;
  /** The generation before which all sessions are closed. */
  cleared: number;
};

/** What a thread has open. */
type Place = { readonly token: Token; generation: number };
const NONE = -1;

/** Nothing is called by these: they keep libraries in memory, as threads of their own may run in them to the end. */
const KEPT: Cryptoki[] = [];
const OPENING = 'opening';

/**
 * A PKCS#11 library, which this process has once however many providers use it: it is initialized by the first session and
 * finalized with the last provider, and a login to a token is the whole process'. Sessions are opened one at a time.
 */
export class Pkcs11Library {
  /** By file. */
  static readonly #loaded = new Map<string, Promise<Pkcs11Library>>();

  readonly file: string;
  readonly #tokens = new Map<string, Token>();
  readonly #threads = new Map<SessionThread, Place | undefined>();
  /** Reasons by token and digest of the PIN. Devices lock their user after few wrong ones. */
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
    const known = Pkcs11Library.#loaded.get(real);
    if (known !== undefined) return known;
    const loading = loadCryptoki(real).then((cryptoki) => {
      KEPT.push(cryptoki);
      return new Pkcs11Library(real);
    });
    Pkcs11Library.#loaded.set(real, loading);
    loading.catch(() => Pkcs11Library.#loaded.delete(real));
    return loading;
  }

  constructor(file: string) {
    this.file = file;
  }

  /** A provider begins to use it; `leave` is its end. */
  enter(): void {
    this.#users++;
  }

  /**
   * @param threads of the provider, whose sessions are closed. The library is finalized with the last provider, unless a
   *   call to it is still under way.
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
    const at = this.#threads.get(thread);
    return at !== undefined && at.generation === at.token.generation;
  }

  /** What `thread` had open is gone, and so are the sessions that were opened with it. */
  lose(thread: SessionThread, { code }: TokenFault): void {
    const at = this.#threads.get(thread);
    if (at !== undefined && at.generation === at.token.generation) at.token.generation++;
    if (code === CKR.notInitialized) this.#isInitialized = false;
  }

  /** Of this thread alone: its next call opens another session. */
  drop(thread: SessionThread): void {
    const at = this.#threads.get(thread);
    if (at !== undefined) at.generation = NONE;
  }

  /**
   * Opens a session in the thread, and logs in if no other session has.
   * @throws TokenFault that says why there is none.
   */
  open(thread: SessionThread, label: string, pin: string, signal: AbortSignal): Promise<OpenedToken> {
    return this.#openings.run(OPENING, async () => {
      // It waited too long for others.
      signal.throwIfAborted();
      const place = `${label} ${createHash('sha256').update(pin).digest('hex')}`;
      const refused = this.#refused.get(place);
      if (refused !== undefined) throw new TokenFault('pin', refused);
      const token = this.#tokenOf(label);
      const at: Place = { token, generation: NONE };
      this.#threads.set(thread, at);
      const opened = await this.#openSession(thread, token, signal);
      if (!opened.isLoggedIn) await this.#login(thread, place, pin);
      // Others may have lost theirs meanwhile: then this one is closed with them.
      at.generation = token.cleared;
      return opened;
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
      // Many libraries look for tokens only when they are initialized.
      const isToLookAnew = error.kind === 'token' && !this.#isUsed(thread);
      if (!isToLookAnew && error.code !== CKR.notInitialized) throw error;
      if (isToLookAnew) await this.#finalize(thread, signal);
    }
    await this.#initialize(thread, signal);
    return thread.call('open', token.label);
  }

  /**
   * Of one token, or of all. Each thread closes its session when what it does has ended, so that no session is closed
   * while it is used, and no number of a former one is taken for a new one.
   */
  async #closeAll(signal: AbortSignal, token?: Token): Promise<void> {
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    for (const [thread, place] of this.#threads) {
      if (token !== undefined && place?.token !== token) continue;
      // A session that is gone is closed.
      await Promise.race([thread.call('close').catch(() => {}), aborted]);
      signal.throwIfAborted();
    }
  }

  async #login(thread: SessionThread, place: string, pin: string): Promise<void> {
    try {
      await thread.call('login', pin);
    } catch (error) {
      if (!(error instanceof TokenFault) || error.kind !== 'pin') throw error;
      const reason = `the PIN was refused (${error.message}) and is not tried again; correct it and restart`;
      this.#refused.set(place, reason);
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

  /** Another thread has a session, or is inside the library. */
  #isUsed(but: SessionThread): boolean {
    return [...this.#threads.keys()].some((thread) => thread !== but && (thread.isBusy || this.isOpen(thread)));
  }

  #tokenOf(label: string): Token {
    const known = this.#tokens.get(label);
    if (known !== undefined) return known;
    const token: Token = { label, generation: 0, cleared: 0 };
    this.#tokens.set(label, token);
    return token;
  }
}
