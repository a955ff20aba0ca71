import type { Container } from 'inversify';
import { PruneAuditLog } from '../../application/audit/prune-audit-log.ts';
import { MeasureStored } from '../../application/health/measure-stored.ts';
import { NotifyWalletRevocations } from '../../application/issuance/notify-wallet-revocations.ts';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { DestroyRetiredKeys } from '../../application/keys/retired-keys.ts';
import { FollowWallets } from '../../application/oauth/follow-wallets.ts';
import { Clock } from '../../application/ports/clock.ts';
import { EventPublisher } from '../../application/ports/event-publisher.ts';
import type { FollowerCursor } from '../../application/ports/followed-wallets.ts';
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
import { reportHeldLists } from '../../application/trust-lists/report-held-lists.ts';
import { EndOverdueResponses } from '../../application/verification/end-overdue-responses.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { find, obtain } from '../wiring/wire.ts';

export type Job = {
  readonly name: string;
  /** The job also runs at the start, because operators read its results. */
  readonly isEarly?: true;
  readonly everySeconds: number;
  /** Begins a run. @param now the database time. @returns a function that processes one batch and tells whether there may be more. */
  readonly begin: (now: Date) => () => Promise<boolean>;
};

/** A job whose batches are independent of each other. @param batch @returns true when there may be more. */
const batchJob = (name: string, everySeconds: number, batch: (now: Date) => Promise<boolean>): Job => ({
  name,
  everySeconds,
  begin: (now) => () => batch(now),
});

/** The job runs in one process at a time; the processes before it report their results for a while. */
const measureJob = (measureStored: MeasureStored, metrics: Metrics): Job => ({
  name: 'measure',
  everySeconds: 300,
  isEarly: true,
  begin: () => measureStored.begin(metrics, TENANTS),
});

export const LISTS_RENEWED = 'trust lists signed again';
export const CHAINS_RENEWED = 'key chains renewed';

/** Rows that one batch of a job changes. */
const BATCH = 500;
/** Sessions that one batch of a walk visits; most of them are not due. */
const VISITED_SESSIONS = 2_000;
/** Rows of removed tenants that one batch removes. */
const REMOVED_ROWS = 2_000;
/** Each list is signed, and its key may be at a remote provider. */
const TRUST_LISTS = 10;
/** Each revocation is a separate transaction. */
const REVOCATIONS = 100;
/** Each delivery is a call of a backend; the deliveries run at the same time. */
const DELIVERIES = 16;
/** Each key is destroyed by a call of its provider. */
const KEYS = 100;
/** Followed wallet statuses that one batch visits; most of them have not ended. */
const VISITED_FOLLOWERS = 2_000;
/** A copy of an ended list that no request used is kept for this long. */
const STORED_LISTS_MS = 7 * 86_400_000;
/** Tenants whose key chains or audit logs one batch visits. */
const TENANTS = 100;
/** @returns a function that logs the counts of a batch and tells whether the batch was full. */
export const batchLogger = (log: Log) => (done: string, counts: Readonly<Record<string, number>>) => {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (total > 0) log.info(done, counts);
  return total >= BATCH;
};

/** @returns all jobs of a service. Their state is kept from one run to the next. */
export function jobsOf(container: Container): readonly Job[] {
  const subjects = [sessionJobs, revocationJobs, keyJobs, trustListJobs, tenantJobs, databaseJobs];
  return subjects.flatMap((jobs) => jobs(container));
}

