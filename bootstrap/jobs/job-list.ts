import type { Container } from 'inversify';
import { PruneAuditLog } from '../../application/audit/prune-audit-log.ts';
import { MeasureStored } from '../../application/health/measure-stored.ts';
import { TellFallen } from '../../application/issuance/tell-fallen.ts';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { DestroyRetiredKeys } from '../../application/keys/retired-keys.ts';
import { FollowWallets } from '../../application/oauth/follow-wallets.ts';
import { Clock } from '../../application/ports/clock.ts';
import { EventPublisher } from '../../application/ports/event-publisher.ts';
import type { FollowedPlace } from '../../application/ports/followed-wallets.ts';
import { Log } from '../../application/ports/log.ts';
import type { EndingTrustList } from '../../application/ports/maintenance.ts';
import { Metrics } from '../../application/ports/metrics.ts';
import { Store } from '../../application/ports/store.ts';
import { WorkQueue } from '../../application/ports/work-queue.ts';
import { CleanUpSessions } from '../../application/sessions/clean-up-sessions.ts';
import { ExpireSessions } from '../../application/sessions/expire-sessions.ts';
import { FinishDeliveries } from '../../application/sessions/finish-deliveries.ts';
import { FulfilRevocations } from '../../application/status-lists/fulfil-revocations.ts';
import { RemoveEndedTenants } from '../../application/tenants/remove-ended-tenants.ts';
import { RenewTrustLists } from '../../application/trust-lists/renew-trust-lists.ts';
import { tellHeldLists } from '../../application/trust-lists/tell-held-lists.ts';
import { EndOverdueAnswers } from '../../application/verification/end-overdue-answers.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { find, obtain } from '../wiring/wire.ts';

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

export const LISTS_RENEWED = 'trust lists signed anew';
export const CHAINS_RENEWED = 'key chains renewed';

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
/** Logs what a batch did. @returns whether a batch that did so much was full. */
export const telling = (log: Log) => (done: string, counts: Readonly<Record<string, number>>) => {
  const sum = Object.values(counts).reduce((all, count) => all + count, 0);
  if (sum > 0) log.info(done, counts);
  return sum >= BATCH;
};

/** All jobs of a service. They keep what they need from one run to the next. */
export function jobsOf(container: Container): readonly Job[] {
  const subjects = [sessionJobs, revocationJobs, keyJobs, trustListJobs, tenantJobs, databaseJobs];
  return subjects.flatMap((jobs) => jobs(container));
}

/** Sessions, deferred transactions and deliveries that are due. */
function sessionJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const log = container.get(Log);
  const publisher = find(container, EventPublisher);
  const isHandingOn = find(container, EventPublisher) !== undefined;
  const tell = telling(container.get(Log));
  const cleanUpSessions = obtain(container, CleanUpSessions);
  const expireSessions = obtain(container, ExpireSessions);
  const endOverdueAnswers = obtain(container, EndOverdueAnswers);
  const finishDeliveries = obtain(container, FinishDeliveries);
  const tellFallen = obtain(container, TellFallen);
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
          if (isHandingOn && unsent > 0) log.warn('events were removed with their sessions before the broker had them', { count: unsent });
          tell('sessions cleaned up', counts);
          return mayBeMore;
        };
      },
    },
    batchJob('finish-deliveries', 10, async (now) => (await finishDeliveries.execute(now, DELIVERIES)) >= DELIVERIES),
    batchJob('tell-fallen', 10, async () => (await tellFallen.execute(publisher)) > 0),
  ];
}

