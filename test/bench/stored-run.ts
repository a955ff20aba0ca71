import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { Container } from 'inversify';
import { RelayEvents } from '../../application/events/relay-events.ts';
import type { EventPublisher } from '../../application/ports/event-publisher.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { Store } from '../../application/ports/store.ts';
import { type Job, jobsOf } from '../../bootstrap/jobs/job-list.ts';
import { inBatches } from '../../bootstrap/jobs/jobs.ts';
import { databases, openRaw } from '../support/databases.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import type { DatabaseKind } from './world.ts';

export type Run = Awaited<ReturnType<typeof openRaw>>['run'];
export const FOLLOWED_LIST = 'followed-list';

const DAY_MS = 86_400_000;
const EXPIRY_MS = 300_000;
/** One of so many sessions has a grant that a wallet may still renew with. */
const RENEWED = 10;

/**
 * Stores sessions of the last 24 hours as they stand after a normal day: most are completed, some expired and a few failed, each with
 * three events, a grant and a batch, and as many followed wallet statuses and audit entries. What is sealed is never opened.
 */
export async function fillStored(kind: DatabaseKind, run: Run, tenant: string, count: number): Promise<void> {
  const now = Date.now();
  const numbers =
    kind === 'postgres'
      ? `generate_series(1, ${count}) as numbers(n)`
      : `(with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count}) select n from numbers)`;
  const sealed = kind === 'postgres' ? `repeat(md5(n::text), 20)` : `hex(randomblob(320))`;
  // The youngest expired four minutes ago, so that nothing is due.
  const created = `(${now - DAY_MS + EXPIRY_MS + 60_000} + cast(${DAY_MS - 3 * EXPIRY_MS}.0 * n / ${count} as bigint))`;
  const isRenewed = `n % ${RENEWED} = 0`;
  const status = `case when n % 1000 = 1 then 'failed' when n % 50 = 2 then 'expired' else 'completed' end`;
  await run(
    `insert into sessions (tenant_id, id, public_id, kind, status, version, created_at, updated_at, expires_at, configuration_ids,
       use_dc_api, request, outcome, issued_mask, revoked_mask, issued_count)
     select '${tenant}', 'stored-' || n, 'stored-public-' || n, 'issuance', ${status}, 3, ${created}, ${created} + 5000,
       ${created} + ${EXPIRY_MS}, '["pid"]', false, case when ${isRenewed} or n % 1000 = 1 then null else ${sealed} end, null, 1, 0, 1
     from ${numbers}`,
  );
  await run(
    `insert into grants (tenant_id, id, kind, session_id, public_id, code_hash, configuration_ids, expires_at, attempts, consumed_at,
       server, generation)
     select '${tenant}', 'stored-' || n, 'pre-authorized', 'stored-' || n, 'stored-public-' || n, 'stored-' || n, '["pid"]',
       ${created} + ${30 * DAY_MS}, 0, case when ${isRenewed} then ${created} else null end, 'built-in', 0 from ${numbers}`,
  );
  for (const [version, event] of [
    [1, 'active'],
    [2, 'fetched'],
    [3, 'completed'],
  ] as const)
    await run(
      kind === 'postgres'
        ? `insert into session_events (tenant_id, session_id, version, status, at, position)
           select '${tenant}', 'stored-' || n, ${version}, '${event}', ${created} + ${version}, ${POSITION_POSTGRES(count)} from ${numbers}`
        : `insert into session_events (tenant_id, session_id, version, status, at)
           select '${tenant}', 'stored-' || n, ${version}, '${event}', ${created} + ${version} from ${numbers}`,
    );
  await run(
    `insert into issued_batches (tenant_id, session_id, id, credential_configuration_id, count, issued_at)
     select '${tenant}', 'stored-' || n, 'batch-' || n, 'pid', 1, ${created} from ${numbers}`,
  );
  await run(
    `insert into followed_lists (tenant_id, id, place, next_check_at, failures)
     values ('${tenant}', '${FOLLOWED_LIST}', 'sealed', ${now + DAY_MS}, 0)`,
  );
  await run(
    `insert into followed_statuses (tenant_id, list_id, idx, batch_id, session_id, ends_at)
     select '${tenant}', '${FOLLOWED_LIST}', n, 'batch-' || n, 'stored-' || n, ${now + 365 * DAY_MS} from ${numbers}`,
  );
  await run(
    `insert into audit_entries (tenant_id, sequence, at, actor, action, kind, target, detail, hash)
     select '${tenant}', 1000 + n, ${created}, 'bench', 'updated', 'session', 'stored-' || n, '', 'none' from ${numbers}`,
  );
  await run(kind === 'postgres' ? 'vacuum analyze' : 'analyze');
}

