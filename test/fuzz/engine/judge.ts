import { getHeapStatistics } from 'node:v8';
import { Script } from 'node:vm';
import { type Target, Violation } from './target.ts';

/** The outcome of one input. `key` identifies equal faults or rejections. */
export type Outcome = { readonly kind: 'fine' | 'error' | 'hang' | 'memory'; readonly key: string; readonly error?: unknown };

/** A decoder that takes longer holds the thread that serves everybody. */
const MAX_MS = 50;
/** Watchdog of a run that may hang, and its current input. */
const MAX_BATCH_MS = 800;
const MAX_ALONE_MS = 600;
const REPETITIONS = 5;
/** A status list alone may have sixteen MiB. */
const MAX_BYTES = 96 * 1024 * 1024;

type Work = { readonly run: () => void };
const globalScope: { fuzzed?: Work } = globalThis as never;
/** The limit of time holds for scripts; what it ends cannot catch that. */
const SCRIPT = new Script('fuzzed.run()');

/** @returns whether it came to its end. */
function withinTime(run: () => void, timeout: number): boolean {
  globalScope.fuzzed = { run };
  try {
    SCRIPT.runInThisContext({ timeout });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return false;
    throw error;
  } finally {
    delete globalScope.fuzzed;
  }
}

/** Runs inputs sequentially. @returns an outcome for each. */
export function runInputs(target: Target, inputs: readonly Buffer[]): readonly Outcome[] {
  const outcomes: Outcome[] = [];
  const run = () => {
    while (outcomes.length < inputs.length) {
      outcomes.push(judgeOne(target, inputs[outcomes.length] ?? Buffer.alloc(0)));
    }
  };
  // Several that take their time may be over it together, and a machine may be busy once.
  while (!withinTime(run, MAX_BATCH_MS)) {
    outcomes.push(judgeAlone(target, inputs[outcomes.length] ?? Buffer.alloc(0)));
  }
  return outcomes;
}

function judgeAlone(target: Target, input: Buffer): Outcome {
  let outcome: Outcome = { kind: 'hang', key: 'does not end' };
  withinTime(() => {
    outcome = judgeOne(target, input);
  }, MAX_ALONE_MS);
  return outcome;
}

function judgeOne(target: Target, input: Buffer): Outcome {
  const heldBytes = measureHeldBytes();
  const start = performance.now();
  const outcome = decodeOnce(target, input);
  if (performance.now() - start > MAX_MS && isSlow(target, input)) return { kind: 'hang', key: 'takes too long' };
  if (measureHeldBytes() - heldBytes > MAX_BYTES) return { kind: 'memory', key: 'takes too much memory' };
  return outcome;
}

function measureHeldBytes(): number {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return used_heap_size + external_memory;
}

/** An input is slow only when each repetition is slow, so that other load does not matter. */
function isSlow(target: Target, input: Buffer): boolean {
  for (let repetition = 0; repetition < REPETITIONS; repetition++) {
    const cpuBefore = process.threadCpuUsage();
    decodeOnce(target, input);
    const { user, system } = process.threadCpuUsage(cpuBefore);
    if (user + system <= MAX_MS * 1_000) return false;
  }
  return true;
}

function decodeOnce({ decode, expected }: Target, input: Buffer): Outcome {
  try {
    // A decoder that wrote into its input would change that of the next one.
    decode(Buffer.from(input));
    return { kind: 'fine', key: 'fine' };
  } catch (error) {
    const isPromised = !(error instanceof Violation) && expected(error);
    return isPromised ? { kind: 'fine', key: errorKey(error) } : { kind: 'error', key: faultKey(error), error };
  }
}

function errorKey(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return `${error.name}: ${error.message.slice(0, 100).replaceAll(/\d+/g, '0')}`;
}

/** The key includes the code location, since many faults have the same message. */
function faultKey(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const [codeLocation = ''] = /\/(?:domain|adapters|application|config)\/[\w./-]+:\d+/.exec(stack) ?? [];
  const kind = error instanceof Error ? error.constructor.name : typeof error;
  return `${kind} ${errorKey(error)} ${codeLocation}`;
}
