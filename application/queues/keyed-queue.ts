import { Failure } from '../../domain/shared/failure.ts';
import { FairQueue } from './fair-queue.ts';

/**
 * A queue that runs work with the same key sequentially, in order of arrival.
 * @param capacity running and waiting calls per key; the next one fails with `unavailable`.
 */
export function createKeyedQueue(capacity: number): FairQueue {
  return new FairQueue(
    { slots: Number.POSITIVE_INFINITY, slotsPerKey: 1, waitingPerKey: capacity - 1 },
    () => new Failure('unavailable', { message: 'too many concurrent changes of the same object; try again', retryAfterSeconds: 1 }),
  );
}
