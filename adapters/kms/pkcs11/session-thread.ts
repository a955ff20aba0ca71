import { Worker } from 'node:worker_threads';
import { type FaultKind, TokenFault } from './fault.ts';
import type { TokenSession } from './token-session.ts';

export type ThreadData = { readonly library: string };

type Operations = { [Name in keyof TokenSession]: TokenSession[Name] };

/** What goes to the thread. */
export type Call = { readonly operation: keyof TokenSession; readonly parameters: unknown[] };

/** What comes back. */
export type Answer =
  | { readonly result: unknown }
  | {
      readonly fault: { readonly kind: FaultKind; readonly message: string; readonly code: number | undefined };
    };

type Waiting = { readonly resolve: (result: unknown) => void; readonly reject: (error: Error) => void };

/** Beside the sources and in what is built from them. */
const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './session-worker.ts' : './session-worker.js', import.meta.url);

/** A thread holds one session and some handles. */
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };

/**
 * A session of a token in a thread of its own. A device that does not answer holds up this thread alone: neither the one
 * that serves requests, nor those in which Node reads files and looks up addresses. It cannot be interrupted, so that
 * it is busy until the library comes back.
 */
export class SessionThread {
  readonly #worker: Worker;
  readonly #waiting: Waiting[] = [];
  /** Resolves when the thread is gone, and with it whatever it had under way. */
  readonly ended: Promise<void>;
  #isEnded = false;

  constructor(library: string) {
    const workerData: ThreadData = { library };
    // What the process was started with may be meant for its main program alone.
    const options = { workerData, name: 'pkcs11', resourceLimits: LIMITS, execArgv: [] };
    this.#worker = new Worker(PROGRAM, options);
    // An idle thread does not keep the process.
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

  /** An operation is under way. */
  get isBusy(): boolean {
    return this.#waiting.length > 0;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /**
   * Operations of one thread run in the order in which they are called. Bytes that are a parameter of their own go over
   * to the thread, so that no copy of them stays here.
   * @throws TokenFault of the operation; Error when the thread ended.
   */
  call<Name extends keyof Operations>(operation: Name, ...parameters: Parameters<Operations[Name]>): Promise<ReturnType<Operations[Name]>> {
    if (this.#isEnded) return Promise.reject(new Error('its thread ended'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve: resolve as Waiting['resolve'], reject });
      this.#worker.ref();
      const call: Call = { operation, parameters };
      const bytes = parameters.filter((parameter) => parameter instanceof Uint8Array);
      this.#worker.postMessage(
        call,
        bytes.map(({ buffer }) => buffer as ArrayBuffer),
      );
    });
  }

  /** Takes as long as the operation that is under way. */
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
