/** What whoever gets one copy of a credential sees of it, besides what all copies say of their holder. */
export type CopyTraits = {
  /** `iat`, `nbf`, `exp`, or the times of an mdoc, in seconds since the epoch. */
  readonly times: readonly number[];
  readonly salts: readonly string[];
};

const HOUR = 3600;

/**
 * The copies of a batch by whose times verifiers could tell that they belong together (ARF 3.0 ISSU_36): those that have a
 * second of another copy. Full hours are shared by many batches, and so are the bounds of the certificate.
 * @param common seconds since the epoch that stand in credentials of others, too.
 * @returns their positions.
 */
export function sharingTimes(copies: readonly CopyTraits[], common: ReadonlySet<number>): readonly number[] {
  const seen = new Set<number>();
  const sharing: number[] = [];
  copies.forEach(({ times }, position) => {
    // A copy may say one time twice.
    const telling = new Set(times.filter((time) => time % HOUR !== 0 && !common.has(time)));
    if ([...telling].some((time) => seen.has(time))) sharing.push(position);
    for (const time of telling) seen.add(time);
  });
  return sharing;
}

/** Whether a salt of one copy stands in another one, or twice in the same (ARF 3.0 ISSU_35). */
export function repeatsSalt(copies: readonly CopyTraits[]): boolean {
  const salts = copies.flatMap((copy) => copy.salts);
  return new Set(salts).size !== salts.length;
}

/** From so many on, chance alone puts indices in order once in 360 batches or less. */
const ORDERED_COPIES = 6;
/** Chance alone puts two indices of a list on one of so many pages once in 500 batches. */
const PAGES = 1000;

/**
 * How the places of a batch in a status list could tell that its copies belong together (ARF 3.0 ISSU_35): by an order, or by
 * lying together.
 * @param indices in the order of the copies.
 * @param capacity entries of the list.
 * @returns undefined where they tell nothing.
 */
export function tellingPlaces(
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
