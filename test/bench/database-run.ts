import { type Cast, withCast } from './cast.ts';
import { averageCosts, type CryptoCosts, measureCryptoCosts } from './floor.ts';
import type { BenchOptions } from './options.ts';
import {
  analyze,
  lookAtBackend,
  preloadRevocable,
  preloadSessions,
  preloadStatusEntries,
} from './preload.ts';
import { machineMs, memoryMegabytes, PostgresTime, resetPeak, spentMs } from './processor-time.ts';
import { PRESENTATION_SCENARIOS, SCENARIOS, type ScenarioName } from './scenarios.ts';
import type { ServiceProcess, Start } from './service-process.ts';
import { addStatusList, setUpTenant } from './tenant-setup.ts';
import type { WalletsProcess } from './wallets-process.ts';
import { FORMATS, LIST_CAPACITY, type Measured, type World } from './world.ts';

export type Result = Measured & {
  readonly scenario: ScenarioName;
  /** Before or after the tables were filled. */
  readonly tables: 'few' | 'many';
  /** CPU milliseconds per flow. */
  readonly serverMs: number;
  readonly databaseMs: number;
  readonly peakMegabytes: number;
  /** CPU that strangers used meanwhile, in cores; much of it makes the other numbers worse than they are. */
  readonly strangersCores: number;
};

export type DatabaseRun = {
  readonly database: 'postgres' | 'sqlite';
  readonly costs: CryptoCosts;
  /** The first start also makes the schema. */
  readonly starts: readonly Start[];
  readonly results: readonly Result[];
  readonly preloaded: { readonly sessions: number; readonly entries: number };
};

type Times = { readonly warmUpMs: number; readonly measuredMs: number };

/** Readings in CPU milliseconds. */
type Sample = {
  readonly server: number;
  readonly database: ReadonlyMap<number, number>;
  readonly wallets: number;
  readonly machine: number;
};

/** Whose cost must not grow with the tables. */
const GROWING: readonly ScenarioName[] = ['issue', 'session', 'status-list', 'revoke-read'];
const NEED_ENTRIES: readonly ScenarioName[] = ['status-list', 'revoke', 'revoke-read'];
/** Enough that sessions and credentials are not the same few all the time. */
const FEW_CREDENTIALS = 300;
const CREDENTIALS = 2_000;
const FEW_WARM_UP_MS = 2_000;
/** More than are revoked in a second. */
const REVOCATIONS_PER_SECOND: Partial<Record<ScenarioName, number>> = { revoke: 3_000, 'revoke-read': 1_000 };

const say = (text: string) => console.log(text);

/** @returns undefined when there is no such database here. */
export function runDatabase(
  kind: 'postgres' | 'sqlite',
  options: BenchOptions,
): Promise<DatabaseRun | undefined> {
  return withCast(kind, options, (cast) => new Round(kind, options, cast).run());
}

/** All scenarios on one database, first with nearly empty tables, then with full ones. */
class Round {
  readonly #kind: 'postgres' | 'sqlite';
  readonly #url: string;
  readonly #options: BenchOptions;
  readonly #service: ServiceProcess;
  readonly #wallets: WalletsProcess;
  readonly #provider: Cast['provider'];
  readonly #results: Result[] = [];
  #databaseTime: PostgresTime | undefined;

  constructor(kind: 'postgres' | 'sqlite', options: BenchOptions, { url, service, wallets, provider }: Cast) {
    this.#kind = kind;
    this.#url = url;
    this.#options = options;
    this.#service = service;
    this.#wallets = wallets;
    this.#provider = provider;
  }

