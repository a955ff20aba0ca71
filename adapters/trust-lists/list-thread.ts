import { Worker } from 'node:worker_threads';
import type { OpenedList, ReadingOptions } from '../../application/ports/trust-list-reader.ts';
import type { TrustedEntity } from '../../domain/trust-lists/lote.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { joinPart, type OpenedHead, SharedTexts, type ThreadRequest, type ThreadResponse } from './thread-protocol.ts';

export type ThreadOptions = {
  /** The program of the thread. */
  readonly program: URL;
  /** Longest time for one list. */
  readonly milliseconds: number;
  /** Heap of the thread. */
  readonly megabytes: number;
  /** The thread ends when it had nothing to do for this time. */
  readonly idleMs: number;
};

/** Heap for objects that live shortly; a thread reads texts in small pieces. */
const YOUNG_MEGABYTES = 4;

/** Result of one list, and the processor time that it took. */
export type ThreadResult = {
  readonly outcome: { readonly opened: OpenedList } | { readonly refusal: TrustListRefusal };
  readonly cpuMs: number;
};

export type Job = Omit<ReadingOptions, 'tenantId'> & { readonly bytes: Uint8Array };

/**
 * One thread that opens lists, one after the other. It starts with the first list, and ends when there was none for a while, or
 * when a list takes more time or memory than it may.
 */
export class ListThread {
  readonly #options: ThreadOptions;
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** Of the lists that the thread opened since it started. */
  #texts = new SharedTexts();

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /** Only one call at a time. It never rejects for what a list contains. */
  open({ bytes, signers, now }: Job): Promise<ThreadResult> {
    clearTimeout(this.#idle);
    const { milliseconds } = this.#options;
    const worker = this.#worker ?? this.#start();
    const begun = performance.now();
    return new Promise((resolve, reject) => {
      let head: OpenedHead | undefined;
      let cpuMs = 0;
      const entities: TrustedEntity[] = [];
      const settle = () => {
        clearTimeout(timer);
        worker.off('message', receive).off('error', failed).off('exit', exited);
      };
      const finish = (outcome: ThreadResult['outcome']) => {
        settle();
        this.#idle = setTimeout(() => this.end(), this.#options.idleMs);
        this.#idle.unref();
        resolve({ outcome, cpuMs });
      };
      /** The thread is gone, or is let go. */
      const fail = (why: string) => {
        settle();
        this.end();
        const refusal = new TrustListRefusal('malformed', why);
        resolve({ outcome: { refusal }, cpuMs: performance.now() - begun });
      };
      const timer = setTimeout(() => fail(`it takes longer than ${milliseconds / 1000} seconds to read`), milliseconds);
      timer.unref();
      const receive = (response: ThreadResponse) => {
        if ('fault' in response) {
          cpuMs = response.cpuMs;
          finish({ refusal: new TrustListRefusal(response.fault, response.detail) });
          return;
        }
        if ('opened' in response) {
          head = response.opened;
          cpuMs = response.cpuMs;
        } else if ('part' in response) joinPart(entities, response.part, this.#texts);
        else if (head !== undefined) {
          finish({ opened: { ...head, list: { ...head.list, entities } } });
          return;
        }
        const next: ThreadRequest = 'next';
        worker.postMessage(next);
      };
      const failed = (error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') {
          fail('it takes too much memory to read');
          return;
        }
        settle();
        this.end();
        reject(error);
      };
      const exited = () => fail('its reader ended without an answer');
      worker.on('message', receive).on('error', failed).on('exit', exited);
      // A copy, which goes over to the thread: the caller keeps its own.
      const copy = new Uint8Array(bytes);
      const request: ThreadRequest = {
        bytes: copy,
        signers: signers === 'shown' ? signers : signers.map(({ certificate }) => certificate),
        now,
      };
      worker.postMessage(request, [copy.buffer]);
    });
  }

  end(): void {
    clearTimeout(this.#idle);
    void this.#worker?.terminate();
    this.#worker = undefined;
    this.#texts = new SharedTexts();
  }

  #start(): Worker {
    const { program, megabytes } = this.#options;
    const worker = new Worker(program, {
      name: 'trust-lists',
      resourceLimits: { maxOldGenerationSizeMb: megabytes, maxYoungGenerationSizeMb: YOUNG_MEGABYTES },
      // What the process was started with may be meant for its main program alone.
      execArgv: [],
    });
    // A list that is read does not keep the process.
    worker.unref();
    // Between lists the thread has no other listener, and an error without one ends the process.
    worker.on('error', () => {});
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    this.#worker = worker;
    return worker;
  }
}
