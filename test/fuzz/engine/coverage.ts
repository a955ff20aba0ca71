import { type Profiler, Session } from 'node:inspector';

/** Files whose coverage counts: the service, and the planted decoders of engine tests. */
const COUNTED = /\/(?:domain|adapters|application|config|test\/fuzz\/planted)\/.*\.ts$/;

type Result = readonly Profiler.ScriptCoverage[];

/** Coverage counts of V8 since the last call. */
export type Counts = { readonly result: Result };

/**
 * Block coverage of V8. It must start before the measured code is loaded, since already compiled functions have only
 * function coverage.
 */
export class Coverage {
  readonly #session = new Session();
  /** Executed character ranges by function. */
  #seen = new Map<string, Uint8Array>();
  /** Which shapes of counts say nothing new. */
  #shapes = new Set<string>();
  /** Functions that were run, as `<address of the file>#<name>`. */
  readonly functions = new Set<string>();
  /** Characters of code that were run. */
  covered = 0;

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Returns the coverage since the last call. */
  takeCounts(): Counts {
    let result: Result = [];
    // Within one thread the answer is there when the call returns.
    this.#session.post('Profiler.takePreciseCoverage', (_error, answer) => {
      result = answer.result.filter(({ url }) => COUNTED.test(url));
    });
    return { result };
  }

  /** @returns how many characters of code nothing has run before; they stay as new as they are. */
  countNew(counts: Counts): number {
    return this.#go(counts, false);
  }

  /** @returns the same; from now on they are known. */
  learn(counts: Counts): number {
    return this.#go(counts, true);
  }

  /** Starts over, as if nothing had been run. */
  forget(): void {
    this.#seen = new Map();
    this.#shapes = new Set();
    this.covered = 0;
    this.takeCounts();
  }

  stop(): void {
    this.#session.disconnect();
  }

  #go({ result }: Counts, learns: boolean): number {
    let newCount = 0;
    for (const { url, functions } of result) {
      for (const { functionName, ranges } of functions) {
        if ((ranges[0]?.count ?? 0) === 0) continue;
        if (learns) this.functions.add(`${url}#${functionName}`);
        newCount += this.#look(url, ranges, learns);
      }
    }
    if (learns) this.covered += newCount;
    return newCount;
  }

  #look(url: string, ranges: readonly Profiler.CoverageRange[], learns: boolean): number {
    const [{ startOffset: start, endOffset: end } = { startOffset: 0, endOffset: 0 }] = ranges;
    const name = `${url}:${start}:${end}`;
    const blocks = ranges.map((range) => `${range.startOffset}-${range.endOffset}${range.count > 0 ? '+' : '-'}`);
    const shape = `${name} ${blocks.join()}`;
    if (this.#shapes.has(shape)) return 0;
    const run = new Uint8Array(end - start);
    // Inner ranges follow outer ones.
    for (const { startOffset, endOffset, count } of ranges) {
      run.fill(count > 0 ? 1 : 0, startOffset - start, endOffset - start);
    }
    const seenFunction = this.#seen.get(name) ?? new Uint8Array(end - start);
    let newCount = 0;
    for (const [index, isRun] of run.entries()) {
      if (isRun === 0 || seenFunction[index] === 1) continue;
      newCount++;
      if (learns) seenFunction[index] = 1;
    }
    if (learns) this.#seen.set(name, seenFunction);
    if (learns || newCount === 0) this.#shapes.add(shape);
    return newCount;
  }
}