/**
 * The position of an event is the id of a transaction. The events of neighbouring sessions share one, spread over the ids that the server
 * has used, the first three of which are its own.
 */
const POSITION_POSTGRES = (count: number) => `3 + n * (pg_current_xact_id()::text::bigint - 4) / ${count}`;

const TENANT = 'stored';
const NEIGHBOUR = 'neighbour';
/** Runs of each job with nothing due; their median counts. */
const RUNS = 5;
const BUDGET_MS = 20_000;
/** A backend of PostgreSQL reports its counters when this has passed since the last report. */
const REPORTED_MS = 1_100;
const CONNECTIONS = 8;

export type JobCost = {
  readonly job: string;
  /** Total duration, including round trips to PostgreSQL. */
  readonly milliseconds: number;
  readonly firstMilliseconds: number;
  /** PostgreSQL only. */
  readonly blocks: number | undefined;
  /** Longest turn of the main thread. */
  readonly longestStopMs: number;
};
export type Backlog = {
  readonly what: string;
  /** Number of rows; for events: events. */
  readonly sessions: number;
  readonly perSecond: number;
  readonly longestStopMs: number;
  /** The same in processor time, without what the main thread waited for a core or the disk. */
  readonly longestTurnMs: number;
  readonly neighbourP99Ms: number;
};
export type StoredRun = {
  readonly database: DatabaseKind;
  readonly sessions: number;
  readonly jobs: readonly JobCost[];
  readonly backlogs: readonly Backlog[];
  readonly failedListMs: number;
};

type Bench = {
  readonly kind: DatabaseKind;
  readonly service: TestService;
  readonly container: Container;
  readonly run: Run;
  readonly jobs: readonly Job[];
  readonly sessions: number;
};

/** Costs of background jobs with this many stored sessions, and their speed with a backlog. */
export async function runStored(kind: DatabaseKind, sessions: number): Promise<StoredRun | undefined> {
  const database = await databases()
    .find(({ name }) => name === kind)
    ?.open();
  if (database === undefined) return undefined;
  const service = await startTestService({ DATABASE_URL: database.url });
  const raw = await openRaw(database.url);
  try {
    const { token } = await createTenant(service, NEIGHBOUR);
    await createTenant(service, TENANT);
    const startedAt = performance.now();
    await fillStored(kind, raw.run, TENANT, sessions);
    console.log(`${kind}: ${sessions} sessions stored in ${seconds(startedAt)} s`);
    const { container } = service.service;
    const bench: Bench = { kind, service, container, run: raw.run, jobs: jobsOf(container), sessions };
    const jobs: JobCost[] = [];
    for (const job of bench.jobs) jobs.push(await measureJob(bench, job));
    const relay = makeRelay(container);
    await relay.begin();
    jobs.push(await measureJob(bench, { name: 'relay of events', begin: () => async () => (await relay.execute()) === 'more' }));
    const failedListMs = await failedList(bench, token);
    const backlogs = [
      await unsentEvents(bench, token, relay),
      await expiredOffers(bench, token),
      await shortenedTtl(bench, token),
      await removedTenant(bench, token),
    ];
    return { database: kind, sessions, jobs, backlogs, failedListMs };
  } finally {
    await raw.close();
    await service.close();
    await database.drop();
  }
}

const seconds = (startedAt: number) => ((performance.now() - startedAt) / 1000).toFixed(1);
const median = (values: readonly number[]) => values.toSorted((first, second) => first - second)[Math.floor(values.length / 2)] ?? 0;

async function measureJob(bench: Bench, job: Pick<Job, 'name' | 'begin'>): Promise<JobCost> {
  const startedAt = performance.now();
  await runOnce(bench, job);
  const firstMilliseconds = performance.now() - startedAt;
  const durations: number[] = [];
  // Together, since the server reports its counters once a second only.
  const runs = await measured(bench, async () => {
    for (let run = 0; run < RUNS; run++) {
      const startedAt = performance.now();
      await runOnce(bench, job);
      durations.push(performance.now() - startedAt);
    }
  });
  return {
    job: job.name,
    firstMilliseconds,
    milliseconds: median(durations),
    blocks: bench.kind === 'postgres' ? Math.round(runs.blocks / RUNS) : undefined,
    longestStopMs: runs.longestStopMs,
  };
}

async function runOnce({ container }: Bench, job: Pick<Job, 'begin'>, budgetMs = BUDGET_MS): Promise<void> {
  const now = await container.get(Store).maintenance.time();
  await inBatches({ milliseconds: budgetMs, signal: new AbortController().signal }, job.begin(now));
}

