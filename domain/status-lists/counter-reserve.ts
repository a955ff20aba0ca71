type CounterRange = { start: number; end: number };

/** Counters of one list that a process has leased and not assigned: disjoint ranges in ascending order. */
export class CounterReserve {
  readonly #limit: number;
  #ranges: CounterRange[] = [];

  /** @param limit of ranges; above it the shortest range is dropped, which wastes its counters. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns the first of `count` consecutive counters, which are assigned to the caller; undefined without a range of this length. */
  take(count: number): number | undefined {
    const index = this.#ranges.findIndex(({ start, end }) => end - start >= count);
    const range = this.#ranges[index];
    if (range === undefined) return undefined;
    const { start: firstCounter } = range;
    range.start += count;
    if (range.start === range.end) this.#ranges.splice(index, 1);
    return firstCounter;
  }

  countBelow(end: number): number {
    return this.#ranges.reduce((count, range) => count + Math.max(0, Math.min(range.end, end) - range.start), 0);
  }

  /** Adds the counters from `firstCounter` to `end` (exclusive); adjacent ranges are merged. */
  add(firstCounter: number, end: number): void {
    if (firstCounter >= end) return;
    const merged: CounterRange[] = [];
    for (const range of [...this.#ranges, { start: firstCounter, end }].sort((a, b) => a.start - b.start)) {
      const lastRange = merged.at(-1);
      // Otherwise two credentials would share an entry.
      if (lastRange !== undefined && lastRange.end > range.start) throw new Error('counters are already stored');
      if (lastRange !== undefined && lastRange.end === range.start) lastRange.end = range.end;
      else merged.push(range);
    }
    if (merged.length > this.#limit) {
      const lengths = merged.map((range) => range.end - range.start);
      merged.splice(lengths.indexOf(Math.min(...lengths)), 1);
    }
    this.#ranges = merged;
  }
}
