import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WorkerError } from '../start/start-failure.ts';
import type { MeasuredProcess } from '../wiring/telemetry.ts';
import { FIRST_WORKER, type FromWorker, FURTHER_WORKER, type ToWorker } from './messages.ts';
import { PendingRequests } from './pending-requests.ts';

/** Built code has another file extension than its sources. */
const PROGRAM = fileURLToPath(new URL(`worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url));

/** A worker that is busy for longer is left out once. */
const MEASURE_MS = 2_000;

export type WorkerEnd = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly livedMs: number };

export type WorkerOptions = {
  readonly isFirst: boolean;
  readonly environment: NodeJS.ProcessEnv;
  /** Called when the worker has received the connection. */
  readonly onTaken: (worker: WorkerProcess) => void;
  readonly readMetrics: () => Promise<string>;
  /** Called when the worker cannot be reached any more, after its last message. */
  readonly onGone: (worker: WorkerProcess) => void;
};

/** One worker process. It gets the options of Node, and writes to the same output. */
export class WorkerProcess {
  /** Resolves when the worker serves. @throws WorkerError when it ends instead. */
  readonly ready: Promise<void>;
  readonly ended: Promise<WorkerEnd>;
  readonly #child: ChildProcess;

  readonly #measurements = new PendingRequests<MeasuredProcess>(MEASURE_MS);

  constructor({ isFirst, environment, onTaken, onGone, readMetrics }: WorkerOptions) {
    const startedAt = performance.now();
    this.#child = fork(PROGRAM, [isFirst ? FIRST_WORKER : FURTHER_WORKER], {
      env: environment,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null) => resolve({ code, signal, livedMs: performance.now() - startedAt });
      this.#child.once('exit', end);
      // The process could not be started.
      this.#child.once('error', () => end(null, null));
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.on('message', (message: FromWorker) => {
        if (message.type === 'taken') onTaken(this);
        if (message.type === 'measured') this.#measurements.onResponse(message.id, message.metrics);
        if (message.type === 'read-metrics') void this.#sendMetrics(message.id, readMetrics);
        if (message.type === 'ready') resolve();
        if (message.type === 'failed') reject(new WorkerError(message.message));
      });
      this.#child.once('error', reject);
      this.#onUnreachable(async () => {
        const { code, signal } = await this.ended;
        reject(new WorkerError(`Vidimus could not start: a worker ended with ${signal ?? `code ${code}`}`));
      });
    });
    // The worker may also end while nothing awaits this promise.
    this.ready.catch(() => {});
    this.#onUnreachable(() => onGone(this));
  }

  /**
   * Calls `then` once or twice when the last message of the worker has arrived; the exit is known earlier. For a process that ends while a
   * connection is on its way to it, Node emits only `close` and no `disconnect`.
   */
  #onUnreachable(then: () => void): void {
    for (const event of ['disconnect', 'close']) this.#child.once(event, then);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** This process also keeps the connection until the worker has confirmed it. */
  hand(connection: Socket): void {
    this.#send({ type: 'connection' }, connection);
  }

  /** The worker reports that it is not ready, and serves as before. */
  drain(): void {
    this.#send({ type: 'drain' });
  }

  /** The worker finishes running requests and ends. */
  stop(): void {
    this.#send({ type: 'stop' });
  }

  /** @returns the metrics of the worker; undefined when it does not report them in time. */
  async measure(): Promise<MeasuredProcess | undefined> {
    const measured = await this.#measurements.request((id) => this.#send({ type: 'measure', id }));
    return measured?.length === 0 ? undefined : measured;
  }

  async #sendMetrics(id: number, readMetrics: () => Promise<string>): Promise<void> {
    const text = await readMetrics().catch(() => undefined);
    this.#send({ type: 'metrics', id, text });
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #send(message: ToWorker, connection?: Socket): void {
    // When sending fails, the worker has ended, which a separate event reports.
    this.#child.send(message, connection, { keepOpen: true }, () => {});
  }
}
