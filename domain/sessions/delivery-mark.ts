import type { SessionOutcome } from './session.ts';

/** Exceeds the duration of a call: the process of a delivery that is still pending has died. */
export const ABANDONED_AFTER_MS = 60_000;

/**
 * Stored with a delivery in progress, so that another process repeats it if this one dies. Deliveries for which a wallet waits have none,
 * because the wallet is gone by then.
 */
export type DeliveryMark = {
  readonly id: string;
  /** Delay, by the time of the database, after which another process repeats it; null once the result is known. */
  readonly abandonedAfterMs: number | null;
};

/** @returns the mark for the delivery that was written last. */
export function deliveryMarkOf({ deliveries }: SessionOutcome): DeliveryMark | undefined {
  const lastDelivery = deliveries?.findLast(({ webhook }) => webhook !== 'claims');
  return lastDelivery && { id: lastDelivery.id, abandonedAfterMs: lastDelivery.result === 'pending' ? ABANDONED_AFTER_MS : null };
}
