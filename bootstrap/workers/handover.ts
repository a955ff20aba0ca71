import type { Socket } from 'node:net';

/** A worker, as far as connections are concerned. */
export type Taker = { hand(connection: Socket): void; kill(): void };

/** A worker that does not take a connection in this time serves nobody any more; it is to end, so that another one comes. */
const LIMIT_MS = 30_000;

type Given = { readonly connection: Socket; readonly timer: NodeJS.Timeout };

/**
 * Shares connections out among workers, to each in turn. A worker is given the next one when it has taken the last, so one
 * that is busy for long keeps nobody waiting; and what it had not taken when it ended goes to another.
 */
export class Handover {
  readonly #waiting: Socket[] = [];
  /** Workers that may be given a connection, the one that waits for longest first. */
  readonly #free: Taker[] = [];
  readonly #given = new Map<Taker, Given>();
  #settled: (() => void)[] = [];

  /** @param connection that nothing was read of. */
  accept(connection: Socket): void {
    // It is not read, so nothing else says that the client went away.
    connection.on('error', () => {});
    this.#waiting.push(connection);
    this.#distribute();
  }

  add(worker: Taker): void {
    this.#free.push(worker);
    this.#distribute();
  }

  /** The worker has what it was given; this process lets go of it. */
  taken(worker: Taker): void {
    const connection = this.#takeBack(worker);
    if (connection === undefined) return;
    connection.destroy();
    this.add(worker);
  }

  /** The worker ended. */
  remove(worker: Taker): void {
    const at = this.#free.indexOf(worker);
    if (at >= 0) this.#free.splice(at, 1);
    const connection = this.#takeBack(worker);
    if (connection !== undefined) this.#waiting.unshift(connection);
    this.#distribute();
  }

  /** Resolves when each connection has been taken. */
  settled(): Promise<void> {
    return new Promise((done) => {
      this.#settled.push(done);
      this.#distribute();
    });
  }

  #distribute(): void {
    while (this.#waiting.length > 0 && this.#free.length > 0) {
      const connection = this.#waiting.shift() as Socket;
      const worker = this.#free.shift() as Taker;
      const timer = setTimeout(() => worker.kill(), LIMIT_MS).unref();
      this.#given.set(worker, { connection, timer });
      worker.hand(connection);
    }
    if (this.#waiting.length > 0 || this.#given.size > 0) return;
    for (const done of this.#settled.splice(0)) done();
  }

  #takeBack(worker: Taker): Socket | undefined {
    const given = this.#given.get(worker);
    clearTimeout(given?.timer);
    this.#given.delete(worker);
    return given?.connection;
  }
}
