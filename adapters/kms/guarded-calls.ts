import { FairQueue, type Slot } from '../../application/queues/fair-queue.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';

/** Consecutive failures after which a provider is not called for a while. */
const MAX_FAILURES = 5;
const REST_MS = 2_000;
/** Limit of calls that wait for a slot; each holds little more than the text to sign. */
const MAX_WAITING = 5_000;
/** All calls have one queue key, so they run in the order of arrival. */
const QUEUE_KEY = 'provider';

/**
 * Failure of one key or one request, such as a destroyed key: it says nothing about the provider, so other calls continue. The message is
 * for the log.
 */
export class KeyRejectedError extends Error {}

type Settings = {
  /** Configured name of the provider. */
  readonly name: string;
  readonly timeoutMs: number;
  /** Number of concurrent calls. */
  readonly atOnce: number;
};

/**
 * Guards calls to a provider that may hang, fail or be unavailable. Each call ends in time, concurrency is limited, and a provider that
 * failed several times in a row is not called for some seconds; then one call probes it (circuit breaker). Failures become a `Failure`
 * `unavailable` with a retry time; the reason is its `cause`, for the log.
 */
export class GuardedCalls {
  readonly #settings: Settings;
  readonly #queue: FairQueue;
  /** Deadlines of the running calls; some of them hang longer. */
  readonly #ends = new Set<{ readonly at: number }>();
  #failures = 0;
  /** Monotonic time in milliseconds; 0 for a provider that works. */
  #restsUntil = 0;
  #isProbing = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#queue = new FairQueue({ slots: settings.atOnce, waiting: MAX_WAITING }, () =>
      this.unavailable(new Error('too many calls wait for it')),
    );
  }

  /**
   * @param work has to end soon after `signal` is aborted: until then it occupies a slot.
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
      slot = this.#queue.enter(QUEUE_KEY) ?? (await this.#queue.wait(QUEUE_KEY, call.signal));
      const result = await this.#call(work, slot, call.signal, deadline);
      this.#failures = 0;
      this.#restsUntil = 0;
      return result;
    } catch (error) {
      if (error instanceof Failure) throw error;
      if (!(error instanceof KeyRejectedError)) this.#count();
      throw this.unavailable(error);
    } finally {
      clearTimeout(timer);
      if (isProbe) this.#isProbing = false;
    }
  }

  /** @throws Failure `unavailable` while the circuit is open. */
  assertReady(): void {
    if (this.#isCircuitOpen()) throw this.#circuitOpenError();
  }

  #isCircuitOpen(): boolean {
    return this.#restsUntil !== 0 && (this.#isProbing || performance.now() < this.#restsUntil);
  }

  #circuitOpenError(): Failure {
    return this.unavailable(new Error('it failed several times in a row and is not called for some seconds'));
  }

  /** @returns true if this call probes the provider. */
  #admit(): boolean {
    if (this.#restsUntil === 0) return false;
    if (this.#isCircuitOpen()) throw this.#circuitOpenError();
    this.#isProbing = true;
    return true;
  }

  /** If all calls hang, none of them fails by itself, so the timeouts of waiting calls count. */
  #noSlotError(): Failure {
    if (this.#hangs()) this.#count();
    return this.unavailable(new Error('other calls to it used up the timeout'));
  }

  /** Rejects when `signal` is aborted. The slot is released when the work has really ended. */
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

  /** Returns true if all running calls timed out long ago; a call that is merely late ends soon afterwards. */
  #hangs(): boolean {
    const long = performance.now() - this.#settings.timeoutMs / 2;
    return [...this.#ends].every(({ at: deadline }) => deadline < long);
  }

  #count(): void {
    this.#failures++;
    if (this.#failures >= MAX_FAILURES) this.#restsUntil = performance.now() + REST_MS;
  }

  /** Error for a request whose key cannot be used. @param cause its message is for the log. */
  unavailable(cause: unknown): Failure {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new Failure(
      'unavailable',
      { message: 'the key cannot be used at present; try again', retryAfterSeconds: REST_MS / 1000 },
      { cause: new OperatorReason(`the key provider "${this.#settings.name}" does not work: ${reason}`) },
    );
  }
}
