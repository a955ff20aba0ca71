/** What repeated measurements of one value say. */
export type Spread = {
  readonly median: number;
  /** Between them lies the true median in 95 of 100 cases, or as often as so few measurements can tell. */
  readonly low: number;
  readonly high: number;
};

/** How often the true median may lie outside. */
const MISSED = 0.05;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  const [below = Number.NaN, above = below] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (below + above) / 2;
}

/**
 * The median, and the ranks around it that hold whatever the values are distributed like: each value is above or below the
 * true median as a coin falls. One that a stranger disturbed moves neither.
 */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other);
  let outside = 0;
  while (outside < (sorted.length - 1) / 2 && 2 * tail(sorted.length, outside + 1) <= MISSED) outside++;
  const [low = Number.NaN, high = Number.NaN] = [sorted[outside], sorted[sorted.length - 1 - outside]];
  return { median: median(sorted), low, high };
}

/** How probable it is that at most so many of the coins show heads. */
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
