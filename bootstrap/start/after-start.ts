import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/** What asked whether the service is ready has its answer by then. */
const REST_MS = 300;

/** Calls after which V8 makes a function quick, and quicker still; of itself it waits for 400 and 3,000. */
const QUICK_AFTER = { maglev: 50, turbofan: 200 } as const;

/**
 * How far old objects may grow over what was alive at the last collection of them, in percent. V8 chooses so that its main
 * thread does not wait for long, some 30 here, and counts nothing of what its other threads do for it.
 */
const GROWTH_PERCENT = 60;

/** What a start need not wait for. */
export function settleAfterStart(): void {
  setTimeout(() => {
    releaseMemory();
    compileSooner();
    collectLater();
  }, REST_MS).unref();
}

/** Loading the modules leaves 30 MB behind that an idle process would keep; only this kind of collection returns them. */
function releaseMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/**
 * At two issuances a second it would take half an hour until what each of them runs is as quick as it gets. Not before the
 * start is over: what it calls often is never called again.
 */
function compileSooner(): void {
  for (const [tier, calls] of Object.entries(QUICK_AFTER)) setFlagsFromString(`--invocation-count-for-${tier}=${calls}`);
}

/**
 * What is alive is nearly all program, so looking through it costs the same however little it finds. Not before the start is
 * over: little is alive until then, and V8 lets it grow without looking.
 */
function collectLater(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
