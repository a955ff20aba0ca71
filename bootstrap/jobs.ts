import { randomUUID } from 'node:crypto';
import type { Container } from 'inversify';
import { RenewKeyChains } from '../application/keys/renew-key-chains.ts';
import { Clock } from '../application/ports/clock.ts';
import { EventBus } from '../application/ports/event-bus.ts';
import { Log } from '../application/ports/log.ts';
import { ServiceSettings } from '../application/ports/settings.ts';
import { type EndingTrustList, Store } from '../application/ports/store.ts';
import { RenewTrustLists } from '../application/trust-lists/renew-trust-lists.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { inPortions } from './portions.ts';

type Job = {
  readonly name: string;
  readonly everySeconds: number;
  /** @param now the time of the database. */
  readonly run: (now: Date) => Promise<void>;
};

/** Rows that one portion of a job touches. */
const PORTION = 500;
/** Each is signed, possibly by a key far away. */
const TRUST_LIST_PORTION = 10;
/** Whose key chains one portion looks at. */
const TENANT_PORTION = 100;
/**
 * A run works through what is due for so long: strangers can add rows faster than any fixed number of portions takes
 * away. Well below the lease of each job in portions, so that no other instance begins meanwhile.
 */
const BUDGET_MS = 20_000;

/**
 * Chores that one instance at a time runs; each works in bounded portions and may run twice.
 * @returns what stops them, after the portions that are under way.
 */
export function startJobs(container: Container): () => Promise<void> {
  const store = container.get(Store);
  const clock = container.get(Clock);
  const log = container.get(Log);
  const eventBus = container.get(EventBus);
  const stopping = new AbortController();
  const untilDone = (portion: () => Promise<boolean>) =>
    inPortions({ milliseconds: BUDGET_MS, signal: stopping.signal }, portion);
  const renewTrustLists = container.get(RenewTrustLists);
  const renewKeyChains = container.get(RenewKeyChains);
  let seenTenant: TenantId | undefined;
  const defaults = { ttlSeconds: container.get(ServiceSettings).sessionTtlSeconds };
  const jobs: Job[] = [
    {
      name: 'expire-sessions',
      everySeconds: 30,
      run: (now) =>
        untilDone(async () => {
          const expired = await store.chores.expireSessions(now, PORTION);
          for (const { tenantId, id } of expired)
            eventBus.publish({ type: 'session', tenantId, sessionId: id });
          if (expired.length > 0) log.info('sessions expired', { count: expired.length });
          return expired.length >= PORTION;
        }),
    },
    {
      name: 'refresh-statistics',
      everySeconds: 10,
      async run() {
        const tables = await store.chores.refreshStatistics();
        if (tables.length > 0) log.info('table statistics refreshed', { tables: tables.join(' ') });
      },
    },
    {
      name: 'forget-expired',
      everySeconds: 60,
      run: (now) => untilDone(async () => (await store.chores.forgetExpired(now, PORTION)) >= PORTION),
    },
    {
      name: 'forget-pick-ups',
      everySeconds: 60,
      run: (now) => untilDone(async () => (await store.chores.forgetPickUps(now, PORTION)) >= PORTION),
    },
    {
      name: 'expire-deferred',
      everySeconds: 600,
      run: (now) =>
        untilDone(async () => {
          const count = await store.chores.expireDeferred(now, PORTION);
          if (count > 0) log.info('deferred transactions expired', { count });
          return count >= PORTION;
        }),
    },
    {
      name: 'clean-up-sessions',
      everySeconds: 60,
      run: (now) =>
        untilDone(async () => {
          const { removed, anonymized } = await store.chores.cleanUpSessions(now, PORTION, defaults);
          if (removed + anonymized > 0) log.info('sessions cleaned up', { removed, anonymized });
          return removed + anonymized >= PORTION;
        }),
    },
    {
      name: 'remove-tenants',
      everySeconds: 30,
      run: (now) =>
        untilDone(async () => {
          const count = await store.chores.removeRemains(now, PORTION);
          if (count > 0) log.info('rows of removed tenants removed', { count });
          return count >= PORTION;
        }),
    },
    {
      name: 'renew-trust-lists',
      everySeconds: 300,
      async run() {
        const now = clock.now();
        let after: EndingTrustList | undefined;
        await untilDone(async () => {
          const { renewed, last } = await renewTrustLists.execute(now, TRUST_LIST_PORTION, after);
          if (renewed > 0) log.info('trust lists signed anew', { count: renewed });
          after = last;
          return last !== undefined;
        });
      },
    },
    {
      name: 'renew-key-chains',
      everySeconds: 1800,
      run: () =>
        untilDone(async () => {
          const { last, rotated, renewed, forgotten } = await renewKeyChains.execute(
            clock.now(),
            TENANT_PORTION,
            seenTenant,
          );
          if (rotated + renewed + forgotten > 0)
            log.info('key chains renewed', { rotated, renewed, forgotten });
          // The next run goes on behind it when time is up.
          seenTenant = last;
          return last !== undefined;
        }),
    },
  ];
  const holder = randomUUID();
  const running = new Set<Promise<void>>();
  const timers = jobs.map((job) =>
    setInterval(() => {
      const run = runLeased(job).finally(() => running.delete(run));
      running.add(run);
    }, job.everySeconds * 1000),
  );
  for (const timer of timers) timer.unref();

  async function runLeased(job: Job): Promise<void> {
    try {
      const now = await store.chores.time();
      if (await store.chores.tryLease(job.name, holder, now, job.everySeconds)) await job.run(now);
    } catch (error) {
      log.error('a job failed and will run again', { job: job.name }, error);
    }
  }

  return async () => {
    for (const timer of timers) clearInterval(timer);
    stopping.abort();
    await Promise.all(running);
  };
}
