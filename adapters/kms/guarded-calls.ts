import { Failure, OperatorReason } from '../../domain/shared/failure.ts';

/** Failures in a row after which a provider is left alone for a while. */
const MAX_FAILURES = 5;
const REST_MS = 2_000;
/** Calls that may wait for their turn; each holds little more than what it is about to sign. */
const MAX_WAITING = 5_000;

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
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;
  /** When the time of the calls under way is over; some of them hang beyond it. */
  readonly #ends = new Set<{ readonly at: number }>();
  #failures = 0;
  /** In milliseconds of this process; a provider that works has none. */
  #restsUntil = 0;
  #isProbing = false;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /**
   * @param work has to end soon after `signal` says so: until then it takes up one of the calls.
   * @throws Failure `unavailable`; a `Failure` of `work` itself, such as `invalid_input`, is passed on.
   */
  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#settings.timeoutMs;
    const isProbe = this.#admit();
    try {
      await this.#turn(deadline);
      const result = await this.#within(work, deadline);
      this.#failures = 0;
      this.#restsUntil = 0;
      return result;
    } catch (error) {
      if (error instanceof Failure) throw error;
      if (!(error instanceof KeyRefused)) this.#count();
      throw this.unavailable(error);
    } finally {
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

  /** Waits until fewer calls are under way. */
  async #turn(deadline: number): Promise<void> {
    if (this.#underWay < this.#settings.atOnce) {
      this.#underWay++;
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) throw this.unavailable(new Error('too many calls wait for it'));
    await new Promise<void>((resolve, reject) => {
      const next = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(next), 1);
        // Where everything hangs, no call gets so far as to fail by itself.
        if (this.#hangs()) this.#count();
        reject(this.unavailable(new Error('other calls to it took all of the time')));
      }, deadline - performance.now());
      this.#waiting.push(next);
    });
  }

  /** What takes longer than its time is given up; its place is free when it has really ended. */
  #within<T>(work: (signal: AbortSignal) => Promise<T>, deadline: number): Promise<T> {
    const aborting = new AbortController();
    const end = { at: deadline };
    this.#ends.add(end);
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        const error = new Error(`no answer within ${this.#settings.timeoutMs} ms`);
        aborting.abort(error);
        reject(error);
      }, deadline - performance.now());
      const letGo = () => {
        clearTimeout(timer);
        this.#ends.delete(end);
        const next = this.#waiting.shift();
        if (next === undefined) this.#underWay--;
        else next();
      };
      // What throws before it waits for anything has ended, too.
      new Promise<T>((done) => done(work(aborting.signal))).then(resolve, reject).finally(letGo);
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