/** Jobs for sessions, deferred transactions and deliveries that are due. */
function sessionJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const log = container.get(Log);
  const publisher = find(container, EventPublisher);
  const publishesEvents = find(container, EventPublisher) !== undefined;
  const logBatch = batchLogger(container.get(Log));
  const cleanUpSessions = obtain(container, CleanUpSessions);
  const expireSessions = obtain(container, ExpireSessions);
  const endOverdueAnswers = obtain(container, EndOverdueResponses);
  const finishDeliveries = obtain(container, FinishDeliveries);
  const notifyWalletRevocations = obtain(container, NotifyWalletRevocations);
  return [
    {
      name: 'expire-sessions',
      everySeconds: 30,
      begin: (now) => {
        const step = expireSessions.begin(now, VISITED_SESSIONS);
        return async () => {
          const { expired, overdue, mayBeMore } = await step();
          const ended = await endOverdueAnswers.execute(overdue);
          logBatch('sessions expired', { count: expired, ended });
          return mayBeMore;
        };
      },
    },
    batchJob('expire-deferred', 600, async (now) =>
      logBatch('deferred transactions expired', { count: await maintenance.expireDeferred(now, BATCH) }),
    ),
    {
      name: 'clean-up-sessions',
      everySeconds: 60,
      begin: (now) => {
        const step = cleanUpSessions.begin(now, VISITED_SESSIONS);
        return async () => {
          const { unsent, mayBeMore, ...counts } = await step();
          if (publishesEvents && unsent > 0)
            log.warn('events were removed with their sessions before the broker received them', { count: unsent });
          logBatch('sessions cleaned up', counts);
          return mayBeMore;
        };
      },
    },
    batchJob('finish-deliveries', 10, async (now) => (await finishDeliveries.execute(now, DELIVERIES)) >= DELIVERIES),
    batchJob('tell-fallen', 10, async () => (await notifyWalletRevocations.execute(publisher)) > 0),
  ];
}

/** Jobs for credentials that are revoked with their wallets or persons. */
function revocationJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const log = container.get(Log);
  const logBatch = batchLogger(container.get(Log));
  const followWallets = obtain(container, FollowWallets);
  const fulfilRevocations = obtain(container, FulfilRevocations);
  let followerCursor: FollowerCursor | undefined;
  return [
    batchJob('follow-wallets', 30, async (now) => {
      const { fallen: batches, mayBeMore } = await followWallets.execute(now);
      logBatch('credentials revoked with their wallets', { batches });
      return mayBeMore;
    }),
    batchJob('forget-followed', 60, async (now) => {
      const { removed: removedCount, nextCursor } = await maintenance.forgetEndedFollowers(now, VISITED_FOLLOWERS, followerCursor);
      if (removedCount > 0) log.info('expired credentials no longer follow a status list', { count: removedCount });
      // The next run continues behind this cursor; at the end of a walk another walk begins.
      followerCursor = nextCursor;
      if (nextCursor === undefined) await maintenance.forgetIdleLists(now, BATCH);
      // A batch without ended credentials ends the run, so that a run costs one batch however much is stored.
      return nextCursor !== undefined && removedCount > 0;
    }),
    batchJob('fulfil-revocations', 10, async (now) => {
      const sessions = await fulfilRevocations.execute(now, REVOCATIONS);
      logBatch('credentials revoked by subject', { sessions });
      return sessions >= REVOCATIONS;
    }),
  ];
}

/** Jobs that rotate or renew key chains, and that destroy keys without a use. */
function keyJobs(container: Container): readonly Job[] {
  const clock = container.get(Clock);
  const workQueue = find(container, WorkQueue);
  const logBatch = batchLogger(container.get(Log));
  const renewKeyChains = obtain(container, RenewKeyChains);
  const destroyRetiredKeys = obtain(container, DestroyRetiredKeys);
  let lastVisitedTenant: TenantId | undefined;
  return [
    {
      name: 'renew-key-chains',
      everySeconds: 1800,
      begin: () => async () => {
        const result = await renewKeyChains.execute(clock.now(), TENANTS, lastVisitedTenant, workQueue?.offer);
        const { last: lastTenant, rotated, renewed, forgotten } = result;
        logBatch(CHAINS_RENEWED, { rotated, renewed, forgotten });
        // The next run continues behind this tenant when the time is up.
        lastVisitedTenant = lastTenant;
        return lastTenant !== undefined;
      },
    },
    batchJob('destroy-retired-keys', 300, async () => logBatch('unused keys destroyed', { count: await destroyRetiredKeys.execute(KEYS) })),
  ];
}