async function measured(bench: Bench, work: () => Promise<void>) {
  const blocksBefore = await blocksRead(bench);
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  await work();
  // The histogram notices a stop when it is over.
  await pause(5);
  histogram.disable();
  const blocksAfter = await blocksRead(bench);
  return { blocks: blocksAfter - blocksBefore, longestStopMs: Math.max(0, histogram.max / 1e6 - 1) };
}

/** Blocks that statements have read so far; PostgreSQL only. */
async function blocksRead({ kind, container, run }: Bench): Promise<number> {
  if (kind === 'sqlite') return 0;
  await pause(REPORTED_MS);
  const { maintenance } = container.get(Store);
  await Promise.all(Array.from({ length: CONNECTIONS }, () => maintenance.time()));
  const [row] = await run('select blks_hit + blks_read as blocks from pg_stat_database where datname = current_database()');
  return Number(row?.['blocks']);
}

/** Duration of one page of the few failed sessions. */
async function failedList({ container, sessions }: Bench, _token: string): Promise<number> {
  const reads = container.get(Store).read(TENANT as never);
  const durations: number[] = [];
  for (let run = 0; run < 5; run++) {
    const startedAt = performance.now();
    const range = { ascending: false } as const;
    const cursor = await reads.sessionCursorAt(range, Math.min(10_000, sessions));
    await reads.sessions({ ...range, kinds: ['issuance'], status: 'failed', limit: 26, ...(cursor !== undefined && { through: cursor }) });
    durations.push(performance.now() - startedAt);
  }
  return median(durations);
}

/**
 * Calls of a neighbour while `work` runs.
 * @param count counts the sessions that it did. Not within the measured time, since with SQLite it holds the main thread itself.
 */
async function measureNeighbour(
  bench: Bench,
  token: string,
  work: () => Promise<void>,
  count: () => Promise<number>,
): Promise<Omit<Backlog, 'what'>> {
  const durations: number[] = [];
  let isStopped = false;
  const neighbourLoop = (async () => {
    while (!isStopped) {
      const startedAt = performance.now();
      await bench.service.call('GET', '/session?limit=1', { token });
      durations.push(performance.now() - startedAt);
      await pause(5);
    }
  })();
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  const turns = watchTurns();
  const startedAt = performance.now();
  await work();
  const milliseconds = performance.now() - startedAt;
  histogram.disable();
  const longestTurnMs = turns.end();
  isStopped = true;
  await neighbourLoop;
  const sessions = await count();
  const perSecond = (sessions * 1000) / milliseconds;
  const sorted = durations.toSorted((first, second) => first - second);
  return {
    sessions,
    perSecond,
    longestStopMs: Math.max(0, histogram.max / 1e6 - 1),
    longestTurnMs,
    neighbourP99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  };
}

/** Measures how long the main thread computes between two timers at most. */
function watchTurns(): { end(): number } {
  const processorMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let lastTurn = processorMs();
  let longest = 0;
  const measureTurn = () => {
    const currentMs = processorMs();
    longest = Math.max(longest, currentMs - lastTurn);
    lastTurn = currentMs;
  };
  const timer = setInterval(measureTurn, 1);
  return {
    end() {
      clearInterval(timer);
      measureTurn();
      return longest;
    },
  };
}

const jobNamed = ({ jobs }: Bench, name: string): Job => {
  const job = jobs.find((each) => each.name === name);
  if (job === undefined) throw new Error(`there is no job ${name}`);
  return job;
};
const count = async ({ run }: Bench, condition: string) =>
  Number((await run(`select count(*) as n from sessions where tenant_id = '${TENANT}' and ${condition}`))[0]?.['n']);

/** The relay of events with a broker that keeps every event at once. */
function makeRelay(container: Container): RelayEvents {
  const publisher: EventPublisher = {
    isReady: true,
    publish: async (notices) => notices.length,
    publishRevocation: async () => true,
    publishHeldList: async () => true,
    onReady: () => () => {},
  };
  return new RelayEvents({ eventLog: container.get(Store).maintenance, publisher, log: container.get(Log), random: container.get(Random) });
}

/** The broker has had no event of the sessions, three each, as after a day without it. */
async function unsentEvents(bench: Bench, token: string, relay: RelayEvents): Promise<Backlog> {
  const [cursor] = await bench.run('select position, tenant, session, version from event_cursors');
  await bench.run(`update event_cursors set position = 1, tenant = '', session = '', version = 0`);
  let sentCount = 0;
  const job = {
    begin: () => async () => {
      const outcome = await relay.execute();
      sentCount += BATCH_OF_EVENTS;
      return outcome === 'more';
    },
  };
  const result = await measureNeighbour(
    bench,
    token,
    () => runOnce(bench, job),
    async () => sentCount,
  );
  const { position, tenant, session, version } = cursor ?? {};
  await bench.run(
    `update event_cursors set position = ${Number(position)}, tenant = '${String(tenant)}', session = '${String(session)}', version = ${Number(version)}`,
  );
  return { what: 'events that the broker has not had', ...result };
}
/** Events that the relay takes at once; the last batch may have fewer. */
const BATCH_OF_EVENTS = 500;

