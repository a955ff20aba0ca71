import { setTimeout as pause } from 'node:timers/promises';

/** Longest rest between two batches. */
const MAX_PAUSE_MS = 50;

/** Monotonic time in milliseconds, and a pause of so many milliseconds. */
export type Timing = { now(): number; pause(milliseconds: number): Promise<unknown> };

const REAL_TIME: Timing = { now: () => performance.now(), pause };

/** How long a run of a job may go on. */
export type Budget = {
  readonly milliseconds: number;
  /** Ends the run after the batch that is under way. */
  readonly signal: AbortSignal;
};

/**
 * Works through what is due until a batch finds less than it could have taken, or the budget is spent; the next run
 * goes on from there. Between two batches it rests for as long as the last one took, so that requests have half of
 * the time at least, however much is due.
 * @param batch @returns whether there may be more.
 */
export async function inBatches(
  budget: Budget,
  batch: () => Promise<boolean>,
  time: Timing = REAL_TIME,
): Promise<void> {
  const start = time.now();
  for (;;) {
    const before = time.now();
    if (!(await batch())) return;
    const after = time.now();
    if (budget.signal.aborted || after - start >= budget.milliseconds) return;
    await time.pause(Math.min(MAX_PAUSE_MS, after - before));
  }
}
