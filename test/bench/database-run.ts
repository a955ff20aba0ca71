import { type Cast, withCast } from './cast.ts';
import { averageCosts, type CryptoCosts, measureCryptoCosts, slownessNow } from './floor.ts';
import { type Cost, type MeasuringTimes, Meter, sumMs, totalMs } from './meter.ts';
import type { BenchOptions } from './options.ts';
import { analyze, describeServer, preloadSessions, preloadStatusEntries } from './preload.ts';
import { makeRevocable } from './revocable.ts';
import { PRESENTATION_SCENARIOS, type ScenarioName } from './scenarios.ts';
import type { Start } from './service-process.ts';
import { setUpTenant } from './tenant-setup.ts';
import { type DatabaseKind, FORMATS, type World } from './world.ts';

export type Result = Cost & {
  readonly scenario: ScenarioName;
  /** Before or after the tables were filled; `again` is the first scenario once more, when all are over. */
  readonly tables: 'few' | 'many' | 'again';
  /** Slowness of this machine relative to the reference, before and after the measurement. */
  readonly slowness: number;
};

export type DatabaseRun = {
  readonly database: DatabaseKind;
  /** Which database it was, and whether it waits for the disk. */
  readonly server: string;
  readonly costs: CryptoCosts;
  /** The first start also makes the schema. */
  readonly starts: readonly Start[];
  readonly results: readonly Result[];
  readonly preloaded: { readonly sessions: number; readonly entries: number };
};

/** Flows whose cost must not grow with the tables. */
const GROWING: readonly ScenarioName[] = ['issue', 'session', 'status-list', 'revoke-read'];
const ISSUING: readonly ScenarioName[] = ['issue', 'issue-status', 'issue-mdoc', 'batch', 'code', 'offer', 'session', 'sessions'];
const NEED_ENTRIES: readonly ScenarioName[] = ['status-list', 'revoke', 'revoke-read'];
/** Flows that consume rows, which are created for each measurement. */
const REVOKING: readonly ScenarioName[] = ['revoke', 'revoke-read'];
/** Enough that sessions and credentials are not the same few all the time. */
const FEW_CREDENTIALS = 300;
const CREDENTIALS = 2_000;
const FEW_WARM_UP_MS = 2_000;
const WINDOWS = 4;

const print = (text: string) => console.log(text);

/** @returns undefined when there is no such database here. */
export function runDatabase(kind: DatabaseKind, options: BenchOptions): Promise<DatabaseRun | undefined> {
  return withCast(kind, options, async (cast) => new DatabaseRound(kind, options, cast, await Meter.of(cast)).run());
}

/** All scenarios on one database, first with nearly empty tables, then with full ones. */
class DatabaseRound {
  readonly #kind: DatabaseKind;
  readonly #options: BenchOptions;
  readonly #cast: Cast;
  readonly #meter: Meter;
  readonly #results: Result[] = [];
  /** Windows short enough that the machine is much the same in one, and enough of them to see how it varies. */
  readonly #long: MeasuringTimes;

  constructor(kind: DatabaseKind, options: BenchOptions, cast: Cast, meter: Meter) {
    this.#kind = kind;
    this.#options = options;
    this.#cast = cast;
    this.#meter = meter;
    const { warmUpSeconds, measuredSeconds } = options;
    this.#long = { warmUpMs: warmUpSeconds * 1000, measuredMs: measuredSeconds * 1000, windows: WINDOWS };
  }

  async run(): Promise<DatabaseRun> {
    const { preloadedSessions, preloadedEntries } = this.#options;
    const { service, wallets, provider } = this.#cast;
    print(`\n${this.#kind}: measuring bare cryptography`);
    const costsBefore = measureCryptoCosts();
    await service.start();
    const world = await setUpTenant(service.origin, provider);
    await wallets.prepare(world);
    await wallets.collect('dc+sd-jwt', FEW_CREDENTIALS);
    await this.#withFewRows(world);
    print(`${this.#kind}: filling the tables with ${preloadedSessions} sessions`);
    await preloadSessions(this.#cast.url, preloadedSessions);
    await analyze(this.#cast.url);
    for (const name of this.#wanted(ISSUING)) await this.#measure(name, 'many', this.#long);
    await this.#present();
    await this.#withStatuses(world);
    const [manyResult] = this.#results.filter(({ tables }) => tables === 'many');
    if (manyResult !== undefined && !REVOKING.includes(manyResult.scenario)) await this.#measure(manyResult.scenario, 'again', this.#long);
    if (service.starts.length === 1) {
      await service.stop();
      await service.start();
    }
    return {
      database: this.#kind,
      server: await describeServer(this.#cast.url),
      costs: averageCosts([costsBefore, measureCryptoCosts()]),
      starts: service.starts,
      results: this.#results,
      preloaded: { sessions: preloadedSessions, entries: preloadedEntries },
    };
  }

  async #withFewRows(world: World): Promise<void> {
    const { warmUpMs, measuredMs, windows } = this.#long;
    const warm = Math.min(FEW_WARM_UP_MS, warmUpMs);
    const short = { warmUpMs: warm, measuredMs: measuredMs / 2, windows };
    const growing = this.#wanted(GROWING);
    await makeRevocable(this.#cast, world, growing, totalMs(short));
    await analyze(this.#cast.url);
    for (const name of growing) await this.#measure(name, 'few', short);
  }

  async #present(): Promise<void> {
    const { service, wallets } = this.#cast;
    const presenting = this.#wanted(PRESENTATION_SCENARIOS);
    if (presenting.length === 0) return;
    for (const format of FORMATS) await wallets.collect(format, CREDENTIALS);
    // A verifier is seldom the issuer: what the issuance left in the caches must not help.
    await service.stop();
    await service.start();
    for (const name of presenting) await this.#measure(name, 'many', this.#long);
  }

  async #withStatuses(world: World): Promise<void> {
    const { preloadedEntries } = this.#options;
    const onEntries = this.#wanted(NEED_ENTRIES);
    if (onEntries.length === 0) return;
    await makeRevocable(this.#cast, world, onEntries, totalMs(this.#long));
    print(`${this.#kind}: revoking ${preloadedEntries} entries of each status list`);
    await preloadStatusEntries(this.#cast.url, preloadedEntries);
    await analyze(this.#cast.url);
    for (const name of onEntries) await this.#measure(name, 'many', this.#long);
  }

  #wanted(names: readonly ScenarioName[]): readonly ScenarioName[] {
    const { only } = this.#options;
    return only.size === 0 ? names : names.filter((name) => only.has(name));
  }

  async #measure(scenario: ScenarioName, tables: Result['tables'], times: MeasuringTimes): Promise<void> {
    process.stdout.write(`${this.#kind}: ${scenario} (${tables === 'again' ? 'once more' : `${tables} rows`}) … `);
    const slownessBefore = slownessNow();
    const cost = await this.#meter.measure(scenario, times);
    const result = { ...cost, scenario, tables, slowness: (slownessBefore + slownessNow()) / 2 };
    this.#results.push(result);
    const flows = (result.flows / result.seconds).toFixed(0);
    print(`${flows} flows/s, ${sumMs(result).toFixed(3)} ms CPU per flow`);
    for (const [message, count] of result.messages) print(`  ${count} × ${message}`);
  }
}
