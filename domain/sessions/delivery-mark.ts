import type { SessionOutcome } from './session.ts';

/** Longer than a call may take: a delivery that is pending still has lost its process. */
export const ABANDONED_AFTER_MS = 60_000;

/**
 * Stands beside a delivery that is under way, so that somebody else makes it once more when its process dies. Deliveries
 * that a wallet waits for have none: it has gone by then.
 */
export type DeliveryMark = {
  readonly id: string;
  /** Until somebody else makes it, by the time of the database; null once it is known what came of it. */
  readonly abandonedAfterMs: number | null;
};

/** @returns what is to stand beside the delivery that was written last, which is the last one. */
export function markOf({ deliveries }: SessionOutcome): DeliveryMark | undefined {
  const last = deliveries?.findLast(({ webhook }) => webhook !== 'claims');
  return last && { id: last.id, abandonedAfterMs: last.result === 'pending' ? ABANDONED_AFTER_MS : null };
}
