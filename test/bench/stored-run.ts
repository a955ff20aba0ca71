import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { Container } from 'inversify';
import { Store } from '../../application/ports/store.ts';
import { inBatches } from '../../bootstrap/batches.ts';
import { type Job, jobsOf } from '../../bootstrap/jobs.ts';
import { databases, openRaw } from '../support/databases.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { FOLLOWED_LIST, fillStored, type Run } from './stored-rows.ts';
import type { DatabaseKind } from './world.ts';

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
  /** From begin to end, round trips to PostgreSQL included. */
  readonly milliseconds: number;
  readonly firstMilliseconds: number;
  /** PostgreSQL only. */
  readonly blocks: number | undefined;
  /** Of the main thread. */
  readonly longestStopMs: number;
};
export type Backlog = {
  readonly what: string;
  readonly sessions: number;
  readonly perSecond: number;
  readonly longestStopMs: number;
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

/** What background work costs with so many sessions stored, and how quickly it works off a backlog. */
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
    const began = performance.now();
    await fillStored(kind, raw.run, TENANT, sessions);
    console.log(`${kind}: ${sessions} sessions stored in ${seconds(began)} s`);
    const { container } = service.service;
    const bench: Bench = { kind, service, container, run: raw.run, jobs: jobsOf(container), sessions };
    const jobs: JobCost[] = [];
    for (const job of bench.jobs) jobs.push(await costOf(bench, job));
    const failedListMs = await failedList(bench, token);
    const backlogs = [
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

const seconds = (began: number) => ((performance.now() - began) / 1000).toFixed(1);
const median = (values: readonly number[]) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

async function costOf(bench: Bench, job: Job): Promise<JobCost> {
  const began = performance.now();
  await runOnce(bench, job);
  const firstMilliseconds = performance.now() - began;
  const times: number[] = [];
  // Together, since the server reports its counters once a second only.
  const runs = await measured(bench, async () => {
    for (let run = 0; run < RUNS; run++) {
      const begun = performance.now();
      await runOnce(bench, job);
      times.push(performance.now() - begun);
    }
  });
  return {
    job: job.name,
    firstMilliseconds,
    milliseconds: median(times),
    blocks: bench.kind === 'postgres' ? Math.round(runs.blocks / RUNS) : undefined,
    longestStopMs: runs.longestStopMs,
  };
}

async function runOnce({ container }: Bench, job: Job, budgetMs = BUDGET_MS): Promise<void> {
  const now = await container.get(Store).maintenance.time();
  await inBatches({ milliseconds: budgetMs, signal: new AbortController().signal }, job.begin(now));
}

async function measured(bench: Bench, work: () => Promise<void>) {
  const before = await blocksRead(bench);
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  await work();
  // The histogram notices a stop when it is over.
  await pause(5);
  histogram.disable();
  const after = await blocksRead(bench);
  return {
    blocks: after - before,
    longestStopMs: Math.max(0, histogram.max / 1e6 - 1),
  };
}

/** Blocks that statements have read so far; PostgreSQL only. */
async function blocksRead({ kind, container, run }: Bench): Promise<number> {
  if (kind === 'sqlite') return 0;
  await pause(REPORTED_MS);
  const { maintenance } = container.get(Store);
  await Promise.all(Array.from({ length: CONNECTIONS }, () => maintenance.time()));
  const [row] = await run(
    'select blks_hit + blks_read as blocks from pg_stat_database where datname = current_database()',
  );
  return Number(row?.['blocks']);
}

/** How long one page of failed sessions takes, of which there are few. */
async function failedList({ container, sessions }: Bench, _token: string): Promise<number> {
  const reads = container.get(Store).read(TENANT as never);
  const times: number[] = [];
  for (let run = 0; run < 5; run++) {
    const began = performance.now();
    const range = { ascending: false } as const;
    const through = await reads.sessionPlace(range, Math.min(10_000, sessions));
    await reads.sessions({
      ...range,
      kinds: ['issuance'],
      status: 'failed',
      limit: 26,
      ...(through !== undefined && { through }),
    });
    times.push(performance.now() - began);
  }
  return median(times);
}

/** Calls of a neighbour while `work` runs. */
async function beside(
  bench: Bench,
  token: string,
  work: () => Promise<number>,
): Promise<Omit<Backlog, 'what'>> {
  const times: number[] = [];
  let isOver = false;
  const neighbour = (async () => {
    while (!isOver) {
      const began = performance.now();
      await bench.service.call('GET', '/session?limit=1', { token });
      times.push(performance.now() - began);
      await pause(5);
    }
  })();
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  const began = performance.now();
  const sessions = await work();
  const perSecond = (sessions * 1000) / (performance.now() - began);
  histogram.disable();
  isOver = true;
  await neighbour;
  const sorted = times.toSorted((one, other) => one - other);
  return {
    sessions,
    perSecond,
    longestStopMs: Math.max(0, histogram.max / 1e6 - 1),
    neighbourP99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  };
}

const jobNamed = ({ jobs }: Bench, name: string): Job => {
  const job = jobs.find((each) => each.name === name);
  if (job === undefined) throw new Error(`there is no job ${name}`);
  return job;
};
const count = async ({ run }: Bench, condition: string) =>
  Number(
    (await run(`select count(*) as n from sessions where tenant_id = '${TENANT}' and ${condition}`))[0]?.[
      'n'
    ],
  );

/** A fifth of the sessions are offers that no wallet redeemed, and expired in the last five minutes. */
async function expiredOffers(bench: Bench, token: string): Promise<Backlog> {
  const now = (await bench.container.get(Store).maintenance.time()).getTime();
  await bench.run(
    `update sessions set status = 'active', expires_at = ${now} - cast(substr(id, 8) as bigint) % 300000
     where tenant_id = '${TENANT}' and (id like '%0' or id like '%5')`,
  );
  const before = await count(bench, `status = 'active'`);
  const job = jobNamed(bench, 'expire-sessions');
  const result = await beside(bench, token, async () => {
    await runOnce(bench, job);
    return before - (await count(bench, `status = 'active'`));
  });
  return { what: 'expired offers', ...result };
}

/** The tenant keeps its sessions for a minute from now on. */
async function shortenedTtl(bench: Bench, token: string): Promise<Backlog> {
  await bench.run(`update tenants set session_config = '{"ttlSeconds":60}' where id = '${TENANT}'`);
  const before = await count(bench, 'true');
  const job = jobNamed(bench, 'clean-up-sessions');
  const result = await beside(bench, token, async () => {
    await runOnce(bench, job, BUDGET_MS / 2);
    // What a wallet may still renew is hidden, and has a time in the future.
    return before - (await count(bench, `created_at <= ${Date.now()}`));
  });
  return { what: 'due by a shortened ttlSeconds', ...result };
}

async function removedTenant(bench: Bench, token: string): Promise<Backlog> {
  const before = await count(bench, 'true');
  const root = await bench.service.rootToken();
  const began = performance.now();
  await bench.service.call('DELETE', `/tenant/${TENANT}`, { token: root });
  console.log(`${bench.kind}: DELETE /tenant answered after ${(performance.now() - began).toFixed(0)} ms`);
  const job = jobNamed(bench, 'remove-tenants');
  const result = await beside(bench, token, async () => {
    for (let run = 0; run < 30; run++) {
      await runOnce(bench, job);
      if ((await count(bench, 'true')) === 0 && (await rest(bench)) === 0) break;
    }
    return before;
  });
  return { what: 'removal of the tenant', ...result };
}

const rest = async ({ run }: Bench) =>
  Number(
    (await run(`select count(*) as n from followed_statuses where list_id = '${FOLLOWED_LIST}'`))[0]?.['n'],
  );

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
    '| Backlog | Sessions | Per second | Longest stop, ms | p99 of a neighbour, ms |',
    '|---|---:|---:|---:|---:|',
    ...backlogs.map(
      (each) =>
        `| ${each.what} | ${each.sessions} | ${number(each.perSecond, 0)} | ${number(each.longestStopMs)} | ${number(each.neighbourP99Ms)} |`,
    ),
  ].join('\n');
}

/** What is not as the goals say. */
export function storedFaults(few: StoredRun | undefined, many: StoredRun): string[] {
  return many.jobs.flatMap(({ job, milliseconds }) => {
    const before = few?.jobs.find((each) => each.job === job)?.milliseconds ?? milliseconds;
    const isCheap = milliseconds <= MAX_IDLE_MS && milliseconds <= Math.max(1, 2 * before);
    return isCheap ? [] : [`${many.database}: ${job} takes ${milliseconds.toFixed(1)} ms with nothing due`];
  });
}
const MAX_IDLE_MS = 5;
