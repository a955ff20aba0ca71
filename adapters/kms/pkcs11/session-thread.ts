import { Worker } from 'node:worker_threads';
import { type FaultKind, TokenFault } from './fault.ts';
import type { TokenSession } from './token-session.ts';

export type ThreadData = { readonly library: string };

type Operations = { [Name in keyof TokenSession]: TokenSession[Name] };

export type Call = { readonly operation: keyof TokenSession; readonly parameters: unknown[] };

export type Answer =
  | { readonly result: unknown }
  | { readonly fault: { readonly kind: FaultKind; readonly message: string; readonly code: number | undefined } };

type PendingCall = { readonly resolve: (result: unknown) => void; readonly reject: (error: Error) => void };

/** Worker program, beside this file in the sources and in the build. */
const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './session-worker.ts' : './session-worker.js', import.meta.url);

/** Heap of the thread, which holds one session and some handles. */
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };

/**
 * Session of a token in a thread of its own. A device that does not respond blocks this thread only: neither the main thread, nor the
 * threads in which Node reads files and resolves names. A call cannot be interrupted, so the thread is busy until the library returns.
 */
export class SessionThread {
  readonly #worker: Worker;
  readonly #waiting: PendingCall[] = [];
  /** Resolves when the thread has ended, with everything that ran in it. */
  readonly ended: Promise<void>;
  #isEnded = false;

  constructor(library: string) {
    const workerData: ThreadData = { library };
    // Arguments of the process may be meant for its main program alone.
    const options = { workerData, name: 'pkcs11', resourceLimits: LIMITS, execArgv: [] };
    this.#worker = new Worker(PROGRAM, options);
    // An idle thread does not keep the process alive.
    this.#worker.unref();
    this.#worker.on('message', (answer: Answer) => this.#settle(answer));
    this.#worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
    this.ended = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#fail(new Error('its thread ended'));
        resolve();
      });
    });
  }

  /** True while an operation runs. */
  get isBusy(): boolean {
    return this.#waiting.length > 0;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /**
   * Operations of one thread run in the order of the calls. A parameter that is a byte array is transferred to the thread, so that no copy
   * stays here.
   * @throws TokenFault of the operation; Error if the thread ended.
   */
  call<Name extends keyof Operations>(operation: Name, ...parameters: Parameters<Operations[Name]>): Promise<ReturnType<Operations[Name]>> {
    if (this.#isEnded) return Promise.reject(new Error('its thread ended'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve: resolve as PendingCall['resolve'], reject });
      this.#worker.ref();
      const call: Call = { operation, parameters };
      const bytes = parameters.filter((parameter) => parameter instanceof Uint8Array);
      this.#worker.postMessage(
        call,
        bytes.map(({ buffer }) => buffer as ArrayBuffer),
      );
    });
  }

  /** Waits for the running operation. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#worker.terminate();
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.shift();
    if (!this.isBusy) this.#worker.unref();
    if ('result' in answer) waiting?.resolve(answer.result);
    else waiting?.reject(new TokenFault(answer.fault.kind, answer.fault.message, answer.fault.code));
  }

  #fail(error: Error): void {
    this.#isEnded = true;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
