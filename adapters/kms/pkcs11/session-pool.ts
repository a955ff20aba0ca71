import type { SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { GuardedCalls, KeyRejectedError } from '../guarded-calls.ts';
import { TokenFault } from './fault.ts';
import type { Pkcs11Library } from './library.ts';
import type { SessionThread } from './session-thread.ts';
import type { KeyName } from './token-keys.ts';

type Settings = {
  /** Configured name of the provider. */
  readonly name: string;
  readonly token: string;
  readonly pin: string;
  readonly sessions: number;
  readonly timeoutMs: number;
};

/** Work in a session. It is repeated once if the session was lost; `isRepeated` is true then. */
type SessionWork<T> = (thread: SessionThread, signal: AbortSignal, isRepeated: boolean) => Promise<T>;

/**
 * Sessions of one provider. They are opened on demand up to the configured number, and each runs one operation at a time; waiting calls are
 * limited in number and time. A lost session is reopened, and its work repeated once.
 */
export class SessionPool {
  readonly #settings: Settings;
  readonly #library: Pkcs11Library;
  readonly #calls: GuardedCalls;
  readonly #threads = new Set<SessionThread>();
  /** The most recently used session is taken first, because the handles of its keys are cached. */
  readonly #idle: SessionThread[] = [];
  #algorithms: readonly SigningAlgorithm[] | undefined;
  /** Reason of the last failure, for health checks: while the circuit is open, calls fail without accessing the token. */
  #lastFault: Error | undefined;
  #isClosed = false;

  constructor(library: Pkcs11Library, settings: Settings) {
    this.#settings = settings;
    this.#library = library;
    this.#calls = new GuardedCalls({ name: settings.name, timeoutMs: settings.timeoutMs, atOnce: settings.sessions });
    library.enter();
  }

  /** Algorithms of the keys that the token can create; undefined before the first session. */
  get algorithms(): readonly SigningAlgorithm[] | undefined {
    return this.#algorithms;
  }

  /** @throws Failure `unavailable` while the circuit is open. */
  assertReady(): void {
    this.#calls.assertReady();
  }

  get lastFault(): Error | undefined {
    return this.#lastFault;
  }

  /** @throws Failure `unavailable`; TokenFault `curve` and `foreign` and a Failure of `work` are passed on. */
  async run<T>(work: SessionWork<T>): Promise<T> {
    const answer = await this.#calls.run(async (signal) => {
      signal.addEventListener('abort', () => this.#failed(signal.reason));
      const thread = this.#acquire();
      try {
        const result = await this.#runInSession(thread, signal, work);
        this.#lastFault = undefined;
        return { result };
      } catch (error) {
        if (error instanceof TokenFault && (error.kind === 'curve' || error.kind === 'foreign')) return { refusal: error };
        if (error instanceof TokenFault && error.kind === 'key') throw new KeyRejectedError(error.message);
        // The session may be in any state, so it is not used again.
        this.#library.drop(thread);
        this.#failed(error);
        throw error;
      } finally {
        this.#release(thread);
      }
    });
    if ('refusal' in answer) throw answer.refusal;
    return answer.result;
  }

  /** Removes an algorithm: a token that lacks its curve does not get it later. */
  withdraw(algorithm: SigningAlgorithm): void {
    this.#algorithms = this.#algorithms?.filter((supported) => supported !== algorithm);
  }

  /** Forgets the handle of the key in all sessions; see `TokenSession.forget`. */
  forget(key: KeyName): void {
    // A session that does not respond is replaced by one without handles.
    for (const thread of this.#threads) thread.call('forget', key).catch(() => {});
  }

  /** Closes the pool. A session whose library call exceeds the timeout is abandoned. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const threads = [...this.#threads];
    const signal = AbortSignal.timeout(this.#settings.timeoutMs);
    const isOver = new Promise((resolve) => signal.addEventListener('abort', resolve));
    const leaving = Promise.allSettled(threads.map((thread) => thread.call('close'))).then(() => this.#library.leave(threads, signal));
    // The threads end below, whatever the library answers.
    await Promise.race([leaving.catch(() => {}), isOver]);
    const ending = threads.map((thread) => [thread.isBusy, thread.end()] as const);
    await Promise.allSettled(ending.filter(([isBusy]) => !isBusy).map(([, ended]) => ended));
  }

  #failed(error: unknown): void {
    if (error instanceof Error) this.#lastFault = error;
  }

  async #runInSession<T>(thread: SessionThread, signal: AbortSignal, work: SessionWork<T>): Promise<T> {
    if (!this.#library.isOpen(thread)) await this.#open(thread, signal);
    try {
      return await work(thread, signal, false);
    } catch (error) {
      if (!(error instanceof TokenFault) || error.kind !== 'session') throw error;
      this.#library.lose(thread, error);
    }
    await this.#open(thread, signal);
    return work(thread, signal, true);
  }

  async #open(thread: SessionThread, signal: AbortSignal): Promise<void> {
    if (this.#isClosed) throw new Error('it is closed');
    const { token, pin } = this.#settings;
    const { algorithms } = await this.#library.open(thread, token, pin, signal);
    this.#algorithms ??= algorithms;
  }

  /** A session is available, because there are no more calls than sessions. */
  #acquire(): SessionThread {
    if (this.#isClosed) throw new Error('it is closed');
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const thread = this.#library.start();
    this.#threads.add(thread);
    return thread;
  }

  #release(thread: SessionThread): void {
    if (thread.isEnded) this.#threads.delete(thread);
    else this.#idle.push(thread);
  }
}