/** A fifth of the sessions are offers that no wallet redeemed, and expired in the last five minutes. */
async function expiredOffers(bench: Bench, token: string): Promise<Backlog> {
  const now = (await bench.container.get(Store).maintenance.time()).getTime();
  await bench.run(
    `update sessions set status = 'active', expires_at = ${now} - cast(substr(id, 8) as bigint) % 300000
     where tenant_id = '${TENANT}' and (id like '%0' or id like '%5')`,
  );
  const countBefore = await count(bench, `status = 'active'`);
  const job = jobNamed(bench, 'expire-sessions');
  const result = await measureNeighbour(
    bench,
    token,
    () => runOnce(bench, job),
    async () => countBefore - (await count(bench, `status = 'active'`)),
  );
  return { what: 'expired offers', ...result };
}

/** The tenant keeps its sessions for a minute from now on. */
async function shortenedTtl(bench: Bench, token: string): Promise<Backlog> {
  await bench.run(`update tenants set session_config = '{"ttlSeconds":60}' where id = '${TENANT}'`);
  const countBefore = await count(bench, 'true');
  const job = jobNamed(bench, 'clean-up-sessions');
  const result = await measureNeighbour(
    bench,
    token,
    () => runOnce(bench, job, BUDGET_MS / 2),
    // What a wallet may still renew is hidden, and has a time in the future.
    async () => countBefore - (await count(bench, `created_at <= ${Date.now()}`)),
  );
  return { what: 'due by a shortened ttlSeconds', ...result };
}

async function removedTenant(bench: Bench, token: string): Promise<Backlog> {
  const countBefore = await count(bench, 'true');
  const root = await bench.service.rootToken();
  const startedAt = performance.now();
  await bench.service.call('DELETE', `/tenant/${TENANT}`, { token: root });
  console.log(`${bench.kind}: DELETE /tenant answered after ${(performance.now() - startedAt).toFixed(0)} ms`);
  const job = jobNamed(bench, 'remove-tenants');
  const removeAll = async () => {
    for (let run = 0; run < 30; run++) {
      await runOnce(bench, job);
      if (await isRemoved(bench)) break;
    }
  };
  const result = await measureNeighbour(bench, token, removeAll, async () => countBefore);
  return { what: 'removal of the tenant', ...result };
}

async function isRemoved({ run }: Bench): Promise<boolean> {
  const sessions = await run(`select 1 from sessions where tenant_id = '${TENANT}' limit 1`);
  const statuses = await run(`select 1 from followed_statuses where tenant_id = '${TENANT}' and list_id = '${FOLLOWED_LIST}' limit 1`);
  return sessions.length === 0 && statuses.length === 0;
}

export function describeStored({ database, sessions, jobs, backlogs, failedListMs }: StoredRun): string {
  const number = (value: number, digits = 1) => value.toFixed(digits);
  return [
    `\n${database}, ${sessions.toLocaleString('en')} sessions stored`,
    '| Job with nothing due | Time, ms | First run, ms | Blocks | Longest stop, ms |',
    '|---|---:|---:|---:|---:|',
    ...jobs.map(
      (each) =>
        `| ${each.job} | ${number(each.milliseconds)} | ${number(each.firstMilliseconds, 0)} | ${each.blocks ?? ''} | ${number(each.longestStopMs)} |`,
    ),
    `a page of failed sessions: ${number(failedListMs)} ms`,
    '',
    '| Backlog | Sessions or events | Per second | Longest stop, ms | Of it processor time at most, ms | p99 of a neighbour, ms |',
    '|---|---:|---:|---:|---:|---:|',
    ...backlogs.map(
      (each) =>
        `| ${each.what} | ${each.sessions} | ${number(each.perSecond, 0)} | ${number(each.longestStopMs)} | ${number(each.longestTurnMs)} | ${number(each.neighbourP99Ms)} |`,
    ),
  ].join('\n');
}

/** Missed goals. */
export function findStoredFaults(fewRun: StoredRun | undefined, manyRun: StoredRun): string[] {
  return manyRun.jobs.flatMap(({ job, milliseconds }) => {
    const countBefore = fewRun?.jobs.find((each) => each.job === job)?.milliseconds ?? milliseconds;
    const isCheap = milliseconds <= MAX_IDLE_MS && milliseconds <= Math.max(1, 2 * countBefore);
    return isCheap ? [] : [`${manyRun.database}: ${job} takes ${milliseconds.toFixed(1)} ms with nothing due`];
  });
}
const MAX_IDLE_MS = 5;
