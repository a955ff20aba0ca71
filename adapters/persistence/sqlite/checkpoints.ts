import { AsyncLocalStorage } from 'node:async_hooks';
import { realpathSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { SqliteDatabase } from '../drivers.ts';
import { type CheckpointRequest, type CheckpointThreadData, type DatabaseFiles, filesOf } from './checkpoint-protocol.ts';

/** Worker program, beside this file in the sources and in the build. */
const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './checkpoint-worker.ts' : './checkpoint-worker.js', import.meta.url);

/** Heap of the thread, which runs one statement. SQLite allocates its memory beside it. */
const HEAP_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 };

/**
 * Sizes of the log, in pages of 4 KiB.
 * - From `start` pages that are not in the database file on, the thread runs a checkpoint beside the service.
 * - The log restarts only if a checkpoint ends while nothing is written. Once it has `pause` pages and a checkpoint has just ended,
 *   writers wait for another one, which has little to write. From `wait` pages on they wait in any case.
 * - From `last` pages on, the committing connection runs checkpoints, too, in case the thread does not.
 */
export const LOG_PAGES = { start: 1_000, pause: 4_000, wait: 8_000, last: 16_000 } as const;
/** SQLite's own bound, which applies while there is no thread. */
const DEFAULT_PAGES = 1_000;

/** The size of the log is read no more often than this. A batch of a job takes about as long. */
const READ_INTERVAL_MS = 5;
/** The thread ends after it was idle for this long. */
const IDLE_MS = 60_000;
/** Writers wait for the thread no longer than this. */
const MAX_PAUSE_MS = 1_000;
/** A thread that does not answer for this long is abandoned, because its disk may hang. */
const MAX_REPLY_MS = 60_000;
/** The shutdown waits for the thread no longer than this. */
const MAX_CLOSING_MS = 5_000;
/** After a fault, the committing connection runs the checkpoints for this long. */
const FAULT_PAUSE_MS = 60_000;

type LogSize = {
  readonly pages: number;
  /** Pages that are not in the database file yet. */
  readonly pending: number;
};

/** Runs work while no statement runs on the committing connection. */
type Exclusively = (work: () => Promise<void>) => Promise<void>;

export type CheckpointOptions = {
  readonly report: (error: Error) => void;
  readonly program?: URL;
  readonly idleMs?: number;
  readonly faultPauseMs?: number;
  readonly maxPauseMs?: number;
  readonly maxReplyMs?: number;
  readonly maxClosingMs?: number;
};

/**
 * Writes the write-ahead log back to the database file in a thread with a connection of its own. SQLite would do so inside the commit that
 * makes the log long enough, so the main thread would wait for many writes and a sync of the database file.
 *
 * The thread starts when the log is long for the first time: a small service, and most tests, have none. Without the thread, SQLite's own
 * checkpoints take its place.
 */
export class Checkpoints {
  readonly #database: SqliteDatabase;
  readonly #file: string;
  /** Read once the log exists, which is with the first statement of a new database. */
  #files: DatabaseFiles | undefined;
  readonly #options: CheckpointOptions;
  readonly #sizeStatement: { all(): Record<string, unknown>[] };
  #thread: { readonly worker: Worker; readonly ended: Promise<void> } | undefined;
  #running: Promise<void> | undefined;
  #finish: (() => void) | undefined;
  #isPausing = false;
  /** The log length at which writers wait next. */
  #pauseFrom: number = LOG_PAGES.pause;
  #idle: NodeJS.Timeout | undefined;
  #nextReadAt = 0;
  #lateRead: NodeJS.Timeout | undefined;
  /** Set while the committing connection runs the checkpoints after a fault. */
  #retryAt: number | undefined;
  #isClosed = false;
  /** Admits work that waits for the connection. */
  #exclusively: Exclusively | undefined;
  /** The thread outlives the request whose commit starts it, so that its faults are not logged as those of that request. */
  readonly #outsideRequests = AsyncLocalStorage.snapshot();

