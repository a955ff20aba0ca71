import { createServer } from 'node:net';
import { PinoLog } from '../../adapters/system/pino-log.ts';
import type { Settings } from '../../config/settings.ts';
import { openMetricsServer } from '../start/metrics-address.ts';
import { startFailureMessage } from '../start/start-failure.ts';
import { GRACE_MS } from '../start/stopping.ts';
import { Closers } from '../wiring/closers.ts';
import { currentRelease } from '../wiring/release.ts';
import { stopAccepting } from '../wiring/stop-accepting.ts';
import type { MeasuredProcess } from '../wiring/telemetry.ts';
import { ConnectionDistributor } from './connection-distributor.ts';
import { type WorkerEnd, WorkerProcess } from './worker-process.ts';

/** The time that a worker has beyond its grace to release its resources. */
const RELEASE_MS = 10_000;

/**
 * Runs several workers and distributes connections among them. It accepts connections itself, so that no connection is lost with a worker
 * that ends or is stopped.
 */
export class Supervisor {
  readonly #settings: Settings;
  readonly #log: PinoLog;
  readonly #distributor = new ConnectionDistributor();
  // The first bytes of a connection are read by the worker that gets it.
  readonly #server = createServer({ pauseOnConnect: true, noDelay: true }, (connection) => this.#distributor.accept(connection));
  readonly #workers = new Set<WorkerProcess>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  readonly #closers = new Closers();
  readonly #metrics = new WorkerMetrics<WorkerProcess>();
  #restartCount = 0;
  #isDraining = false;
  #isStopping = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#log = new PinoLog({ level: settings.LOG_LEVEL, version: currentRelease().version, sharesOutput: true });
    this.#server.maxConnections = settings.MAX_CONNECTIONS;
  }

  /**
   * Resolves when all workers serve. The first worker updates the database and imports the configuration folder.
   * @throws Error with the reason why a worker did not start; no worker remains then.
   */
  async start(): Promise<void> {
    const { WORKERS, HOST, PORT, PUBLIC_URL } = this.#settings;
    try {
      await this.#startWorker({ isFirst: true });
      const further = Array.from({ length: WORKERS - 1 }, () => this.#startWorker({ isFirst: false }));
      await Promise.all(further);
      await openMetricsServer(this.#settings, () => this.#readMetrics(), this.#closers);
      await this.#listen();
    } catch (error) {
      this.#isStopping = true;
      await this.#endWorkers();
      await this.#closers.closeAll();
      throw error;
    }
    this.#log.info('started', { host: HOST, port: PORT, publicUrl: PUBLIC_URL, workers: WORKERS, commit: currentRelease().commit });
  }

  /** All workers, including those that start later, report that they are not ready, and serve as before. */
  drain(): void {
    this.#isDraining = true;
    for (const worker of this.#workers) worker.drain();
  }

  /** @returns the exit code: 0 when every worker finished its requests. */
  async stop(): Promise<number> {
    this.#isStopping = true;
    for (const timer of this.#restarts) clearTimeout(timer);
    await stopAccepting(this.#server);
    // Messages keep their order, but a connection that waits for a free worker was not sent yet.
    await Promise.race([this.#distributor.settled(), pause(GRACE_MS)]);
    const workerEnds = await this.#endWorkers();
    await this.#closers.closeAll();
    this.#log.info('stopped', { workers: workerEnds.length });
    await this.#log.close();
    return workerEnds.every(({ code }) => code === 0) ? 0 : 1;
  }

  killWorkers(): void {
    for (const worker of this.#workers) worker.kill();
  }

  #readMetrics(): Promise<string> {
    return this.#metrics.text(this.#workers, this.#restartCount);
  }

  async #endWorkers(): Promise<WorkerEnd[]> {
    for (const worker of this.#workers) worker.stop();
    const timer = setTimeout(() => this.killWorkers(), GRACE_MS + RELEASE_MS);
    const workerEnds = await Promise.all(Array.from(this.#workers, ({ ended }) => ended));
    clearTimeout(timer);
    return workerEnds;
  }

  /** Resolves when the worker serves; a worker that ends later is replaced. */
  async #startWorker({ isFirst }: { readonly isFirst: boolean }): Promise<void> {
    const worker = await this.#startServingWorker(isFirst);
    this.#replaceAtEnd(worker, new RestartPause());
  }

  /** @throws Error when the worker ends before it serves. */
  async #startServingWorker(isFirst: boolean): Promise<WorkerProcess> {
    const worker = new WorkerProcess({
      isFirst,
      // The number of workers for `auto` is determined once.
      environment: { ...process.env, WORKERS: String(this.#settings.WORKERS) },
      readMetrics: () => this.#readMetrics(),
      onTaken: (takenWorker) => this.#distributor.taken(takenWorker),
      onGone: (goneWorker) => this.#distributor.remove(goneWorker),
    });
    this.#workers.add(worker);
    void worker.ended.then(() => {
      this.#workers.delete(worker);
      return this.#metrics.remove(worker);
    });
    await worker.ready;
    if (this.#isDraining) worker.drain();
    this.#distributor.add(worker);
    return worker;
  }

  #replaceAtEnd(worker: WorkerProcess, restartPause: RestartPause): void {
    void worker.ended.then(({ code, signal, livedMs }) => {
      if (this.#isStopping) return;
      this.#log.error('a worker ended; it is replaced', { pid: worker.pid, code, signal });
      this.#restart(restartPause, livedMs);
    });
  }

  #restart(restartPause: RestartPause, livedMs: number): void {
    const timer = setTimeout(async () => {
      this.#restarts.delete(timer);
      const startedAt = performance.now();
      try {
        const worker = await this.#startServingWorker(false);
        this.#restartCount++;
        this.#log.info('a worker was restarted', { pid: worker.pid });
        this.#replaceAtEnd(worker, restartPause);
      } catch (error) {
        if (this.#isStopping) return;
        this.#log.error('a worker could not be started; the start is retried', { reason: startFailureMessage(error) });
        this.#restart(restartPause, performance.now() - startedAt);
      }
    }, restartPause.after(livedMs));
    this.#restarts.add(timer);
  }

  #listen(): Promise<void> {
    const { PORT, HOST } = this.#settings;
    return new Promise((done, failed) => {
      this.#server.once('error', failed);
      this.#server.listen(PORT, HOST, () => done());
    });
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((done) => setTimeout(done, milliseconds));
}

const FIRST_MS = 200;
const LONGEST_MS = 60_000;
/** A worker that lived for this long did not end because of its start. */
const STABLE_MS = 60_000;

/** The pause before an ended worker is replaced. It doubles each time that a worker ends early. */
export class RestartPause {
  #milliseconds = FIRST_MS;

  /** @param livedMs the lifetime of the ended worker. @returns milliseconds. */
  after(livedMs: number): number {
    if (livedMs >= STABLE_MS) this.#milliseconds = FIRST_MS;
    const pause = this.#milliseconds;
    this.#milliseconds = Math.min(2 * pause, LONGEST_MS);
    return pause;
  }
}

/** A worker that reports metrics. */
type MeasuredWorker = { measure(): Promise<MeasuredProcess | undefined> };

/**
 * The metrics of all workers, including those that ended: a sum that becomes smaller looks like a counter that was reset, and earlier
 * counts would look like recent ones.
 */
class WorkerMetrics<Worker extends MeasuredWorker> {
  readonly #lastMetrics = new Map<Worker, MeasuredProcess>();
  #endedMetrics: readonly MeasuredProcess[] = [];

  /** A worker that does not respond in time counts with its last metrics. @param restarts the number of workers that replaced others. */
  async text(workers: Iterable<Worker>, restarts: number): Promise<string> {
    const { mergedText } = await import('../../adapters/system/metrics/merged-text.ts');
    await Promise.all(
      Array.from(workers, async (worker) => {
        const measured = await worker.measure();
        if (measured !== undefined) this.#lastMetrics.set(worker, measured);
      }),
    );
    return mergedText([...this.#endedMetrics, ...this.#lastMetrics.values()], restarts);
  }

  /** Keeps the counts of a worker that ended. */
  async remove(worker: Worker): Promise<void> {
    const finalMetrics = this.#lastMetrics.get(worker);
    this.#lastMetrics.delete(worker);
    if (finalMetrics === undefined) return;
    const { mergedCounts } = await import('../../adapters/system/metrics/merged-text.ts');
    this.#endedMetrics = [await mergedCounts([...this.#endedMetrics, finalMetrics])];
  }
}
