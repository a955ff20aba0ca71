import { randomUUID } from 'node:crypto';
import type { Container } from 'inversify';
import { PruneAuditLog } from '../application/audit/prune-audit-log.ts';
import { MeasureStored } from '../application/health/measure-stored.ts';
import { TellFallen } from '../application/issuance/tell-fallen.ts';
import { RenewKeyChains } from '../application/keys/renew-key-chains.ts';
import { DestroyRetiredKeys } from '../application/keys/retired-keys.ts';
import { Clock } from '../application/ports/clock.ts';
import { EventPublisher } from '../application/ports/event-publisher.ts';
import type { FollowedPlace } from '../application/ports/followed-wallets.ts';
import { Log } from '../application/ports/log.ts';
import type { EndingTrustList } from '../application/ports/maintenance.ts';
import { Metrics } from '../application/ports/metrics.ts';
import { Store } from '../application/ports/store.ts';
import { type Task, WorkQueue } from '../application/ports/work-queue.ts';
import { CleanUpSessions } from '../application/sessions/clean-up-sessions.ts';
import { ExpireSessions } from '../application/sessions/expire-sessions.ts';
import { FinishDeliveries } from '../application/sessions/finish-deliveries.ts';
import { FollowWallets } from '../application/status-lists/follow-wallets.ts';
import { FulfilRevocations } from '../application/status-lists/fulfil-revocations.ts';
import { RemoveEndedTenants } from '../application/tenants/remove-ended-tenants.ts';
import { RenewTrustLists } from '../application/trust-lists/renew-trust-lists.ts';
import { tellHeldLists } from '../application/trust-lists/tell-held-lists.ts';
import { EndOverdueAnswers } from '../application/verification/end-overdue-answers.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { inBatches } from './batches.ts';
import { clockWarning } from './clock-check.ts';
import { startRelay } from './relay.ts';
import { find, obtain } from './wire.ts';

export type Job = {
  readonly name: string;
  /** Also run at once: somebody looks at what it finds. */
  readonly isEarly?: true;
  readonly everySeconds: number;
  /** Begins a run. @param now the time of the database. @returns what works through one batch, and says whether there may be more. */
  readonly begin: (now: Date) => () => Promise<boolean>;
};

/** A job of which each batch begins anew. @param batch @returns whether there may be more. */
const batchJob = (name: string, everySeconds: number, batch: (now: Date) => Promise<boolean>): Job => ({
  name,
  everySeconds,
  begin: (now) => () => batch(now),
});

/** Runs on one process at a time; those before it tell what they found for a while. */
const measureJob = (measureStored: MeasureStored, metrics: Metrics): Job => ({
  name: 'measure',
  everySeconds: 300,
  isEarly: true,
  begin: () => measureStored.begin(metrics, TENANTS),
});

const LISTS_RENEWED = 'trust lists signed anew';
const CHAINS_RENEWED = 'key chains renewed';

/** Rows that one batch of a job touches. */
const BATCH = 500;
/** Sessions that one batch of a walk visits; most of them are not due. */
const VISITED = 2_000;
/** Rows of removed tenants that one batch removes. */
const REMOVED = 2_000;
/** Each is signed, possibly by a key far away. */
const TRUST_LISTS = 10;
/** Each is a transaction of its own. */
const REVOCATIONS = 100;
/** Each is a call of a backend, all at the same time. */
const DELIVERIES = 16;
/** Each is a call of its provider. */
const KEYS = 100;
/** Followed wallet statuses that one batch visits; most of them have not ended. */
const FOLLOWED = 2_000;
/** A copy of a list that ended and that nobody asked for is kept so much longer. */
const KEPT_LISTS_MS = 7 * 86_400_000;
/** Whose key chains or audit logs one batch looks at. */
const TENANTS = 100;
/**
 * A run works through what is due for so long: strangers can add rows faster than any fixed number of batches takes
 * away. Well below the lease of each job in batches, so that no other instance begins meanwhile.
 */
