import { createServer } from 'node:net';
import { PinoLog } from '../../adapters/system/pino-log.ts';
import type { Settings } from '../../config/settings.ts';
import { openMetricsServer } from '../start/metrics-address.ts';
import { startFailure } from '../start/start-failure.ts';
import { GRACE_MS } from '../start/stopping.ts';
import { stopAccepting } from '../wiring/accepting.ts';
import { Closers } from '../wiring/closers.ts';
import { currentRelease } from '../wiring/release.ts';
import type { MeasuredProcess } from '../wiring/telemetry.ts';
import { Handover } from './handover.ts';
import { type WorkerEnd, WorkerProcess } from './worker-process.ts';

/** Beyond its grace a worker has this long to let go of what it holds. */
const LET_GO_MS = 10_000;

/**
 * Keeps several workers running and shares out connections among them. It accepts connections itself: a worker that ends, or
 * is told to, then has none that nobody serves.
 */
export class Supervisor {
  readonly #settings: Settings;
  readonly #log: PinoLog;
  readonly #handover = new Handover();
  // What a connection begins with is read by the worker that gets it.
  readonly #server = createServer({ pauseOnConnect: true, noDelay: true }, (connection) => this.#handover.accept(connection));
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
   * Resolves when all workers serve. The first one brings the database up to date and imports the configuration folder.
   * @throws Error with what kept a worker from starting; then none is left.
   */
  async start(): Promise<void> {
    const { WORKERS, HOST, PORT, PUBLIC_URL } = this.#settings;
    try {
      await this.#startOne({ isFirst: true });
      const further = Array.from({ length: WORKERS - 1 }, () => this.#startOne({ isFirst: false }));
      await Promise.all(further);
      await openMetricsServer(this.#settings, () => this.#readMetrics(), this.#closers);
      await this.#listen();
    } catch (error) {
      this.#isStopping = true;
      await this.#endWorkers();
      await this.#closers.closeAll();
      throw error;
    }
    this.#log.info('started', {
      host: HOST,
      port: PORT,
      publicUrl: PUBLIC_URL,
      workers: WORKERS,
      commit: currentRelease().commit,
    });
  }

  /** Whoever asks a worker, also one that is started later, is told that it is not ready; all serve as before. */
  drain(): void {
    this.#isDraining = true;
    for (const worker of this.#workers) worker.drain();
  }

  /** @returns the exit code: 0 when every worker finished what it had begun. */
  async stop(): Promise<number> {
    this.#isStopping = true;
    for (const timer of this.#restarts) clearTimeout(timer);
    await stopAccepting(this.#server);
    // Messages keep their order, but a connection that no worker was free for was not sent yet.
    await Promise.race([this.#handover.settled(), pause(GRACE_MS)]);
    const ends = await this.#endWorkers();
    await this.#closers.closeAll();
    this.#log.info('stopped', { workers: ends.length });
    this.#log.close();
    return ends.every(({ code }) => code === 0) ? 0 : 1;
  }

  killWorkers(): void {
    for (const worker of this.#workers) worker.kill();
  }

  #readMetrics(): Promise<string> {
    return this.#metrics.text(this.#workers, this.#restartCount);
  }

  async #endWorkers(): Promise<WorkerEnd[]> {
    for (const worker of this.#workers) worker.stop();
    const timer = setTimeout(() => this.killWorkers(), GRACE_MS + LET_GO_MS);
    const ends = await Promise.all(Array.from(this.#workers, ({ ended }) => ended));
    clearTimeout(timer);
    return ends;
  }

  /** Resolves when it serves; when it ends later, another one follows. */
  async #startOne({ isFirst }: { readonly isFirst: boolean }): Promise<void> {
    const worker = await this.#serving(isFirst);
    this.#replaceAtEnd(worker, new RestartPause());
  }

  /** @throws Error when it ends before it serves. */
  async #serving(isFirst: boolean): Promise<WorkerProcess> {
    const worker = new WorkerProcess({
      isFirst,
      // What `auto` means is decided once.
      environment: { ...process.env, WORKERS: String(this.#settings.WORKERS) },
      readMetrics: () => this.#readMetrics(),
      taken: (one) => this.#handover.taken(one),
      gone: (one) => this.#handover.remove(one),
    });
    this.#workers.add(worker);
    void worker.ended.then(() => {
      this.#workers.delete(worker);
      return this.#metrics.remove(worker);
    });
    await worker.ready;
    if (this.#isDraining) worker.drain();
    this.#handover.add(worker);
    return worker;
  }

  #replaceAtEnd(worker: WorkerProcess, restartPause: RestartPause): void {
    void worker.ended.then(({ code, signal, livedMs }) => {
      if (this.#isStopping) return;
      this.#log.error('a worker ended; another one follows', { pid: worker.pid, code, signal });
      this.#restart(restartPause, livedMs);
    });
  }

  #restart(restartPause: RestartPause, livedMs: number): void {
    const timer = setTimeout(async () => {
      this.#restarts.delete(timer);
      const began = performance.now();
      try {
        const worker = await this.#serving(false);
        this.#restartCount++;
        this.#log.info('a worker was started anew', { pid: worker.pid });
        this.#replaceAtEnd(worker, restartPause);
      } catch (error) {
        if (this.#isStopping) return;
        this.#log.error('a worker could not be started; another try follows', { reason: startFailure(error) });
        this.#restart(restartPause, performance.now() - began);
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
/** A worker that lived for so long did not end because of how it starts. */
const LIVED_MS = 60_000;

/** How long to wait until a worker is started in place of one that ended: twice as long each time that one ends early. */
export class RestartPause {
  #milliseconds = FIRST_MS;

  /** @param livedMs how long the one that ended has lived. @returns milliseconds. */
  after(livedMs: number): number {
    if (livedMs >= LIVED_MS) this.#milliseconds = FIRST_MS;
    const pause = this.#milliseconds;
    this.#milliseconds = Math.min(2 * pause, LONGEST_MS);
    return pause;
  }
}

/** A worker, as far as metrics are concerned. */
type Measured = { measure(): Promise<MeasuredProcess | undefined> };

/**
 * The metrics of all workers, those that ended too: a sum that becomes smaller looks like one that began anew, and what was counted long
 * ago like something that happens now.
 */
class WorkerMetrics<Worker extends Measured> {
  readonly #last = new Map<Worker, MeasuredProcess>();
  #ended: readonly MeasuredProcess[] = [];

  /** A worker that says nothing in time counts with what it said last. @param restarts how many workers came in place of one that ended. */
  async text(workers: Iterable<Worker>, restarts: number): Promise<string> {
    const { mergedText } = await import('../../adapters/system/metrics/merged-text.ts');
    await Promise.all(
      Array.from(workers, async (worker) => {
        const measured = await worker.measure();
        if (measured !== undefined) this.#last.set(worker, measured);
      }),
    );
    return mergedText([...this.#ended, ...this.#last.values()], restarts);
  }

  /** It ended: what it counted stays. */
  async remove(worker: Worker): Promise<void> {
    const last = this.#last.get(worker);
    this.#last.delete(worker);
    if (last === undefined) return;
    const { mergedCounts } = await import('../../adapters/system/metrics/merged-text.ts');
    this.#ended = [await mergedCounts([...this.#ended, last])];
  }
}
