type Rest = { first: number; end: number };

/** Counters of one list that a process has taken and not given to anybody: disjoint rests, in order. */
export class CounterReserve {
  readonly #limit: number;
  #rests: Rest[] = [];

  /** @param limit rests that are kept; beyond that the shortest is forgotten, which wastes its counters. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns the first of `count` counters in a row, which are nobody else's from then on; undefined without so many. */
  take(count: number): number | undefined {
    const index = this.#rests.findIndex(({ first, end }) => end - first >= count);
    const rest = this.#rests[index];
    if (rest === undefined) return undefined;
    const { first } = rest;
    rest.first += count;
    if (rest.first === rest.end) this.#rests.splice(index, 1);
    return first;
  }

  /** How many of the counters below `end` are kept. */
  countBelow(end: number): number {
    return this.#rests.reduce((count, rest) => count + Math.max(0, Math.min(rest.end, end) - rest.first), 0);
  }

  /** Keeps the counters from `first` up to and without `end`; neighbours become one. */
  add(first: number, end: number): void {
    if (first >= end) return;
    const merged: Rest[] = [];
    for (const rest of [...this.#rests, { first, end }].sort((a, b) => a.first - b.first)) {
      const last = merged.at(-1);
      // Two credentials would share an entry.
      if (last !== undefined && last.end > rest.first) throw new Error('counters are kept already');
      if (last !== undefined && last.end === rest.first) last.end = rest.end;
      else merged.push(rest);
    }
    if (merged.length > this.#limit) {
      const lengths = merged.map((rest) => rest.end - rest.first);
      merged.splice(lengths.indexOf(Math.min(...lengths)), 1);
    }
    this.#rests = merged;
  }
}
