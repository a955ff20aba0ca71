import type { SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { GuardedCalls, KeyRefused } from '../guarded-calls.ts';
import { TokenFault } from './fault.ts';
import type { Pkcs11Library } from './library.ts';
import type { SessionThread } from './session-thread.ts';
import type { KeyName } from './token-keys.ts';

type Settings = {
  /** The configured name of the provider. */
  readonly name: string;
  /** Label of the token. */
  readonly token: string;
  readonly pin: string;
  readonly sessions: number;
  readonly timeoutMs: number;
};

/** What is done in a session. It may be called a second time when the session was lost, and is told so. */
type Work<T> = (thread: SessionThread, signal: AbortSignal, isRepeated: boolean) => Promise<T>;

/**
 * The sessions of one provider. They are opened as they are needed, up to the configured number, and each does one
 * thing at a time; what waits is bounded and ends in time. Lost sessions are opened anew, and the work is done once more.
 */
export class SessionPool {
  readonly #settings: Settings;
  readonly #library: Pkcs11Library;
  readonly #calls: GuardedCalls;
  readonly #threads = new Set<SessionThread>();
  /** The one that was used last is taken first, as it knows the keys that are in use. */
  readonly #idle: SessionThread[] = [];
  #algorithms: readonly SigningAlgorithm[] | undefined;
  /** Why the last call failed, for health: later ones are refused without a look at the token. */
  #lastFault: Error | undefined;
  #isClosed = false;

  constructor(library: Pkcs11Library, settings: Settings) {
    this.#settings = settings;
    this.#library = library;
    this.#calls = new GuardedCalls({ name: settings.name, timeoutMs: settings.timeoutMs, atOnce: settings.sessions });
    library.enter();
  }

  /** Of the keys that the token can make; undefined until it was seen. */
  get algorithms(): readonly SigningAlgorithm[] | undefined {
    return this.#algorithms;
  }

  /** @throws Failure `unavailable` while the token is left alone. */
  assertReady(): void {
    this.#calls.assertReady();
  }

  get lastFault(): Error | undefined {
    return this.#lastFault;
  }

  /** @throws Failure `unavailable`; TokenFault `curve` and `foreign` and a Failure of `work` are passed on. */
  async run<T>(work: Work<T>): Promise<T> {
    const answer = await this.#calls.run(async (signal) => {
      signal.addEventListener('abort', () => this.#failed(signal.reason));
      const thread = this.#take();
      try {
        const result = await this.#done(thread, signal, work);
        this.#lastFault = undefined;
        return { result };
      } catch (error) {
        if (error instanceof TokenFault && (error.kind === 'curve' || error.kind === 'foreign')) return { refusal: error };
        if (error instanceof TokenFault && error.kind === 'key') throw new KeyRefused(error.message);
        // Whatever state it left the session in is not worked with.
        this.#library.drop(thread);
        this.#failed(error);
        throw error;
      } finally {
        this.#putBack(thread);
      }
    });
    if ('refusal' in answer) throw answer.refusal;
    return answer.result;
  }

  /** A token that has no such curve does not get it later. */
  withdraw(algorithm: SigningAlgorithm): void {
    this.#algorithms = this.#algorithms?.filter((offered) => offered !== algorithm);
  }

  /** In all sessions; see `TokenSession.forget`. */
  forget(key: KeyName): void {
    // A session that does not answer is replaced by one that knows no handles.
    for (const thread of this.#threads) thread.call('forget', key).catch(() => {});
  }

  /** A session in which the library does not come back within the time of a call is left to itself. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const threads = [...this.#threads];
    const signal = AbortSignal.timeout(this.#settings.timeoutMs);
    const isOver = new Promise((resolve) => signal.addEventListener('abort', resolve));
    const leaving = Promise.allSettled(threads.map((thread) => thread.call('close'))).then(() => this.#library.leave(threads, signal));
    // Whatever the library says to it, its threads end below.
    await Promise.race([leaving.catch(() => {}), isOver]);
    const ending = threads.map((thread) => [thread.isBusy, thread.end()] as const);
    await Promise.allSettled(ending.filter(([isBusy]) => !isBusy).map(([, ended]) => ended));
  }

  #failed(error: unknown): void {
    if (error instanceof Error) this.#lastFault = error;
  }

  async #done<T>(thread: SessionThread, signal: AbortSignal, work: Work<T>): Promise<T> {
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

  /** There is one, since no more calls are under way than sessions are allowed. */
  #take(): SessionThread {
    if (this.#isClosed) throw new Error('it is closed');
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const thread = this.#library.start();
    this.#threads.add(thread);
    return thread;
  }

  #putBack(thread: SessionThread): void {
    if (thread.isEnded) this.#threads.delete(thread);
    else this.#idle.push(thread);
  }
}
