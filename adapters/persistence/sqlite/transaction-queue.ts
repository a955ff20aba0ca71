import { AsyncLocalStorage } from 'node:async_hooks';
import { StoreUnavailableError } from '../../../application/ports/store.ts';
import { FairQueue } from '../../../application/queues/fair-queue.ts';

/** Limit of waiting steps and transactions, besides the running one. */
const MAX_WAITING = 9_999;
/** All steps and transactions have one queue key, so they run in the order of their arrival and none starves. */
const QUEUE_KEY = 'database';

/** Admits one transaction at a time on the only connection. A step passes at once while no transaction runs and nothing waits. */
export class TransactionQueue {
  readonly #queue = new FairQueue(
    { slots: 1, waiting: MAX_WAITING },
    () => new StoreUnavailableError('too many changes wait for the database'),
  );
  readonly #inside = new AsyncLocalStorage<{ ended: boolean }>();

  /** Runs `step` without yielding the thread. */
  async pass<T>(step: () => T): Promise<T> {
    this.assertNotNested();
    return this.#queue.isIdle ? step() : this.#queue.run(QUEUE_KEY, async () => step());
  }

  /** Runs `work` while nothing else runs. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    this.assertNotNested();
    const visit = { ended: false };
    return this.#queue.run(QUEUE_KEY, async () => {
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
