import type { Coverage } from './coverage.ts';
import { type Outcome, runInputs } from './judge.ts';
import { type Material, mutate, mutateBytes, Random } from './mutate.ts';
import type { Target } from './target.ts';

export type Crash = { readonly input: Buffer; readonly outcome: Outcome };

export type Run = {
  readonly executions: number;
  /** Characters of code that were run. */
  readonly covered: number;
  /** Inputs with new coverage or a new kind of rejection, including seeds. */
  readonly pool: readonly Buffer[];
  /** Number of inputs that the run found. */
  readonly found: number;
  readonly crashes: readonly Crash[];
};

export type RunOptions = {
  readonly seed: number;
  /** Stop condition. */
  readonly isOver: (executions: number) => boolean;
  readonly corpus: readonly Buffer[];
  readonly onProgress?: (run: Run) => void;
};

const BATCH = 64;
/** Maximum length of tried inputs, and of inputs that are mutated further. */
const MAX_LENGTH = 64 * 1024;
const MAX_KEPT_LENGTH = 16 * 1024;
/** Maximum number of tracked kinds of rejections, since messages may contain parts of the input. */
const MAX_KEYS = 300;
const MAX_CRASHES = 20;
const PROGRESS_MS = 5_000;

/** Changes inputs that led somewhere, until the time is over; keeps those that lead somewhere new. */
export function fuzzTarget(target: Target, coverage: Coverage, options: RunOptions): Run {
  coverage.forget();
  const search = new Search(target, coverage, options.seed);
  const seeds = [...target.seeds.map((seed) => Buffer.from(seed)), ...options.corpus];
  search.runSeeds(seeds);
  const knownCount = search.run().pool.length;
  let shownAt = performance.now();
  do {
    search.step();
    if (options.onProgress === undefined || performance.now() - shownAt < PROGRESS_MS) continue;
    shownAt = performance.now();
    options.onProgress(search.run(knownCount));
  } while (!options.isOver(search.executions) && !search.isStuck);
  return search.run(knownCount);
}

class Search {
  readonly #target: Target;
  readonly #coverage: Coverage;
  readonly #random: Random;
  readonly #material: Material;
  readonly #pool: Buffer[] = [];
  readonly #keys = new Set<string>();
  readonly #crashes = new Map<string, Crash>();
  executions = 0;
  /** An input without end costs seconds whenever it is tried. */
  isStuck = false;

  constructor(target: Target, coverage: Coverage, seed: number) {
    this.#target = target;
    this.#coverage = coverage;
    this.#random = new Random(seed);
    this.#material = {
      random: this.#random,
      dictionary: target.dictionary.map((text) => Buffer.from(text)),
      other: () => (this.#pool.length === 0 ? Buffer.alloc(1) : this.#random.pick(this.#pool)),
    };
  }

  run(knownCount = 0): Run {
    const { executions } = this;
    const { covered } = this.#coverage;
    const foundCount = this.#pool.length - knownCount;
    return { executions, covered, pool: [...this.#pool], found: foundCount, crashes: [...this.#crashes.values()] };
  }

  /** Every seed is kept. */
  runSeeds(seeds: readonly Buffer[]): void {
    const outcomes = runInputs(this.#target, seeds);
    this.executions += seeds.length;
    this.#coverage.learn(this.#coverage.takeCounts());
    this.#pool.push(...seeds);
    for (const [index, outcome] of outcomes.entries()) this.#note(seeds[index] ?? Buffer.alloc(0), outcome);
  }

  step(): void {
    const inputs = Array.from({ length: BATCH }, () => this.#make());
    const outcomes = runInputs(this.#target, inputs);
    this.executions += inputs.length;
    const counts = this.#coverage.takeCounts();
    const isNew = outcomes.map((outcome, index) => this.#note(inputs[index] ?? Buffer.alloc(0), outcome));
    if (this.#coverage.countNew(counts) > 0) this.#attribute(inputs, isNew);
    // Coverage that occurs only once because of a cache is known, too.
    this.#coverage.learn(counts);
    for (const [index, input] of inputs.entries()) if (isNew[index] === true && input.length <= MAX_KEPT_LENGTH) this.#pool.push(input);
  }

  /** Runs them once more, by halves, to see which of them it was. */
  #attribute(inputs: readonly Buffer[], isNew: boolean[], offset = 0): void {
    runInputs(this.#target, inputs);
    this.executions += inputs.length;
    const counts = this.#coverage.takeCounts();
    if (this.#coverage.countNew(counts) === 0) return;
    if (inputs.length === 1) {
      this.#coverage.learn(counts);
      isNew[offset] = true;
      return;
    }
    const middle = inputs.length >> 1;
    this.#attribute(inputs.slice(0, middle), isNew, offset);
    this.#attribute(inputs.slice(middle), isNew, offset + middle);
  }

  /** @returns whether it ended in a way that nothing has ended before. */
  #note(input: Buffer, outcome: Outcome): boolean {
    const { kind, key } = outcome;
    this.isStuck ||= kind === 'hang';
    if (kind !== 'fine') {
      if (this.#crashes.size < MAX_CRASHES && !this.#crashes.has(key)) this.#crashes.set(key, { input, outcome });
      return false;
    }
    if (this.#keys.has(key) || this.#keys.size >= MAX_KEYS) return false;
    this.#keys.add(key);
    return true;
  }

  #make(): Buffer {
    const random = this.#random;
    // The newest have been changed least.
    const recent = this.#pool.slice(-8);
    let input = random.oneIn(2) ? random.pick(this.#pool) : random.pick(recent);
    for (let remaining = 1 + random.below(4); remaining > 0; remaining--) {
      const mutated = random.oneIn(12) ? mutateBytes(input, this.#material) : mutate(input, this.#material);
      if (mutated.length <= (this.#target.maxLength ?? MAX_LENGTH)) input = mutated;
    }
    return input;
  }
}
