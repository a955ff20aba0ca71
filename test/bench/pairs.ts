import { type Cost, combineCosts, type MeasuringTimes, type Meter, sumMs } from './meter.ts';
import type { ScenarioName } from './scenarios.ts';

/** Statistics of repeated measurements of one value. */
export type Spread = {
  readonly median: number;
  /** Between them lies the true median in 95 of 100 cases, or as often as so few measurements can tell. */
  readonly low: number;
  readonly high: number;
};

/** Probability that the true median lies outside. */
const MISSED = 0.05;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((first, second) => first - second);
  const middle = sorted.length / 2;
  const [below = Number.NaN, above = below] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (below + above) / 2;
}

/**
 * The median and its distribution-free confidence interval by ranks: each value is above or below the true median with
 * equal probability. A single outlier moves neither.
 */
export function computeSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((first, second) => first - second);
  let excludedCount = 0;
  while (excludedCount < (sorted.length - 1) / 2 && 2 * tail(sorted.length, excludedCount + 1) <= MISSED) excludedCount++;
  const [low = Number.NaN, high = Number.NaN] = [sorted[excludedCount], sorted[sorted.length - 1 - excludedCount]];
  return { median: median(sorted), low, high };
}

/** Cumulative binomial probability for a fair coin. */
function tail(coins: number, heads: number): number {
  let ways = 1;
  let sum = 1;
  for (let k = 1; k <= heads; k++) {
    ways = (ways * (coins - k + 1)) / k;
    sum += ways;
  }
  return sum / 2 ** coins;
}

/** Half of the distance between low and high, as a share of the median. */
export function relativeSpread({ median: middle, low, high }: Spread): number {
  return (high - low) / 2 / middle;
}

/** Costs of two services in the same scenario. */
export type Comparison = {
  readonly scenario: ScenarioName;
  /** CPU milliseconds per flow, medians. */
  readonly aMs: number;
  readonly bMs: number;
  /** The cost of B divided by the cost of A at the same time. */
  readonly sum: Spread;
  readonly serverRatio: number;
  /** Absent where the database is part of the service. */
  readonly databaseRatio?: number;
  readonly p99: readonly [a: number, b: number];
  readonly peakMegabytes: readonly [a: number, b: number];
  readonly errors: number;
  readonly messages: readonly string[];
  readonly pairs: readonly (readonly [a: Cost, b: Cost])[];
  /** Number of processes of each. */
  readonly starts: number;
};

type Pair = readonly [a: Cost, b: Cost];

export type PairTimes = {
  readonly warmUpMs: number;
  /** Measurements of each service in one pair. */
  readonly windowMs: number;
  readonly pairs: number;
  /**
   * Number of processes of each service over which the pairs are distributed, since processes of one build differ in speed.
   */
  readonly starts: number;
};

/** Remaining work of the other service has ended after this time. */
const LEAD_IN_MS = 150;
/** A turn: shorter than what disturbs a machine lasts. */
const TURN_MS = 1_000;

/** Runs the wallets of one service for this long. */
export function busyMs({ warmUpMs, windowMs, pairs, starts }: PairTimes): number {
  return starts * (warmUpMs + LEAD_IN_MS) + pairs * (windowMs + turnsPerWindow(windowMs) * LEAD_IN_MS);
}

function turnsPerWindow(windowMs: number): number {
  return Math.max(1, Math.round(windowMs / TURN_MS));
}

/**
 * Measures two running services in turn, A B B A A B …, and changes over so often that whatever disturbs the machine disturbs
 * both. A steady drift favours neither.
 * @param restart ends both and starts them anew.
 */
