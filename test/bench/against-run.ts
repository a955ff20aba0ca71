import { type Cast, withCast } from './cast.ts';
import { Meter } from './meter.ts';
import type { BenchOptions } from './options.ts';
import { busyMs, type Comparison, comparePairs, describeComparison, type PairTimes } from './pairs.ts';
import { analyze, preloadSessions } from './preload.ts';
import { makeRevocable } from './revocable.ts';
import { type PresentationScenario, SCENARIOS, type ScenarioName } from './scenarios.ts';
import type { Variant } from './service-process.ts';
import { setUpTenant } from './tenant-setup.ts';
import { WalletsProcess } from './wallets-process.ts';
import type { DatabaseKind, World } from './world.ts';

export type PairedRun = { readonly database: DatabaseKind; readonly comparisons: readonly Comparison[] };

/** What there is on a side before anything is measured. */
export type Stored = {
  readonly sessions: number;
  readonly listCapacity?: number;
  readonly more?: (cast: Cast, world: World) => Promise<void>;
};

const FEW_CREDENTIALS = 50;
const PRESENTED_CREDENTIALS = 600;
const EQUAL: Stored = { sessions: 20_000 };

/**
 * Compares another service, B, with the present one, A, on databases of their own of the same server.
 * @returns undefined when there is no such database here.
 */
export async function runAgainst(
  kind: DatabaseKind,
  options: BenchOptions,
  variant: Variant,
  stored: { readonly a: Stored; readonly b: Stored } = { a: EQUAL, b: EQUAL },
): Promise<PairedRun | undefined> {
  const wallets = new WalletsProcess();
  const scenarios = SCENARIOS.map(({ name }) => name).filter(
    (name) => options.only.size === 0 || options.only.has(name),
  );
  const times: PairTimes = {
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
        for (const [cast, has] of [[a, stored.a] as const, [b, stored.b] as const])
          await prepare(cast, scenarios, times, has);
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
          const seconds = Math.ceil((2 * busyMs(times)) / 1000);
          console.log(`${kind}: ${scenario} … ${times.pairs} pairs, ${seconds} s and the starts`);
          const comparison = await comparePairs(scenario, meters, times, restart);
          console.log(`${kind}: ${describeComparison(comparison)}`);
          comparisons.push(comparison);
        }
        return { database: kind, comparisons };
      },
      wallets.elsewhere(),
    );
  return withCast(kind, { ...options, profileFolder: undefined }, withA, wallets);
}

async function prepare(
  cast: Cast,
  scenarios: readonly ScenarioName[],
  times: PairTimes,
  { sessions, listCapacity, more }: Stored,
): Promise<void> {
  const { url, service, wallets, provider } = cast;
  await service.start();
  const world = await setUpTenant(
    service.origin,
    provider,
    listCapacity === undefined ? {} : { listCapacity },
  );
  await wallets.prepare(world);
  await wallets.collect('dc+sd-jwt', FEW_CREDENTIALS);
  for (const format of new Set(scenarios.flatMap((name) => asked(name, world.asking))))
    await wallets.collect(format, PRESENTED_CREDENTIALS);
  if (sessions > 0) await preloadSessions(url, sessions);
  await makeRevocable(cast, world, scenarios, busyMs(times));
  await more?.(cast, world);
  await analyze(url);
}

function asked(name: ScenarioName, asking: World['asking']) {
  return asking[name as PresentationScenario]?.queries.map(({ format }) => format) ?? [];
}
