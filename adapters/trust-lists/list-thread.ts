import { Worker } from 'node:worker_threads';
import type { OpenedList, ReadingOptions } from '../../application/ports/trust-list-reader.ts';
import type { TrustedEntity } from '../../domain/trust-lists/lote.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { joinPart, type OpenedHead, SharedTexts, type ThreadRequest, type ThreadResponse } from './thread-protocol.ts';

export type ThreadOptions = {
  readonly program: URL;
  /** Maximum time for one list. */
  readonly milliseconds: number;
  readonly megabytes: number;
  /** Idle time after which the thread ends. */
  readonly idleMs: number;
};

/** Heap for short-lived objects; a thread reads texts in small pieces. */
const YOUNG_MEGABYTES = 4;

export type ThreadResult = {
  readonly outcome: { readonly opened: OpenedList } | { readonly refusal: TrustListRefusal };
  readonly cpuMs: number;
};

export type Job = Omit<ReadingOptions, 'tenantId'> & { readonly bytes: Uint8Array };

/**
 * Thread that opens lists sequentially. It starts with the first list, and ends when it was idle for a while, or when a list takes more
 * time or memory than it may.
 */
export class ListThread {
  readonly #options: ThreadOptions;
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** Shared texts of the lists that the thread has opened since it started. */
  #texts = new SharedTexts();

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /** Supports one call at a time. It never rejects because of the content of a list. */
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
        worker.off('message', receive).off('error', onError).off('exit', exited);
      };
      const finish = (outcome: ThreadResult['outcome']) => {
        settle();
        this.#idle = setTimeout(() => this.end(), this.#options.idleMs);
        this.#idle.unref();
        resolve({ outcome, cpuMs });
      };
      /** Ends the thread, or handles its end. */
      const fail = (why: string) => {
        settle();
        this.end();
        const refusal = new TrustListRefusal('malformed', why);
        resolve({ outcome: { refusal }, cpuMs: performance.now() - begun });
      };
      const timer = setTimeout(() => fail(`it takes longer than ${milliseconds / 1000} seconds to parse`), milliseconds);
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
        const request: ThreadRequest = 'next';
        worker.postMessage(request);
      };
      const onError = (error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') {
          fail('it takes too much memory to parse');
          return;
        }
        settle();
        this.end();
        reject(error);
      };
      const exited = () => fail('its parser ended without a result');
      worker.on('message', receive).on('error', onError).on('exit', exited);
      // A copy, which is transferred to the thread: the caller keeps its own bytes.
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
      // Arguments of the process may be meant for its main program alone.
      execArgv: [],
    });
    // A running list does not keep the process alive.
    worker.unref();
    // Between lists the thread has no other listener, and an error without a listener ends the process.
    worker.on('error', () => {});
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    this.#worker = worker;
    return worker;
  }
}
