import { AsyncLocalStorage } from 'node:async_hooks';
import crypto from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { syncBuiltinESMExports } from 'node:module';

/**
 * Milliseconds of processor time that this thread spends on synchronous work.
 * Unlike the time on a clock it hardly depends on what else the machine does.
 */
export function processorTime(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  return millisecondsOf(process.threadCpuUsage(before));
}

/** Milliseconds of processor time of this process, all threads, until the work is done. */
export async function processorTimeUntil(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  return millisecondsOf(process.cpuUsage(before));
}

function millisecondsOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}

/** Counts of the work of a service in this process, except for its database. */
export type WorkCounts = {
  readonly signed: number;
  readonly verified: number;
  /** Keys and certificates that were read. */
  readonly imported: number;
  /** HTTP requests that it sent. */
  readonly called: number;
};

export type WorkCounter = {
  /** The counts since its last call. */
  takeCounts(): WorkCounts;
  /** Runs work that is not counted, such as the signatures of a wallet in this process. */
  uncounted<T>(work: () => Promise<T>): Promise<T>;
  end(): void;
};

const FUNCTIONS = {
  sign: 'signed',
  verify: 'verified',
  createPublicKey: 'imported',
  createPrivateKey: 'imported',
} as const satisfies Partial<Record<keyof typeof crypto, keyof WorkCounts>>;

const NO_WORK: WorkCounts = { signed: 0, verified: 0, imported: 0, called: 0 };
const SENDING = 'undici:request:create';

/** Counts the calls of Node's cryptography and the requests that are sent, everywhere in this process, until its end. */
export function countWork(): WorkCounter {
  const isUncounted = new AsyncLocalStorage<true>();
  const originals = new Map<string, unknown>();
  const functions = crypto as unknown as Record<string, (...values: unknown[]) => unknown>;
  let counts = NO_WORK;
  const count = (kind: keyof WorkCounts) => {
    if (isUncounted.getStore() === undefined) counts = { ...counts, [kind]: counts[kind] + 1 };
  };
  for (const [name, kind] of Object.entries(FUNCTIONS)) {
    const original = functions[name];
    if (original === undefined) throw new Error(`there is no ${name}`);
    originals.set(name, original);
    functions[name] = (...values) => {
      count(kind);
      return original(...values);
    };
  }
  // Modules that imported a function by its name call the counting one from here on.
  syncBuiltinESMExports();
  const sending = () => count('called');
  subscribe(SENDING, sending);
  return {
    takeCounts() {
      const result = counts;
      counts = NO_WORK;
      return result;
    },
    uncounted: (inside) => isUncounted.run(true, inside),
    end() {
      for (const [name, original] of originals) functions[name] = original as never;
      syncBuiltinESMExports();
      unsubscribe(SENDING, sending);
    },
  };
}