export async function comparePairs(
  scenario: ScenarioName,
  [a, b]: readonly [Meter, Meter],
  { warmUpMs, windowMs, pairs: count, starts }: PairTimes,
  restart: () => Promise<void>,
): Promise<Comparison> {
  const turns = turnsPerWindow(windowMs);
  const turn: MeasuringTimes = { warmUpMs: LEAD_IN_MS, measuredMs: windowMs / turns, windows: 1 };
  const warm: Cost[] = [];
  const warmUp = async () => {
    for (const meter of [a, b]) warm.push(await meter.measure(scenario, { ...turn, measuredMs: warmUpMs }));
  };
  await warmUp();
  const pairs: Pair[] = [];
  let isA = true;
  const begins: number[] = [0];
  while (pairs.length < count) {
    if (pairs.length >= (begins.length * count) / starts) {
      begins.push(pairs.length);
      await restart();
      await warmUp();
    }
    const costsOfA: Cost[] = [];
    const costsOfB: Cost[] = [];
    for (let remaining = turns; remaining > 0; remaining--) {
      for (const order of [isA, !isA]) (order ? costsOfA : costsOfB).push(await (order ? a : b).measure(scenario, turn));
      isA = !isA;
    }
    pairs.push([combineCosts(costsOfA), combineCosts(costsOfB)]);
  }
  const groups = begins.map((startIndex, index) => pairs.slice(startIndex, begins[index + 1]));
  return summary(scenario, groups, warm);
}

/** Fewer say nothing of how lucky a process is. */
const ENOUGH_STARTS = 5;

/** @param groups the pairs of each start. */
export function summary(scenario: ScenarioName, groups: readonly (readonly Pair[])[], warm: readonly Cost[]): Comparison {
  const pairs = groups.flat();
  const pairRatio = ([a, b]: Pair) => sumMs(b) / sumMs(a);
  // Pairs of the same two processes share their luck, so that each start counts once where there are enough.
  const independent = groups.length >= ENOUGH_STARTS ? groups.map((group) => median(group.map(pairRatio))) : pairs.map(pairRatio);
  const ratios = (metric: (cost: Cost) => number) => pairs.map(([a, b]) => metric(b) / metric(a));
  const medians = (metric: (cost: Cost) => number) =>
    [median(pairs.map(([a]) => metric(a))), median(pairs.map(([, b]) => metric(b)))] as const;
  const [aMs, bMs] = medians(sumMs);
  const hasDatabase = pairs.every(([a, b]) => a.databaseMs > 0 && b.databaseMs > 0);
  const allCosts = [...warm, ...pairs.flat()];
  return {
    scenario,
    aMs,
    bMs,
    sum: computeSpread(independent),
    serverRatio: median(ratios(({ serverMs }) => serverMs)),
    ...(hasDatabase && { databaseRatio: median(ratios(({ databaseMs }) => databaseMs)) }),
    p99: medians(({ p99 }) => p99),
    peakMegabytes: medians(({ peakMegabytes }) => peakMegabytes),
    errors: allCosts.reduce((sum, { errors }) => sum + errors, 0),
    messages: [...new Set(allCosts.flatMap(({ messages }) => messages.map(([message]) => message)))],
    pairs,
    starts: groups.length,
  };
}

/** One line, as `issue  A 3.412  B 3.120 ms  ×0.914 (0.902–0.931)  cheaper`. */
export function describeComparison({ scenario, aMs, bMs, sum, ...more }: Comparison): string {
  const { serverRatio, databaseRatio, p99, peakMegabytes, errors, messages } = more;
  const shares = [`service ${formatRatio(serverRatio)}`];
  if (databaseRatio !== undefined) shares.push(`database ${formatRatio(databaseRatio)}`);
  return [
    `${scenario.padEnd(12)} A ${aMs.toFixed(3)}  B ${bMs.toFixed(3)} ms  ${formatRatio(sum.median)}` +
      ` (${sum.low.toFixed(3)}–${sum.high.toFixed(3)})  ${describeResult(sum, more.starts)}`,
    `${' '.repeat(13)}${shares.join(', ')}; p99 ${p99.map((ms) => ms.toFixed(1)).join(' → ')} ms,` +
      ` peak ${peakMegabytes.map((mb) => mb.toFixed(0)).join(' → ')} MB${errors > 0 ? `; ${errors} ERRORS` : ''}`,
    ...messages.map((message) => `${' '.repeat(13)}${message}`),
  ].join('\n');
}

function describeResult({ low, high }: Spread, starts: number): string {
  if (low <= 1 && high >= 1) return 'no difference to be seen';
  const kind = high < 1 ? 'cheaper' : 'dearer';
  return starts >= ENOUGH_STARTS ? `B is ${kind}` : `B looks ${kind}; decide with --starts 6`;
}

function formatRatio(ratio: number): string {
  return `×${ratio.toFixed(3)}`;
}
