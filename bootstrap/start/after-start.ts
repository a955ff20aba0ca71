import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/** A check of the readiness has its answer by then. */
const DELAY_MS = 300;

/** V8 compiles a function with each tier after so many calls; its defaults are 400 and 3,000. */
const COMPILE_AFTER_CALLS = { maglev: 50, turbofan: 200 } as const;

/**
 * The growth of the old objects since their last collection, in percent, after which V8 collects them again. By default V8 chooses it so
 * that the main thread does not wait for long (about 30 here), and ignores the work of its other threads.
 */
const GROWTH_PERCENT = 60;

/** Applies settings that would slow down the start. */
export function settleAfterStart(): void {
  setTimeout(() => {
    releaseMemory();
    compileSooner();
    collectLater();
  }, DELAY_MS).unref();
}

/** Loading the modules leaves 30 MB that an idle process would keep; only this kind of collection returns them. */
function releaseMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/**
 * With two issuances per second it would take half an hour until their code is fully compiled. The setting is not applied before the
 * start is over, because the functions that the start calls often are not called again.
 */
function compileSooner(): void {
  for (const [tier, calls] of Object.entries(COMPILE_AFTER_CALLS)) setFlagsFromString(`--invocation-count-for-${tier}=${calls}`);
}

/**
 * Nearly all live memory is the program, so a collection costs the same however little it frees. The setting is not applied before the
 * start is over: little memory is alive until then, and V8 lets it grow without a collection.
 */
function collectLater(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
