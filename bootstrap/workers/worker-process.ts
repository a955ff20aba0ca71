import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WorkerFailure } from '../start/start-failure.ts';
import type { MeasuredProcess } from '../wiring/telemetry.ts';
import { FIRST, type FromWorker, FURTHER, type ToWorker } from './messages.ts';
import { Questions } from './questions.ts';

/** Built code has another ending than its sources. */
const PROGRAM = fileURLToPath(new URL(`worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url));

/** A worker that is busy for longer is left out this time. */
const MEASURE_MS = 2_000;

export type WorkerEnd = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly livedMs: number };

export type WorkerOptions = {
  readonly isFirst: boolean;
  readonly environment: NodeJS.ProcessEnv;
  /** It has the connection that it was handed. */
  readonly taken: (worker: WorkerProcess) => void;
  /** The metrics of all workers, for one that was asked. */
  readonly readMetrics: () => Promise<string>;
  /** It can be told nothing any more; what it said before was heard. */
  readonly gone: (worker: WorkerProcess) => void;
};

/** One worker. Options of Node go on to it, and it writes to the same output. */
export class WorkerProcess {
  /** Resolves when it serves. @throws WorkerFailure when it ends instead. */
  readonly ready: Promise<void>;
  readonly ended: Promise<WorkerEnd>;
  readonly #child: ChildProcess;

  readonly #measurements = new Questions<MeasuredProcess>(MEASURE_MS);

  constructor({ isFirst, environment, taken, gone, readMetrics }: WorkerOptions) {
    const born = performance.now();
    this.#child = fork(PROGRAM, [isFirst ? FIRST : FURTHER], { env: environment, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null) => resolve({ code, signal, livedMs: performance.now() - born });
      this.#child.once('exit', end);
      // It could not even be started.
      this.#child.once('error', () => end(null, null));
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.on('message', (message: FromWorker) => {
        if (message.type === 'taken') taken(this);
        if (message.type === 'measured') this.#measurements.answered(message.id, message.metrics);
        if (message.type === 'read-metrics') void this.#tellMetrics(message.id, readMetrics);
        if (message.type === 'ready') resolve();
        if (message.type === 'failed') reject(new WorkerFailure(message.message));
      });
      this.#child.once('error', reject);
      this.#whenUnreachable(async () => {
        const { code, signal } = await this.ended;
        reject(new WorkerFailure(`Vidimus could not start: a worker ended with ${signal ?? `code ${code}`}`));
      });
    });
    // It may also end while nobody waits for this.
    this.ready.catch(() => {});
    this.#whenUnreachable(() => gone(this));
  }

  /**
   * Calls when the last of what it said has arrived, once or twice; an exit is known of earlier. Node tells no `disconnect`
   * of a process that ends with a connection on its way to it, only `close`.
   */
  #whenUnreachable(then: () => void): void {
    for (const event of ['disconnect', 'close']) this.#child.once(event, then);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** This process keeps the connection, too, until the worker has said that it has it. */
  hand(connection: Socket): void {
    this.#send({ type: 'connection' }, connection);
  }

  /** It says that it is not ready, and serves as before. */
  drain(): void {
    this.#send({ type: 'drain' });
  }

  /** It finishes running requests and ends. */
  stop(): void {
    this.#send({ type: 'stop' });
  }

  /** @returns what it measured; undefined where it does not say so in time. */
  async measure(): Promise<MeasuredProcess | undefined> {
    const measured = await this.#measurements.ask((id) => this.#send({ type: 'measure', id }));
    return measured?.length === 0 ? undefined : measured;
  }

  async #tellMetrics(id: number, readMetrics: () => Promise<string>): Promise<void> {
    const text = await readMetrics().catch(() => undefined);
    this.#send({ type: 'metrics', id, text });
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #send(message: ToWorker, connection?: Socket): void {
    // Where it fails the worker is gone, which is told by an event of its own.
    this.#child.send(message, connection, { keepOpen: true }, () => {});
  }
}
