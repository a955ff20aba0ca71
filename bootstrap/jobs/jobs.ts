import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Container } from 'inversify';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Log } from '../../application/ports/log.ts';
import { Metrics } from '../../application/ports/metrics.ts';
import { Store } from '../../application/ports/store.ts';
import { type Task, WorkQueue } from '../../application/ports/work-queue.ts';
import { RenewTrustLists } from '../../application/trust-lists/renew-trust-lists.ts';
import { clockWarning } from '../wiring/clock-check.ts';
import { find, obtain } from '../wiring/wire.ts';
import { CHAINS_RENEWED, type Job, jobsOf, LISTS_RENEWED, telling } from './job-list.ts';
import { startRelay } from './relay.ts';

/**
 * A run works through what is due for so long: strangers can add rows faster than any fixed number of batches takes
 * away. Well below the lease of each job in batches, so that no other instance begins meanwhile.
 */
const BUDGET_MS = 20_000;

/**
 * Maintenance that one instance at a time runs; each works in bounded batches and may run twice.
 * @param isScheduled false starts no timers. Tests use it: the timers follow the clock of the machine.
 * @returns what stops them, after the batches that are under way.
 */
export function startJobs(container: Container, { isScheduled = true }: { readonly isScheduled?: boolean } = {}): () => Promise<void> {
  const { maintenance } = container.get(Store);
  const clock = container.get(Clock);
  const log = container.get(Log);
  const workQueue = find(container, WorkQueue);
  const metrics = find(container, Metrics);
  const renewTrustLists = obtain(container, RenewTrustLists);
  const renewKeyChains = obtain(container, RenewKeyChains);
  const tell = telling(log);
  const jobs = jobsOf(container);
  /** What another process offered, or this one. */
  const work = async (task: Task): Promise<void> => {
    if (task.type === 'key-chains') tell(CHAINS_RENEWED, await renewKeyChains.renew(task.tenantId, clock.now()));
    else tell(LISTS_RENEWED, { count: Number(await renewTrustLists.renew(task)) });
  };
  const stopWork = workQueue?.serve(work);
  const stopRelay = startRelay(container);
  const stopping = new AbortController();
  const budget = { milliseconds: BUDGET_MS, signal: stopping.signal };
  const holder = randomUUID();
  const tellOfClock = clockWarning(container.get(Store), clock, log);
  const running = new Set<Promise<void>>();
  const start = (job: Job) => {
    const run = log.within({ job: job.name }, () => runLeased(job)).finally(() => running.delete(run));
    running.add(run);
  };
  for (const job of jobs) if (job.isEarly) start(job);
  const timers = isScheduled ? jobs.map((job) => setInterval(() => start(job), job.everySeconds * 1000)) : [];
  for (const timer of timers) timer.unref();

  async function runLeased(job: Job): Promise<void> {
    const began = performance.now();
    try {
      const now = await maintenance.time();
      await tellOfClock(now);
      if (!(await maintenance.tryLease(job.name, holder, now, job.everySeconds))) return;
      await inBatches(budget, job.begin(now));
      metrics?.job(job.name, 'done', (performance.now() - began) / 1000);
    } catch (error) {
      metrics?.job(job.name, 'failed', (performance.now() - began) / 1000);
      log.error('a job failed and will run again', { job: job.name }, error);
    }
  }

  return async () => {
    for (const timer of timers) clearInterval(timer);
    stopping.abort();
    await Promise.all([stopWork?.(), stopRelay(), ...running]);
  };
}

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
 * Works through what is due until a batch finds less than it could have taken, or the budget is spent; the next run goes on from there.
 * Between two batches it rests for as long as the last one took, so that requests have half of the time at least, however much is due.
 * @param batch @returns whether there may be more.
 */
export async function inBatches(budget: Budget, batch: () => Promise<boolean>, time: Timing = REAL_TIME): Promise<void> {
  const start = time.now();
  for (;;) {
    const before = time.now();
    if (!(await batch())) return;
    const after = time.now();
    if (budget.signal.aborted || after - start >= budget.milliseconds) return;
    await time.pause(Math.min(MAX_PAUSE_MS, after - before));
  }
}
