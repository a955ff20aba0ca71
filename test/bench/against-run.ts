import { type Cast, withCast } from './cast.ts';
import { Meter } from './meter.ts';
import type { BenchOptions } from './options.ts';
import { busyMs, type Comparison, comparePairs, describeComparison, type PairTimes, relativeSpread } from './pairs.ts';
import { analyze, preloadSessions } from './preload.ts';
import { makeRevocable } from './revocable.ts';
import { type Growth, type PresentationScenario, SCENARIOS, type ScenarioName } from './scenarios.ts';
import type { Variant } from './service-process.ts';
import { addKeyChains, addTenants, setUpTenant } from './tenant-setup.ts';
import { WalletsProcess } from './wallets-process.ts';
import type { DatabaseKind, World } from './world.ts';

export type PairedRun = { readonly database: DatabaseKind; readonly comparisons: readonly Comparison[] };

/** Rows that each side has before the measurement. */
export type StoredVariant = {
  readonly sessions: number;
  readonly listCapacity?: number;
  readonly more?: (cast: Cast, world: World) => Promise<void>;
};

const FEW_CREDENTIALS = 50;
const PRESENTED_CREDENTIALS = 600;
const EQUAL: StoredVariant = { sessions: 20_000 };

/**
 * Compares another service, B, with the present one, A, on databases of their own of the same server.
 * @returns undefined when there is no such database here.
 */
export async function runAgainst(
  kind: DatabaseKind,
  options: BenchOptions,
  variant: Variant,
  stored: { readonly a: StoredVariant; readonly b: StoredVariant } = { a: EQUAL, b: EQUAL },
): Promise<PairedRun | undefined> {
  const wallets = new WalletsProcess();
  const scenarios = SCENARIOS.map(({ name }) => name).filter((name) => options.only.size === 0 || options.only.has(name));
  const pairTimes: PairTimes = {
    warmUpMs: options.warmUpSeconds * 1000,
    windowMs: options.measuredSeconds * 1000,
    pairs: options.pairs,
    starts: options.starts,
  };
  const withA = (a: Cast) =>
    withCast(
      kind,
      { ...options, profileFolder: undefined, variant },
      async (b): Promise<PairedRun> => {
        console.log(`${kind}: preparing both services`);
        for (const [cast, has] of [[a, stored.a] as const, [b, stored.b] as const]) await prepare(cast, scenarios, pairTimes, has);
        const meters = [await Meter.of(a), await Meter.of(b)] as const;
        const comparisons: Comparison[] = [];
        let order = [a, b];
        const restart = async () => {
          for (const { service } of order) await service.stop();
          // The one that started last is the first one now.
          order = order.toReversed();
          for (const { service } of order) await service.start();
        };
        for (const scenario of scenarios) {
          const seconds = Math.ceil((2 * busyMs(pairTimes)) / 1000);
          console.log(`${kind}: ${scenario} … ${pairTimes.pairs} pairs, ${seconds} s and the starts`);
          const comparison = await comparePairs(scenario, meters, pairTimes, restart);
          console.log(`${kind}: ${describeComparison(comparison)}`);
          comparisons.push(comparison);
        }
        return { database: kind, comparisons };
      },
      wallets.spawnSibling(),
    );
  return withCast(kind, { ...options, profileFolder: undefined }, withA, wallets);
}

async function prepare(
  cast: Cast,
  scenarios: readonly ScenarioName[],
  pairTimes: PairTimes,
  { sessions, listCapacity, more }: StoredVariant,
): Promise<void> {
  const { url, service, wallets, provider } = cast;
  await service.start();
  const world = await setUpTenant(service.origin, provider, listCapacity === undefined ? {} : { listCapacity });
  await wallets.prepare(world);
  await wallets.collect('dc+sd-jwt', FEW_CREDENTIALS);
  for (const format of new Set(scenarios.flatMap((name) => countQueries(name, world.asking))))
    await wallets.collect(format, PRESENTED_CREDENTIALS);
  if (sessions > 0) await preloadSessions(url, sessions);
  await makeRevocable(cast, world, scenarios, busyMs(pairTimes));
  await more?.(cast, world);
  await analyze(url);
}

function countQueries(name: ScenarioName, asking: World['asking']) {
  return asking[name as PresentationScenario]?.queries.map(({ format }) => format) ?? [];
}

const MANY = { sessions: 1_000_000, tenants: 1_000, lists: 1_000_000, keys: 1_000 } as const;
/** Values with `--quick`. */
const SHARE = 0.1;
/** Maximum additional cost of a flow with all of these rows. */
const ALLOWED = 1.05;
const NO_QUOTA = { QUOTA_KEY_CHAINS: '5000' };

/** Compares the service with little in its database (A) and the same with much (B). */
export function runGrowth(kind: DatabaseKind, options: BenchOptions): Promise<PairedRun | undefined> {
  const grown = (growth: Growth) => (options.grow.includes(growth) ? Math.ceil(MANY[growth] * (options.quick ? SHARE : 1)) : 0);
  const b: StoredVariant = {
    sessions: grown('sessions'),
    ...(grown('lists') > 0 && { listCapacity: grown('lists') }),
    more: async ({ service }, world) => {
      await addTenants(service.origin, grown('tenants'));
      await addKeyChains(world, grown('keys'));
    },
  };
  return runAgainst(kind, options, { environment: NO_QUOTA }, { a: { sessions: 0 }, b });
}

/** @returns flows whose cost grew by more than the limit and the noise. */
export function growthFaults({ database, comparisons }: PairedRun): readonly string[] {
  return comparisons
    .filter(grows)
    .map(({ scenario, sum }) => `${database}: ${scenario} is dearer with much stored, ×${sum.median.toFixed(3)}`);
}

function grows({ sum }: Pick<Comparison, 'sum'>): boolean {
  return sum.median > ALLOWED + relativeSpread(sum);
}
