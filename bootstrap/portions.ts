import { setTimeout as pause } from 'node:timers/promises';

/** Longest rest between two portions. */
const MAX_PAUSE_MS = 50;

/** How long a run of a job may go on. */
export type Budget = {
  readonly milliseconds: number;
  /** Ends the run after the portion that is under way. */
  readonly signal: AbortSignal;
};

/**
 * Works through what is due until a portion finds less than it could have taken, or the budget is spent; the next run
 * goes on from there. Between two portions it rests for as long as the last one took, so that requests have half of
 * the time at least, however much is due.
 * @param portion @returns whether there may be more.
 */
export async function inPortions(budget: Budget, portion: () => Promise<boolean>): Promise<void> {
  const start = performance.now();
  for (;;) {
    const before = performance.now();
    if (!(await portion())) return;
    const after = performance.now();
    if (budget.signal.aborted || after - start >= budget.milliseconds) return;
    await pause(Math.min(MAX_PAUSE_MS, after - before));
  }
}