const BUDGET_MS = 20_000;

/** Logs what a batch did. @returns whether a batch that did so much was full. */
const telling = (log: Log) => (done: string, counts: Readonly<Record<string, number>>) => {
  const sum = Object.values(counts).reduce((all, count) => all + count, 0);
  if (sum > 0) log.info(done, counts);
  return sum >= BATCH;
};

/** All jobs of a service. They keep what they need from one run to the next. */
export function jobsOf(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const clock = container.get(Clock);
  const log = container.get(Log);
  const workQueue = find(container, WorkQueue);
  const metrics = find(container, Metrics);
  const measureStored = obtain(container, MeasureStored);
  const publisher = find(container, EventPublisher);
  const isHandingOn = publisher !== undefined;
  const renewTrustLists = obtain(container, RenewTrustLists);
  const renewKeyChains = obtain(container, RenewKeyChains);
  const destroyRetiredKeys = obtain(container, DestroyRetiredKeys);
  const cleanUpSessions = obtain(container, CleanUpSessions);
  const expireSessions = obtain(container, ExpireSessions);
  const endOverdueAnswers = obtain(container, EndOverdueAnswers);
  const finishDeliveries = obtain(container, FinishDeliveries);
  const followWallets = obtain(container, FollowWallets);
  const fulfilRevocations = obtain(container, FulfilRevocations);
  const removeEndedTenants = obtain(container, RemoveEndedTenants);
  const tellFallen = obtain(container, TellFallen);
  const tell = telling(log);
  const pruneAuditLog = obtain(container, PruneAuditLog);
  let prunedTenant: TenantId | undefined;
  let seenTenant: TenantId | undefined;
  let followedPlace: FollowedPlace | undefined;
  return [
    {
      name: 'expire-sessions',
      everySeconds: 30,
      begin: (now) => {
        const step = expireSessions.begin(now, VISITED);
        return async () => {
          const { expired, overdue, mayBeMore } = await step();
          const ended = await endOverdueAnswers.execute(overdue);
          tell('sessions expired', { count: expired, ended });
          return mayBeMore;
        };
      },
    },
    batchJob('refresh-statistics', 10, async () => {
      const { refreshed, failures } = await maintenance.refreshStatistics();
      if (refreshed.length > 0) log.info('table statistics refreshed', { tables: refreshed.join(' ') });
      const [first] = failures;
      if (first !== undefined) {
        const tables = failures.map(({ table }) => table).join(', ');
        throw new Error(`the statistics of these tables could not be refreshed: ${tables}`, {
          cause: first.error,
        });
      }
      return false;
    }),
    batchJob('forget-expired', 60, async (now) => (await maintenance.forgetExpired(now, BATCH)) >= BATCH),
    batchJob('forget-pick-ups', 60, async (now) => (await maintenance.forgetPickUps(now, BATCH)) >= BATCH),
    batchJob('expire-deferred', 600, async (now) =>
      tell('deferred transactions expired', { count: await maintenance.expireDeferred(now, BATCH) }),
    ),
    {
      name: 'clean-up-sessions',
      everySeconds: 60,
      begin: (now) => {
        const step = cleanUpSessions.begin(now, VISITED);
        return async () => {
          const { unsent, mayBeMore, ...counts } = await step();
          if (isHandingOn && unsent > 0)
            log.warn('events were removed with their sessions before the broker had them', { count: unsent });
          tell('sessions cleaned up', counts);
          return mayBeMore;
        };
      },
    },
    batchJob('destroy-retired-keys', 300, async () =>
      tell('keys destroyed that nothing needs', { count: await destroyRetiredKeys.execute(KEYS) }),
    ),
    batchJob('end-tenants', 30, async (now) => {
      const { removed, mayBeMore } = await removeEndedTenants.execute(now, TENANTS);
      tell('tenants removed whose time is over', { count: removed });
      return mayBeMore;
    }),
    batchJob('remove-tenants', 30, async (now) => {
      const count = await maintenance.removeRemains(now, REMOVED);
      const removals = await maintenance.tenantRemovals();
      metrics?.tenantRemovals(removals.length, count);
      if (count > 0) log.info('rows of removed tenants removed', { count, tenants: removals.length });
      return count > 0;
    }),
    batchJob('follow-wallets', 30, async (now) => {
      const { fallen, mayBeMore } = await followWallets.execute(now);
      tell('credentials revoked with their wallets', { batches: fallen });
      return mayBeMore;
    }),
    batchJob('fulfil-revocations', 10, async (now) => {
      const sessions = await fulfilRevocations.execute(now, REVOCATIONS);
      tell('credentials of persons revoked', { sessions });
      return sessions >= REVOCATIONS;
    }),
    batchJob(
      'finish-deliveries',
      10,
      async (now) => (await finishDeliveries.execute(now, DELIVERIES)) >= DELIVERIES,
    ),
    batchJob('prune-audit-log', 3600, async (now) => {
      const { last, gone } = await pruneAuditLog.execute(now, TENANTS, prunedTenant);
      tell('entries of audit logs removed that are kept no longer', { gone });
      prunedTenant = last;
      return last !== undefined || gone > 0;
    }),
    batchJob('tell-fallen', 10, async () => (await tellFallen.execute(publisher)) > 0),
    batchJob('forget-followed', 60, async (now) => {
      const { gone, place } = await maintenance.forgetEnded(now, FOLLOWED, followedPlace);
      if (gone > 0) log.info('credentials that ended follow nothing any more', { count: gone });
      // The next run goes on behind it, and at the end of a walk another one begins.
      followedPlace = place;
      if (place === undefined) await maintenance.forgetIdleLists(now, BATCH);
      // Where nothing has ended a run costs one batch, however much is stored.
      return place !== undefined && gone > 0;
    }),
    ...(publisher === undefined
      ? []
      : [batchJob('tell-held-lists', 10, () => tellHeldLists({ maintenance, publisher, log }))]),
    batchJob('forget-kept-trust-lists', 3600, async (now) => {
      const before = new Date(now.getTime() - KEPT_LISTS_MS);
      return (await maintenance.forgetKeptTrustLists(before, BATCH)) >= BATCH;
    }),
    {
      name: 'renew-trust-lists',
      everySeconds: 300,
      begin: () => {
        const now = clock.now();
        let after: EndingTrustList | undefined;
        return async () => {
          const { renewed, last } = await renewTrustLists.execute(now, TRUST_LISTS, after, workQueue?.offer);
          tell(LISTS_RENEWED, { count: renewed });
          after = last;
          return last !== undefined;
        };
      },
    },
    ...(metrics === undefined ? [] : [measureJob(measureStored, metrics)]),
    {
      name: 'renew-key-chains',
      everySeconds: 1800,
      begin: () => async () => {
        const due = await renewKeyChains.execute(clock.now(), TENANTS, seenTenant, workQueue?.offer);
        const { last, rotated, renewed, forgotten } = due;
        tell(CHAINS_RENEWED, { rotated, renewed, forgotten });
        // The next run goes on behind it when time is up.
        seenTenant = last;
        return last !== undefined;
      },
    },
  ];
}

/**
 * Maintenance that one instance at a time runs; each works in bounded batches and may run twice.
 * @param isScheduled false starts no timers. Tests use it: the timers follow the clock of the machine.
 * @returns what stops them, after the batches that are under way.
 */
export function startJobs(
  container: Container,
  { isScheduled = true }: { readonly isScheduled?: boolean } = {},
): () => Promise<void> {
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
    if (task.type === 'key-chains')
      tell(CHAINS_RENEWED, await renewKeyChains.renew(task.tenantId, clock.now()));
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
