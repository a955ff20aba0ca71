/** Values of one copy, besides the claims of its holder, by which verifiers could link it to other copies. */
export type CopyTraits = {
  /** `iat`, `nbf`, `exp`, or the times of an mdoc, in seconds since the epoch. */
  readonly times: readonly number[];
  readonly salts: readonly string[];
};

const HOUR = 3600;

/**
 * Copies that verifiers could link by their times (ARF 3.0 ISSU_36): those that share a second with another copy. Full hours and the bounds
 * of the certificate occur in many batches and do not count.
 * @param common seconds since the epoch that also occur in credentials of other holders.
 * @returns positions of the copies.
 */
export function copiesSharingTimes(copies: readonly CopyTraits[], common: ReadonlySet<number>): readonly number[] {
  const seenTimes = new Set<number>();
  const sharing: number[] = [];
  copies.forEach(({ times }, position) => {
    // A copy may contain the same time twice.
    const distinctiveTimes = new Set(times.filter((time) => time % HOUR !== 0 && !common.has(time)));
    if ([...distinctiveTimes].some((time) => seenTimes.has(time))) sharing.push(position);
    for (const time of distinctiveTimes) seenTimes.add(time);
  });
  return sharing;
}

/** True if copies share a salt, or a copy repeats one (ARF 3.0 ISSU_35). */
export function repeatsSalt(copies: readonly CopyTraits[]): boolean {
  const salts = copies.flatMap((copy) => copy.salts);
  return new Set(salts).size !== salts.length;
}

/** Random indices of this many copies are sorted once in 360 batches or less. */
const ORDERED_COPIES = 6;
/** Two random indices lie on the same of this many pages once in 500 batches. */
const PAGES = 1000;

/**
 * The pattern by which status list indices link the copies of a batch (ARF 3.0 ISSU_35): a repetition, an order, or proximity.
 * @param indices in the order of the copies.
 * @param capacity entries of the list.
 * @returns undefined without such a pattern.
 */
export function linkingIndexPattern(
  indices: readonly number[],
  capacity: number,
): 'the same index' | 'the order of indices' | 'the page of the list' | undefined {
  if (indices.length < 2) return undefined;
  if (new Set(indices).size !== indices.length) return 'the same index';
  const steps = indices.slice(1).map((index, position) => index - (indices[position] ?? 0));
  const isOrdered = steps.every((step) => step > 0) || steps.every((step) => step < 0);
  if (isOrdered && indices.length >= ORDERED_COPIES) return 'the order of indices';
  const span = Math.max(...indices) - Math.min(...indices);
  return span < Math.floor(capacity / PAGES) ? 'the page of the list' : undefined;
}