/** Jobs for the trust lists of the service, and for the stored copies of other trust lists. */
function trustListJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const clock = container.get(Clock);
  const log = container.get(Log);
  const workQueue = find(container, WorkQueue);
  const publisher = find(container, EventPublisher);
  const logBatch = batchLogger(container.get(Log));
  const renewTrustLists = obtain(container, RenewTrustLists);
  return [
    {
      name: 'renew-trust-lists',
      everySeconds: 300,
      begin: () => {
        const now = clock.now();
        let previousList: EndingTrustList | undefined;
        return async () => {
          const { renewed, last: lastList } = await renewTrustLists.execute(now, TRUST_LISTS, previousList, workQueue?.offer);
          logBatch(LISTS_RENEWED, { count: renewed });
          previousList = lastList;
          return lastList !== undefined;
        };
      },
    },
    ...(publisher === undefined ? [] : [batchJob('tell-held-lists', 10, () => reportHeldLists({ maintenance, publisher, log }))]),
    batchJob('forget-kept-trust-lists', 3600, async (now) => {
      const unusedSince = new Date(now.getTime() - STORED_LISTS_MS);
      return (await maintenance.forgetStoredTrustLists(unusedSince, BATCH)) >= BATCH;
    }),
  ];
}

/** Jobs for tenants that end, for the rows of removed tenants, and for audit logs. */
function tenantJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const log = container.get(Log);
  const metrics = find(container, Metrics);
  const logBatch = batchLogger(container.get(Log));
  const removeEndedTenants = obtain(container, RemoveEndedTenants);
  const pruneAuditLog = obtain(container, PruneAuditLog);
  let prunedTenant: TenantId | undefined;
  return [
    batchJob('end-tenants', 30, async (now) => {
      const { removed, mayBeMore } = await removeEndedTenants.execute(now, TENANTS);
      logBatch('tenants removed after their end date', { count: removed });
      return mayBeMore;
    }),
    batchJob('remove-tenants', 30, async (now) => {
      const count = await maintenance.removeRemainingRows(now, REMOVED_ROWS);
      const removals = await maintenance.tenantRemovals();
      metrics?.tenantRemovals(removals.length, count);
      if (count > 0) log.info('rows of removed tenants removed', { count, tenants: removals.length });
      return count > 0;
    }),
    batchJob('prune-audit-log', 3600, async (now) => {
      const { last: lastTenant, removed: removedCount } = await pruneAuditLog.execute(now, TENANTS, prunedTenant);
      logBatch('audit log entries pruned', { gone: removedCount });
      prunedTenant = lastTenant;
      return lastTenant !== undefined || removedCount > 0;
    }),
  ];
}

function databaseJobs(container: Container): readonly Job[] {
  const { maintenance } = container.get(Store);
  const log = container.get(Log);
  const metrics = find(container, Metrics);
  const measureStored = obtain(container, MeasureStored);
  return [
    batchJob('refresh-statistics', 10, async () => {
      const { refreshed, failures } = await maintenance.refreshStatistics();
      if (refreshed.length > 0) log.info('table statistics refreshed', { tables: refreshed.join(' ') });
      const [firstFailure] = failures;
      if (firstFailure !== undefined) {
        const tables = failures.map(({ table }) => table).join(', ');
        throw new Error(`the statistics of these tables could not be refreshed: ${tables}`, { cause: firstFailure.error });
      }
      return false;
    }),
    batchJob('forget-expired', 60, async (now) => (await maintenance.forgetExpired(now, BATCH)) >= BATCH),
    batchJob('forget-pick-ups', 60, async (now) => (await maintenance.forgetPickUps(now, BATCH)) >= BATCH),
    ...(metrics === undefined ? [] : [measureJob(measureStored, metrics)]),
  ];
}
