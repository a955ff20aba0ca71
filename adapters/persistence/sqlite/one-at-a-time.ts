import { AsyncLocalStorage } from 'node:async_hooks';
import { StoreUnavailable } from '../../../application/ports/store.ts';

/** Steps and transactions, under way and waiting. */
const MAX_PRESENT = 10_000;

/**
 * Lets one transaction in at a time where only one connection exists. A step passes at once while nobody is
 * inside; otherwise steps and transactions go in the order of their arrival, so none starves.
 */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve();
  #present = 0;
  readonly #inside = new AsyncLocalStorage<{ ended: boolean }>();

  /** Runs `step` without giving up the thread. */
  async pass<T>(step: () => T): Promise<T> {
    this.refuseNesting();
    return this.#present === 0 ? step() : this.#queue(async () => step());
  }

  /** Runs `work` while nothing else passes. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    this.refuseNesting();
    const visit = { ended: false };
    return this.#queue(async () => {
      try {
        return await this.#inside.run(visit, work);
      } finally {
        visit.ended = true;
      }
    });
  }

  #queue<T>(work: () => Promise<T>): Promise<T> {
    if (this.#present >= MAX_PRESENT)
      return Promise.reject(new StoreUnavailable('too much waits for the database'));
    this.#present++;
    const turn = this.#last.then(work);
    const leave = () => {
      this.#present--;
    };
    this.#last = turn.then(leave, leave);
    return turn;
  }

  /** @throws Error inside of a transaction: the one who waits there for somebody who waits outside would wait forever. */
  refuseNesting(): void {
    if (this.#inside.getStore()?.ended === false) {
      throw new Error('Inside a transaction only its own repositories may be used.');
    }
  }
}
