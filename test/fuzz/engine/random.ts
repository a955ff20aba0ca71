import { seeded } from '../../support/mutations.ts';

/** Choices that are the same for the same seed. */
export class Random {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seeded(seed);
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  /** @param list not empty. */
  pick<T>(list: readonly T[]): T {
    const chosen = list[this.below(list.length)];
    if (chosen === undefined) throw new Error('nothing to choose from');
    return chosen;
  }

  /** A place in `length` and how much follows it, mostly little. */
  span(length: number): { readonly from: number; readonly until: number } {
    const from = this.below(length + 1);
    const size = this.once(8) ? this.below(length + 1) : this.below(9);
    return { from, until: Math.min(length, from + size) };
  }
}
