import { type Cost, type Meter, sumMs, type Times, together } from './meter.ts';
import type { ScenarioName } from './scenarios.ts';
import { median, type Spread, spreadOf } from './statistics.ts';

/** What two services cost in the same scenario. */
export type Comparison = {
  readonly scenario: ScenarioName;
  /** CPU milliseconds per flow, medians. */
  readonly aMs: number;
  readonly bMs: number;
  /** What B costs, divided by what A costs at the same time. */
  readonly sum: Spread;
  readonly serverRatio: number;
  /** Absent where the database is part of the service. */
  readonly databaseRatio?: number;
  readonly p99: readonly [a: number, b: number];
  readonly peakMegabytes: readonly [a: number, b: number];
  readonly errors: number;
  readonly messages: readonly string[];
  readonly pairs: readonly (readonly [a: Cost, b: Cost])[];
};

export type PairTimes = {
  readonly warmUpMs: number;
  /** Of each service in one pair. */
  readonly windowMs: number;
  readonly pairs: number;
};

/** What was under way in the other service's turn is over by then. */
const LEAD_IN_MS = 200;
/** A turn: shorter than what disturbs a machine lasts. */
const TURN_MS = 1_000;

/** How long the wallets of one of the services are at work. */
export function busyMs({ warmUpMs, windowMs, pairs }: PairTimes): number {
  return warmUpMs + pairs * (windowMs + turnsOf(windowMs) * LEAD_IN_MS) + LEAD_IN_MS;
}

function turnsOf(windowMs: number): number {
  return Math.max(1, Math.round(windowMs / TURN_MS));
}

/**
 * Measures two running services in turn, A B B A A B …, and changes over so often that whatever disturbs the machine disturbs
 * both. A steady drift favours neither.
 */
export async function comparePairs(
  scenario: ScenarioName,
  [a, b]: readonly [Meter, Meter],
  { warmUpMs, windowMs, pairs: count }: PairTimes,
): Promise<Comparison> {
  const turns = turnsOf(windowMs);
  const turn: Times = { warmUpMs: LEAD_IN_MS, measuredMs: windowMs / turns, windows: 1 };
  const warm: Cost[] = [];
  for (const meter of [a, b]) warm.push(await meter.measure(scenario, { ...turn, measuredMs: warmUpMs }));
  const pairs: (readonly [Cost, Cost])[] = [];
  let isA = true;
  while (pairs.length < count) {
    const ofA: Cost[] = [];
    const ofB: Cost[] = [];
    for (let left = turns; left > 0; left--) {
      for (const order of [isA, !isA])
        (order ? ofA : ofB).push(await (order ? a : b).measure(scenario, turn));
      isA = !isA;
    }
    pairs.push([together(ofA), together(ofB)]);
  }
  return summary(scenario, pairs, warm);
}

function summary(
  scenario: ScenarioName,
  pairs: readonly (readonly [Cost, Cost])[],
  warm: readonly Cost[],
): Comparison {
  const ratios = (of: (cost: Cost) => number) => pairs.map(([a, b]) => of(b) / of(a));
  const both = (of: (cost: Cost) => number) =>
    [median(pairs.map(([a]) => of(a))), median(pairs.map(([, b]) => of(b)))] as const;
  const [aMs, bMs] = both(sumMs);
  const hasDatabase = pairs.every(([a, b]) => a.databaseMs > 0 && b.databaseMs > 0);
  const all = [...warm, ...pairs.flat()];
  return {
    scenario,
    aMs,
    bMs,
    sum: spreadOf(ratios(sumMs)),
    serverRatio: median(ratios(({ serverMs }) => serverMs)),
    ...(hasDatabase && { databaseRatio: median(ratios(({ databaseMs }) => databaseMs)) }),
    p99: both(({ p99 }) => p99),
    peakMegabytes: both(({ peakMegabytes }) => peakMegabytes),
    errors: all.reduce((sum, { errors }) => sum + errors, 0),
    messages: [...new Set(all.flatMap(({ messages }) => messages.map(([message]) => message)))],
    pairs,
  };
}

/** One line, as `issue  A 3.412  B 3.120 ms  ×0.914 (0.902–0.931)  cheaper`. */
export function describeComparison({ scenario, aMs, bMs, sum, ...more }: Comparison): string {
  const { serverRatio, databaseRatio, p99, peakMegabytes, errors, messages } = more;
  const verdict = sum.high < 1 ? 'B is cheaper' : sum.low > 1 ? 'B is dearer' : 'no difference to be seen';
  const shares = [`service ${times(serverRatio)}`];
  if (databaseRatio !== undefined) shares.push(`database ${times(databaseRatio)}`);
  return [
    `${scenario.padEnd(12)} A ${aMs.toFixed(3)}  B ${bMs.toFixed(3)} ms  ${times(sum.median)}` +
      ` (${sum.low.toFixed(3)}–${sum.high.toFixed(3)})  ${verdict}`,
    `${' '.repeat(13)}${shares.join(', ')}; p99 ${p99.map((ms) => ms.toFixed(1)).join(' → ')} ms,` +
      ` peak ${peakMegabytes.map((mb) => mb.toFixed(0)).join(' → ')} MB${errors > 0 ? `; ${errors} ERRORS` : ''}`,
    ...messages.map((message) => `${' '.repeat(13)}${message}`),
  ].join('\n');
}

function times(ratio: number): string {
  return `×${ratio.toFixed(3)}`;
}