  async run(): Promise<DatabaseRun> {
    const { preloadedSessions, preloadedEntries, measuredSeconds, warmUpSeconds } = this.#options;
    const wanted = SCENARIOS.map(({ name }) => name).filter((name) => this.#wants(name));
    say(`\n${this.#kind}: measuring bare cryptography`);
    const before = measureCryptoCosts();
    if (this.#kind === 'postgres') {
      const name = new URL(this.#url).pathname.slice(1);
      this.#databaseTime = await lookAtBackend(this.#url, (pid) => PostgresTime.of(pid, name));
      if (this.#databaseTime === undefined)
        say('postgres: the server does not run on this machine; its CPU is not counted');
    }
    await this.#service.start();
    const world = await setUpTenant(this.#service.origin, this.#provider);
    await this.#wallets.prepare(world);
    await this.#wallets.collect('dc+sd-jwt', FEW_CREDENTIALS);

    const short = {
      warmUpMs: Math.min(FEW_WARM_UP_MS, warmUpSeconds * 1000),
      measuredMs: measuredSeconds * 500,
    };
    const growing = GROWING.filter((name) => wanted.includes(name));
    await this.#makeRevocable(world, growing, short);
    await analyze(this.#url);
    for (const name of growing) await this.#measure(name, 'few', short);

    say(`${this.#kind}: filling the tables with ${preloadedSessions} sessions`);
    await preloadSessions(this.#url, preloadedSessions);
    await analyze(this.#url);
    const long = { warmUpMs: warmUpSeconds * 1000, measuredMs: measuredSeconds * 1000 };
    const issuing: readonly ScenarioName[] = [
      'issue',
      'issue-status',
      'issue-mdoc',
      'batch',
      'code',
      'offer',
      'session',
      'sessions',
    ];
    for (const name of issuing.filter((name) => wanted.includes(name)))
      await this.#measure(name, 'many', long);
    const presenting = PRESENTATION_SCENARIOS.filter((name) => wanted.includes(name));
    if (presenting.length > 0) {
      for (const format of FORMATS) await this.#wallets.collect(format, CREDENTIALS);
      // A verifier is seldom the issuer: what the issuance left in the caches must not help.
      await this.#service.stop();
      await this.#service.start();
    }
    for (const name of presenting) await this.#measure(name, 'many', long);
    const onEntries = NEED_ENTRIES.filter((name) => wanted.includes(name));
    if (onEntries.length > 0) {
      await this.#makeRevocable(world, onEntries, long);
      say(`${this.#kind}: revoking ${preloadedEntries} entries of each status list`);
      await preloadStatusEntries(this.#url, preloadedEntries);
      await analyze(this.#url);
    }
    for (const name of onEntries) await this.#measure(name, 'many', long);
    if (this.#service.starts.length === 1) {
      await this.#service.stop();
      await this.#service.start();
    }
    return {
      database: this.#kind,
      costs: averageCosts([before, measureCryptoCosts()]),
      starts: this.#service.starts,
      results: this.#results,
      preloaded: { sessions: preloadedSessions, entries: preloadedEntries },
    };
  }

  /** Credentials for what the scenarios revoke in all this time. */
  async #makeRevocable(world: World, scenarios: readonly ScenarioName[], times: Times): Promise<void> {
    const perSecond = scenarios.reduce((sum, name) => sum + (REVOCATIONS_PER_SECOND[name] ?? 0), 0);
    let missing = (perSecond * (times.warmUpMs + times.measuredMs)) / 1000;
    for (; missing > 0; missing -= LIST_CAPACITY) {
      const list = await addStatusList(world);
      const count = Math.min(missing, LIST_CAPACITY);
      await preloadRevocable(this.#url, list.id, count);
      await this.#wallets.addRevocable(list, count);
    }
  }

  #wants(name: ScenarioName): boolean {
    return this.#options.only.size === 0 || this.#options.only.has(name);
  }

  async #measure(scenario: ScenarioName, tables: 'few' | 'many', times: Times): Promise<void> {
    process.stdout.write(`${this.#kind}: ${scenario} (${tables} rows) … `);
    const samples: Sample[] = [];
    resetPeak(this.#service.pid);
    const measured = await this.#wallets.run(scenario, times, () => {
      samples.push({
        server: this.#service.cpuMs(),
        database: this.#databaseTime?.read() ?? new Map(),
        wallets: this.#wallets.cpuMs(),
        machine: machineMs(),
      });
    });
    const [first, last] = samples;
    if (first === undefined || last === undefined)
      throw new Error('the wallets did not say when they measured');
    const serverMs = last.server - first.server;
    const databaseMs = spentMs(first.database, last.database);
    const oursMs = serverMs + databaseMs + last.wallets - first.wallets;
    const result: Result = {
      ...measured,
      scenario,
      tables,
      serverMs: serverMs / measured.flows,
      databaseMs: databaseMs / measured.flows,
      peakMegabytes: memoryMegabytes(this.#service.pid, 'VmHWM'),
      strangersCores: Math.max(0, last.machine - first.machine - oursMs) / times.measuredMs,
    };
    this.#results.push(result);
    const sum = result.serverMs + result.databaseMs;
    say(`${(result.flows / result.seconds).toFixed(0)} flows/s, ${sum.toFixed(3)} ms CPU per flow`);
    for (const [message, count] of result.messages) say(`  ${count} × ${message}`);
  }
}