/** Credentials that are revoked with their wallets or persons. */
function revocationJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const log = container.get(Log);
  const tell = telling(container.get(Log));
  const followWallets = obtain(container, FollowWallets);
  const fulfilRevocations = obtain(container, FulfilRevocations);
  let followedPlace: FollowedPlace | undefined;
  return [
    batchJob('follow-wallets', 30, async (now) => {
      const { fallen, mayBeMore } = await followWallets.execute(now);
      tell('credentials revoked with their wallets', { batches: fallen });
      return mayBeMore;
    }),
    batchJob('forget-followed', 60, async (now) => {
      const { gone, place } = await maintenance.forgetEnded(now, FOLLOWED, followedPlace);
      if (gone > 0) log.info('credentials that ended follow nothing any more', { count: gone });
      // The next run goes on behind it, and at the end of a walk another one begins.
      followedPlace = place;
      if (place === undefined) await maintenance.forgetIdleLists(now, BATCH);
      // Where nothing has ended a run costs one batch, however much is stored.
      return place !== undefined && gone > 0;
    }),
    batchJob('fulfil-revocations', 10, async (now) => {
      const sessions = await fulfilRevocations.execute(now, REVOCATIONS);
      tell('credentials of persons revoked', { sessions });
      return sessions >= REVOCATIONS;
    }),
  ];
}

/** Key chains that are rotated or renewed, and keys that nothing needs. */
function keyJobs(container: Container): readonly Job[] {
  const clock = container.get(Clock);
  const workQueue = find(container, WorkQueue);
  const tell = telling(container.get(Log));
  const renewKeyChains = obtain(container, RenewKeyChains);
  const destroyRetiredKeys = obtain(container, DestroyRetiredKeys);
  let seenTenant: TenantId | undefined;
  return [
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
    batchJob('destroy-retired-keys', 300, async () =>
      tell('keys destroyed that nothing needs', { count: await destroyRetiredKeys.execute(KEYS) }),
    ),
  ];
}

/** Own trust lists, and copies of those of others. */
function trustListJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const clock = container.get(Clock);
  const log = container.get(Log);
  const workQueue = find(container, WorkQueue);
  const publisher = find(container, EventPublisher);
  const tell = telling(container.get(Log));
  const renewTrustLists = obtain(container, RenewTrustLists);
  return [
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
    ...(publisher === undefined ? [] : [batchJob('tell-held-lists', 10, () => tellHeldLists({ maintenance, publisher, log }))]),
    batchJob('forget-kept-trust-lists', 3600, async (now) => {
      const before = new Date(now.getTime() - KEPT_LISTS_MS);
      return (await maintenance.forgetKeptTrustLists(before, BATCH)) >= BATCH;
    }),
  ];
}

/** Tenants that end, what is left of removed ones, and their audit logs. */
function tenantJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const log = container.get(Log);
  const metrics = find(container, Metrics);
  const tell = telling(container.get(Log));
  const removeEndedTenants = obtain(container, RemoveEndedTenants);
  const pruneAuditLog = obtain(container, PruneAuditLog);
  let prunedTenant: TenantId | undefined;
  return [
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
    batchJob('prune-audit-log', 3600, async (now) => {
      const { last, gone } = await pruneAuditLog.execute(now, TENANTS, prunedTenant);
      tell('entries of audit logs removed that are kept no longer', { gone });
      prunedTenant = last;
      return last !== undefined || gone > 0;
    }),
  ];
}

/** What concerns the database as a whole. */
function databaseJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const log = container.get(Log);
  const metrics = find(container, Metrics);
  const measureStored = obtain(container, MeasureStored);
  return [
    batchJob('refresh-statistics', 10, async () => {
      const { refreshed, failures } = await maintenance.refreshStatistics();
      if (refreshed.length > 0) log.info('table statistics refreshed', { tables: refreshed.join(' ') });
      const [first] = failures;
      if (first !== undefined) {
        const tables = failures.map(({ table }) => table).join(', ');
        throw new Error(`the statistics of these tables could not be refreshed: ${tables}`, { cause: first.error });
      }
      return false;
    }),
    batchJob('forget-expired', 60, async (now) => (await maintenance.forgetExpired(now, BATCH)) >= BATCH),
    batchJob('forget-pick-ups', 60, async (now) => (await maintenance.forgetPickUps(now, BATCH)) >= BATCH),
    ...(metrics === undefined ? [] : [measureJob(measureStored, metrics)]),
  ];
}
