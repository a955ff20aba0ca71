import { Failure } from '../../domain/shared/failure.ts';

/** Lets `atOnce` computations run together and `waiting` more queue for their turn, first come first served. */
export class Gate {
  readonly #atOnce: number;
  readonly #waiting: number;
  readonly #queue: (() => void)[] = [];
  #running = 0;

  constructor(settings: { readonly atOnce: number; readonly waiting: number }) {
    this.#atOnce = settings.atOnce;
    this.#waiting = settings.waiting;
  }

  /** @throws Failure `too_many_requests` when the queue is full. */
  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnce) this.#running++;
    else await this.#turn();
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  #turn(): Promise<void> {
    if (this.#queue.length >= this.#waiting) throw new Failure('too_many_requests', { retryAfterSeconds: 1 });
    return new Promise((resolve) => this.#queue.push(resolve));
  }

  /** Hands the place straight to the next in line, so that a newcomer cannot slip in between. */
  #leave(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#running--;
    else next();
  }
}
