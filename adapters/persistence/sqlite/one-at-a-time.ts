import { AsyncLocalStorage } from 'node:async_hooks';
import { StoreUnavailable } from '../../../application/ports/store.ts';
import { FairQueue } from '../../../application/queues/fair-queue.ts';

/** Steps and transactions that wait, besides the one that runs. */
const MAX_WAITING = 9_999;
/** Steps and transactions are of one party, so they run in the order of their arrival and none starves. */
const PARTY = 'database';

/**
 * Lets one transaction in at a time where only one connection exists. A step passes at once while no transaction runs and nothing waits.
 */
export class OneAtATime {
  readonly #queue = new FairQueue({ slots: 1, waiting: MAX_WAITING }, () => new StoreUnavailable('too much waits for the database'));
  readonly #inside = new AsyncLocalStorage<{ ended: boolean }>();

  /** Runs `step` without giving up the thread. */
  async pass<T>(step: () => T): Promise<T> {
    this.assertNotNested();
    return this.#queue.isIdle ? step() : this.#queue.run(PARTY, async () => step());
  }

  /** Runs `work` while nothing else passes. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    this.assertNotNested();
    const visit = { ended: false };
    return this.#queue.run(PARTY, async () => {
      try {
        return await this.#inside.run(visit, work);
      } finally {
        visit.ended = true;
      }
    });
  }

  /** @throws Error inside a transaction, where waiting for a step outside it would never end. */
  assertNotNested(): void {
    if (this.#inside.getStore()?.ended === false) throw new Error('Inside a transaction only its own repositories may be used.');
  }
}
