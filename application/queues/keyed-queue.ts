import { Failure } from '../../domain/shared/failure.ts';
import { FairQueue } from './fair-queue.ts';

/**
 * A queue whose parties are keys: work with the same key runs one after the other, in the order of arrival.
 * @param capacity calls with one key that run and wait; the next one fails with `unavailable`.
 */
export function createKeyedQueue(capacity: number): FairQueue {
  return new FairQueue(
    { slots: Number.POSITIVE_INFINITY, slotsOfParty: 1, waitingOfParty: capacity - 1 },
    () =>
      new Failure('unavailable', {
        message: 'too many are changing the same at this moment; try again',
        retryAfterSeconds: 1,
      }),
  );
}
