import { FairQueue, type Slot } from '../../application/queues/fair-queue.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';

/** Failures in a row after which a provider is left alone for a while. */
const MAX_FAILURES = 5;
const REST_MS = 2_000;
/** Calls that may wait for a slot; each holds little more than what it is about to sign. */
const MAX_WAITING = 5_000;
/** All calls are of one party, so they are made in the order of arrival. */
const PARTY = 'provider';

/**
 * What concerns one key or one request alone, such as a key that somebody destroyed: it says nothing about whether the
 * provider works, so that nobody else is held up by it. The message is for the log.
 */
export class KeyRefused extends Error {}

type Settings = {
  /** The configured name of the provider. */
  readonly name: string;
  readonly timeoutMs: number;
  /** Calls that are under way at the same time. */
  readonly atOnce: number;
};

/**
 * Calls to a provider that may hang, refuse or be gone. Each ends in time, only so many are under way, and a provider that
 * failed several times in a row is not asked for some seconds; then one call finds out whether it is back. What fails
 * becomes a `Failure` `unavailable` that says when to try again; why it failed is its `cause`, for the log.
 */
export class GuardedCalls {
  readonly #settings: Settings;
  readonly #queue: FairQueue;
  /** When the time of the calls under way is over; some of them hang beyond it. */
  readonly #ends = new Set<{ readonly at: number }>();
  #failures = 0;
  /** In milliseconds of this process; a provider that works has none. */
  #restsUntil = 0;
  #isProbing = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#queue = new FairQueue({ slots: settings.atOnce, waiting: MAX_WAITING }, () =>
      this.unavailable(new Error('too many calls wait for it')),
    );
  }

  /**
   * @param work has to end soon after `signal` says so: until then it takes up one of the calls.
   * @throws Failure `unavailable`; a `Failure` of `work` itself, such as `invalid_input`, is passed on.
   */
  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { timeoutMs } = this.#settings;
    const deadline = performance.now() + timeoutMs;
    const isProbe = this.#admit();
    const call = new AbortController();
    let slot: Slot | undefined;
    const timer = setTimeout(() => {
      call.abort(slot === undefined ? this.#noSlotError() : new Error(`no answer within ${timeoutMs} ms`));
    }, timeoutMs);
    try {
      slot = this.#queue.enter(PARTY) ?? (await this.#queue.wait(PARTY, call.signal));
      const result = await this.#call(work, slot, call.signal, deadline);
      this.#failures = 0;
      this.#restsUntil = 0;
      return result;
    } catch (error) {
      if (error instanceof Failure) throw error;
      if (!(error instanceof KeyRefused)) this.#count();
      throw this.unavailable(error);
    } finally {
      clearTimeout(timer);
      if (isProbe) this.#isProbing = false;
    }
  }

  /** @throws Failure `unavailable` while the provider is left alone. */
  assertReady(): void {
    if (this.#isLeftAlone()) throw this.#leftAlone();
  }

  #isLeftAlone(): boolean {
    return this.#restsUntil !== 0 && (this.#isProbing || performance.now() < this.#restsUntil);
  }

  #leftAlone(): Failure {
    return this.unavailable(new Error('it failed several times in a row and is left alone for some seconds'));
  }

  /** @returns whether this call is the one that finds out whether the provider is back. */
  #admit(): boolean {
    if (this.#restsUntil === 0) return false;
    if (this.#isLeftAlone()) throw this.#leftAlone();
    this.#isProbing = true;
    return true;
  }

  /** Where all calls hang, no call gets so far as to fail by itself, so the waiting calls count. */
  #noSlotError(): Failure {
    if (this.#hangs()) this.#count();
    return this.unavailable(new Error('other calls to it took all of the time'));
  }

  /** Rejects when `signal` is aborted. The slot is free when the work has really ended. */
  #call<T>(work: (signal: AbortSignal) => Promise<T>, slot: Slot, signal: AbortSignal, deadline: number): Promise<T> {
    const end = { at: deadline };
    this.#ends.add(end);
    return new Promise<T>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      const leave = () => {
        this.#ends.delete(end);
        this.#queue.leave(slot);
      };
      // Work that throws synchronously has ended, too.
      new Promise<T>((done) => done(work(signal))).then(resolve, reject).finally(leave);
    });
  }

  /** Whether all calls under way were given up long ago; one that is merely late ends soon afterwards. */
  #hangs(): boolean {
    const long = performance.now() - this.#settings.timeoutMs / 2;
    return [...this.#ends].every(({ at }) => at < long);
  }

  #count(): void {
    this.#failures++;
    if (this.#failures >= MAX_FAILURES) this.#restsUntil = performance.now() + REST_MS;
  }

  /** What a request is told when its key cannot be used. @param cause its message is for the log. */
  unavailable(cause: unknown): Failure {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new Failure(
      'unavailable',
      { message: 'the key cannot be used at present; try again', retryAfterSeconds: REST_MS / 1000 },
      { cause: new OperatorReason(`the key provider "${this.#settings.name}" does not work: ${reason}`) },
    );
  }
}
