import { type Cast, withCast } from './cast.ts';
import type { BenchOptions } from './options.ts';
import { computeSpread, type Spread } from './pairs.ts';
import { analyze } from './preload.ts';
import { makeRevocable } from './revocable.ts';
import { SCENARIOS, type ScenarioName } from './scenarios.ts';
import { setUpTenant } from './tenant-setup.ts';
import { WalletsProcess } from './wallets-process.ts';
import { type DatabaseKind, FORMATS, type Measured, WALLETS, type World } from './world.ts';

/** Concurrent load: none, a tenant of the same size, or one that floods the service. */
const NEIGHBOURS = ['alone', 'peer', 'flood'] as const;
type NeighbourKind = (typeof NEIGHBOURS)[number];

export type NoisyScenario = {
  readonly scenario: ScenarioName;
  readonly rounds: readonly Readonly<Record<NeighbourKind, Measured>>[];
  /** The 99th percentile beside the flood, divided by that beside a peer, and by that alone. */
  readonly overPeer: Spread;
  readonly overAlone: Spread;
  readonly errors: number;
  readonly met: boolean;
};
export type NoisyRun = { readonly database: DatabaseKind; readonly scenarios: readonly NoisyScenario[] };

const FLOOD_WALLETS = 200;
const CREDENTIALS = 100;
/** Time until the concurrent load runs. */
const LEAD_IN_MS = 1_000;
const ALLOWED_OVER_PEER = 1.2;

/** Measures how long one tenant waits while another floods the service. @returns undefined without this database. */
export function runNoisy(kind: DatabaseKind, options: BenchOptions): Promise<NoisyRun | undefined> {
  const scenarios = SCENARIOS.map(({ name }) => name).filter((name) =>
    options.only.size === 0 ? name === 'issue-status' : options.only.has(name),
  );
  return withCast(kind, options, async (cast) => {
    await cast.service.start();
    const otherWallets = [new WalletsProcess(), new WalletsProcess()] as const;
    const [peer, flood] = otherWallets;
    try {
      await prepare(cast, scenarios, options, { id: 'bench', wallets: WALLETS });
      await prepare({ ...cast, wallets: peer }, scenarios, options, { id: 'peer', wallets: WALLETS });
      await prepare({ ...cast, wallets: flood }, scenarios, options, { id: 'flood', wallets: FLOOD_WALLETS });
      await analyze(cast.url);
      const measured: NoisyScenario[] = [];
      for (const scenario of scenarios) {
        const roundResult = await measure(scenario, options, { own: cast.wallets, peer, flood });
        console.log(`${kind}: ${describe(roundResult)}`);
        measured.push(roundResult);
      }
      return { database: kind, scenarios: measured };
    } finally {
      for (const otherProcess of otherWallets) otherProcess.stop();
    }
  });
}

/** Wallets of a separate tenant in a separate process, so that the flood does not slow the other wallets. */
async function prepare(
  { service, provider, wallets, url }: Cast,
  scenarios: readonly ScenarioName[],
  { pairs, measuredSeconds, warmUpSeconds }: BenchOptions,
  tenant: Pick<World, 'wallets'> & { readonly id: string },
): Promise<void> {
  const world = { ...(await setUpTenant(service.origin, provider, tenant)), wallets: tenant.wallets };
  await wallets.prepare(world);
  for (const format of FORMATS) await wallets.collect(format, CREDENTIALS);
  const busyMs = NEIGHBOURS.length * pairs * (measuredSeconds * 1000 + LEAD_IN_MS) + warmUpSeconds * 1000;
  await makeRevocable({ url, wallets }, world, scenarios, busyMs);
}

async function measure(
  scenario: ScenarioName,
  { pairs, measuredSeconds, warmUpSeconds }: BenchOptions,
  { own: ownWallets, peer, flood }: Readonly<Record<'own' | 'peer' | 'flood', WalletsProcess>>,
): Promise<NoisyScenario> {
  await measureBeside(undefined, ownWallets, scenario, warmUpSeconds);
  const rounds: Record<NeighbourKind, Measured>[] = [];
  while (rounds.length < pairs) {
    rounds.push({
      alone: await measureBeside(undefined, ownWallets, scenario, measuredSeconds),
      peer: await measureBeside(peer, ownWallets, scenario, measuredSeconds),
      flood: await measureBeside(flood, ownWallets, scenario, measuredSeconds),
    });
  }
  return summary(scenario, rounds);
}

async function measureBeside(
  neighbourProcess: WalletsProcess | undefined,
  ownWallets: WalletsProcess,
  scenario: ScenarioName,
  seconds: number,
): Promise<Measured> {
  const times = { warmUpMs: LEAD_IN_MS, measuredMs: seconds * 1000, windows: 1 };
  const neighbourRun = neighbourProcess?.run(scenario, times, () => {});
  const measured = await ownWallets.run(scenario, times, () => {});
  const errors = (await neighbourRun)?.errors ?? 0;
  return { ...measured, errors: measured.errors + errors };
}

function summary(scenario: ScenarioName, rounds: NoisyScenario['rounds']): NoisyScenario {
  const overPeer = computeSpread(rounds.map(({ peer, flood }) => flood.p99 / peer.p99));
  return {
    scenario,
    rounds,
    overPeer,
    overAlone: computeSpread(rounds.map(({ alone, flood }) => flood.p99 / alone.p99)),
    errors: rounds.flatMap((round) => Object.values(round)).reduce((sum, { errors }) => sum + errors, 0),
    met: overPeer.median <= ALLOWED_OVER_PEER,
  };
}

function describe({ scenario, rounds, overPeer, overAlone, errors, met }: NoisyScenario): string {
  const lines = NEIGHBOURS.map((neighbour) => {
    const percentile = (name: 'p50' | 'p99') => computeSpread(rounds.map((round) => round[neighbour][name])).median.toFixed(1);
    return `  ${neighbour.padEnd(6)} p50 ${percentile('p50')} ms, p99 ${percentile('p99')} ms`;
  });
  const ratio = ({ median, low, high }: Spread) => `×${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
  return [
    `${scenario} of ${WALLETS} wallets, beside ${WALLETS} of a peer, and beside ${FLOOD_WALLETS} of a flood`,
    ...lines,
    `  p99 beside the flood: ${ratio(overPeer)} of that beside a peer, ${ratio(overAlone)} of that alone;` +
      ` goal ×${ALLOWED_OVER_PEER} of a peer: ${met ? 'ok' : 'MISSED'}${errors > 0 ? `; ${errors} ERRORS` : ''}`,
  ].join('\n');
}
