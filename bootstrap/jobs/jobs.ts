import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Container } from 'inversify';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Log } from '../../application/ports/log.ts';
import { Metrics } from '../../application/ports/metrics.ts';
import { Store } from '../../application/ports/store.ts';
import { type BackgroundTask, WorkQueue } from '../../application/ports/work-queue.ts';
import { RenewTrustLists } from '../../application/trust-lists/renew-trust-lists.ts';
import { clockWarning } from '../wiring/clock-check.ts';
import { find, obtain } from '../wiring/wire.ts';
import { batchLogger, CHAINS_RENEWED, type Job, jobsOf, LISTS_RENEWED } from './job-list.ts';
import { startRelay } from './relay.ts';

/**
 * A run processes due rows for this long. A number of batches would be no limit, because clients can add rows faster than it. The time is
 * well below the lease of each job in batches, so that no other instance begins meanwhile.
 */
const BUDGET_MS = 20_000;

/**
 * Starts maintenance that one instance at a time runs. Each job works in bounded batches and may run twice.
 * @param isScheduled false starts no timers. Tests use it: the timers follow the clock of the machine.
 * @returns a function that stops the jobs after the running batches.
 */
export function startJobs(container: Container, { isScheduled = true }: { readonly isScheduled?: boolean } = {}): () => Promise<void> {
  const { maintenance } = container.get(Store);
  const clock = container.get(Clock);
  const log = container.get(Log);
  const workQueue = find(container, WorkQueue);
  const metrics = find(container, Metrics);
  const renewTrustLists = obtain(container, RenewTrustLists);
  const renewKeyChains = obtain(container, RenewKeyChains);
  const logBatch = batchLogger(log);
  const jobs = jobsOf(container);
  /** Processes a task that this or another process offered. */
  const runTask = async (task: BackgroundTask): Promise<void> => {
    if (task.type === 'key-chains') logBatch(CHAINS_RENEWED, await renewKeyChains.renew(task.tenantId, clock.now()));
    else logBatch(LISTS_RENEWED, { count: Number(await renewTrustLists.renew(task)) });
  };
  const stopWork = workQueue?.serve(runTask);
  const stopRelay = startRelay(container);
  const stopping = new AbortController();
  const budget = { milliseconds: BUDGET_MS, signal: stopping.signal };
  const holder = randomUUID();
  const warnOfClock = clockWarning(container.get(Store), clock, log);
  const running = new Set<Promise<void>>();
  const start = (job: Job) => {
    const run = log.within({ job: job.name }, () => runLeased(job)).finally(() => running.delete(run));
    running.add(run);
  };
  for (const job of jobs) if (job.isEarly) start(job);
  const timers = isScheduled ? jobs.map((job) => setInterval(() => start(job), job.everySeconds * 1000)) : [];
  for (const timer of timers) timer.unref();

  async function runLeased(job: Job): Promise<void> {
    const startedAt = performance.now();
    try {
      const now = await maintenance.time();
      await warnOfClock(now);
      if (!(await maintenance.tryLease(job.name, holder, now, job.everySeconds))) return;
      await inBatches(budget, job.begin(now));
      metrics?.job(job.name, 'done', (performance.now() - startedAt) / 1000);
    } catch (error) {
      metrics?.job(job.name, 'failed', (performance.now() - startedAt) / 1000);
      log.error('a job failed and will run again', { job: job.name }, error);
    }
  }

  return async () => {
    for (const timer of timers) clearInterval(timer);
    stopping.abort();
    await Promise.all([stopWork?.(), stopRelay(), ...running]);
  };
}

/** The longest rest between two batches. */
const MAX_PAUSE_MS = 50;

/** The monotonic time in milliseconds, and a pause in milliseconds. */
export type Timing = { now(): number; pause(milliseconds: number): Promise<unknown> };

const REAL_TIME: Timing = { now: () => performance.now(), pause };

/** The limit of one run of a job. */
export type Budget = {
  readonly milliseconds: number;
  /** Ends the run after the batch that is under way. */
  readonly signal: AbortSignal;
};

/**
 * Processes due rows until a batch is not full or the budget is spent; the next run continues there. Between two batches it rests for as
 * long as the last batch took, so that requests have at least half of the time.
 * @param batch @returns true when there may be more.
 */
export async function inBatches(budget: Budget, batch: () => Promise<boolean>, time: Timing = REAL_TIME): Promise<void> {
  const start = time.now();
  for (;;) {
    const batchStart = time.now();
    if (!(await batch())) return;
    const batchEnd = time.now();
    if (budget.signal.aborted || batchEnd - start >= budget.milliseconds) return;
    await time.pause(Math.min(MAX_PAUSE_MS, batchEnd - batchStart));
  }
}