  /** @param database the committing connection. */
  constructor(file: string, database: SqliteDatabase, options: CheckpointOptions) {
    this.#database = database;
    this.#options = options;
    // SQLite names the log after the file itself, not after a link to it.
    this.#file = realpathSync(file);
    this.#files = this.#identify();
    this.#sizeStatement = database.prepare('pragma wal_checkpoint(noop)');
    this.#setLastBound(LOG_PAGES.last);
  }

  /** Called after each transaction. It does not throw, because the transaction is committed. */
  afterWrite(exclusively: Exclusively): void {
    if (this.#isClosed) return;
    this.#files ??= this.#identify();
    this.#exclusively = exclusively;
    const now = performance.now();
    if (now < this.#nextReadAt) {
      // This transaction may be the last one for a long time.
      this.#lateRead ??= setTimeout(() => this.#readLate(exclusively), READ_INTERVAL_MS).unref();
      return;
    }
    if (this.#database.inTransaction) return;
    this.#nextReadAt = now + READ_INTERVAL_MS;
    if (this.#retryAt !== undefined) {
      if (now < this.#retryAt) return;
      this.#retryAt = undefined;
      this.#setLastBound(LOG_PAGES.last);
    }
    const size = this.#readSize();
    if (size === undefined) return;
    const { pages, pending } = size;
    if (pages >= LOG_PAGES.wait && pages >= this.#pauseFrom && pending > 0) this.#pauseWriters(exclusively);
    else if (this.#running === undefined && pending >= LOG_PAGES.start)
      void this.#checkpoint().then(() => this.#afterCheckpoint(exclusively));
  }

  /**
   * Ends the thread, and admits the work that waited for a checkpoint. The committing connection has to be closed after it, so that it is
   * the last one and removes the log.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#lateRead);
    await this.#endThread();
    this.#finish?.();
    await this.#exclusively?.(async () => {}).catch(() => {});
  }

  #readLate(exclusively: Exclusively): void {
    this.#lateRead = undefined;
    this.afterWrite(exclusively);
  }

  #afterCheckpoint(exclusively: Exclusively): void {
    if (this.#isClosed || this.#retryAt !== undefined || this.#database.inTransaction) return;
    const size = this.#readSize();
    if (size === undefined) return;
    const { pages, pending } = size;
    // Little was written meanwhile, so writers wait for a short time only.
    if (pages >= this.#pauseFrom && pending > 0) this.#pauseWriters(exclusively);
    if (pages < LOG_PAGES.pause) this.#pauseFrom = LOG_PAGES.pause;
  }

  /** Makes writers wait, without blocking the thread, until the whole log is in the file, so that the next writer restarts it. */
  #pauseWriters(exclusively: Exclusively): void {
    if (this.#isPausing) return;
    this.#isPausing = true;
    const checkpoint = async () => {
      await this.#running;
      if (!this.#isClosed) await this.#checkpoint();
    };
    const finish = async () => {
      const patience = new AbortController();
      const { maxPauseMs = MAX_PAUSE_MS } = this.#options;
      const timeout = pause(maxPauseMs, undefined, { signal: patience.signal }).catch(() => {});
      await Promise.race([checkpoint(), timeout]);
      patience.abort();
      if (this.#isClosed) return;
      const size = this.#readSize();
      if (size === undefined) return;
      // Another program reads old pages of the log, or the thread is slow, so the log cannot restart yet.
      this.#pauseFrom = size.pending > 0 ? size.pages + LOG_PAGES.start : LOG_PAGES.pause;
    };
    exclusively(finish)
      // The queue of the connection is full; a later transaction tries again.
      .catch(() => {})
      .finally(() => {
        this.#isPausing = false;
      });
  }

  /** @returns undefined if the database cannot be read; then SQLite's own checkpoints report the fault with a commit. */
  #readSize(): LogSize | undefined {
    try {
      const [row] = this.#sizeStatement.all();
      const pages = Math.max(0, Number(row?.['log']));
      return { pages, pending: pages - Math.max(0, Number(row?.['checkpointed'])) };
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  #identify(): DatabaseFiles | undefined {
    try {
      return filesOf(this.#file);
    } catch {
      return undefined;
    }
  }

  /** Resolves when the checkpoint has ended, successfully or not. */
  #checkpoint(): Promise<void> {
    if (this.#retryAt !== undefined) return Promise.resolve();
    if (this.#running !== undefined) return this.#running;
    clearTimeout(this.#idle);
    try {
      const { worker } = this.#thread ?? this.#outsideRequests(() => this.#start());
      const request: CheckpointRequest = 'checkpoint';
      worker.postMessage(request);
      // Writers may wait for the checkpoint, so the thread keeps the process alive until it answers.
      worker.ref();
    } catch (error) {
      this.#fail(error);
      return Promise.resolve();
    }
    const { maxReplyMs = MAX_REPLY_MS } = this.#options;
    const patience = setTimeout(() => this.#fail(new Error(`the thread for checkpoints did not answer for ${maxReplyMs} ms`)), maxReplyMs);
    patience.unref();
    this.#running = new Promise((resolve) => {
      this.#finish = () => {
        clearTimeout(patience);
        this.#finish = undefined;
        this.#running = undefined;
        resolve();
      };
    });
    return this.#running;
  }

  #start() {
    const { program = PROGRAM, idleMs = IDLE_MS } = this.#options;
    if (this.#files === undefined) throw new Error(`${this.#file} or its write-ahead log is not where it was opened`);
    const workerData: CheckpointThreadData = { file: this.#file, files: this.#files };
    // Arguments of the process may be meant for its main program alone.
    const options = { workerData, name: 'checkpoints', resourceLimits: HEAP_LIMITS, execArgv: [] };
    const worker = new Worker(program, options);
    const isEnding = () => this.#thread?.worker !== worker;
    worker.on('message', () => {
      if (!isEnding()) {
        worker.unref();
        this.#idle = setTimeout(() => void this.#endThread(), idleMs);
        this.#idle.unref();
      }
      this.#finish?.();
    });
    const failUnlessEnding = (error: unknown) => {
      if (!isEnding()) this.#fail(error);
    };
    worker.on('error', failUnlessEnding);
    const ended = new Promise<void>((resolve) => {
      worker.on('exit', (code) => {
        failUnlessEnding(new Error(`the thread for checkpoints ended with code ${code}`));
        resolve();
      });
    });
    this.#thread = { worker, ended };
    return this.#thread;
  }

  async #endThread(): Promise<void> {
    clearTimeout(this.#idle);
    const thread = this.#thread;
    if (thread === undefined) return;
    // A new thread may start before the idle one is gone.
    this.#thread = undefined;
    const request: CheckpointRequest = 'close';
    thread.worker.postMessage(request);
    thread.worker.ref();
    const patience = new AbortController();
    const { maxClosingMs = MAX_CLOSING_MS } = this.#options;
    const timeout = pause(maxClosingMs, undefined, { signal: patience.signal }).catch(() => {});
    await Promise.race([thread.ended, timeout]);
    patience.abort();
    void thread.worker.terminate();
    thread.worker.unref();
  }

  /** Leaves the checkpoints to the committing connection for a while. */
  #fail(error: unknown): void {
    const thread = this.#thread;
    this.#thread = undefined;
    void thread?.worker.terminate();
    thread?.worker.unref();
    this.#retryAt = performance.now() + (this.#options.faultPauseMs ?? FAULT_PAUSE_MS);
    this.#setLastBound(DEFAULT_PAGES);
    this.#options.report(error instanceof Error ? error : new Error(String(error)));
    this.#finish?.();
  }

  #setLastBound(pages: number): void {
    this.#database.pragma(`wal_autocheckpoint = ${pages}`);
  }
}
