import type { Socket } from 'node:net';

/** A worker that accepts connections. */
export type ConnectionTarget = { hand(connection: Socket): void; kill(): void };

/** A worker that does not take a connection within this time does not work any more. It is killed and replaced. */
const LIMIT_MS = 30_000;

type PendingHandover = { readonly connection: Socket; readonly timer: NodeJS.Timeout };

/**
 * Distributes connections among workers in turn. A worker gets the next connection after it has taken the last one, so that a busy worker
 * delays no client. A connection that a worker had not taken when it ended goes to another worker.
 */
export class ConnectionDistributor {
  readonly #waitingConnections: Socket[] = [];
  /** Workers that may get a connection; the one that waits longest comes first. */
  readonly #freeWorkers: ConnectionTarget[] = [];
  readonly #pendingByWorker = new Map<ConnectionTarget, PendingHandover>();
  #settledListeners: (() => void)[] = [];

  /** @param connection nothing was read from it yet. */
  accept(connection: Socket): void {
    // The connection is not read, so only this event reports that the client has gone.
    connection.on('error', () => {});
    this.#waitingConnections.push(connection);
    this.#distribute();
  }

  add(worker: ConnectionTarget): void {
    this.#freeWorkers.push(worker);
    this.#distribute();
  }

  /** The worker has received the connection, and this process closes its copy. */
  taken(worker: ConnectionTarget): void {
    const connection = this.#takeBack(worker);
    if (connection === undefined) return;
    connection.destroy();
    this.add(worker);
  }

  remove(worker: ConnectionTarget): void {
    const index = this.#freeWorkers.indexOf(worker);
    if (index >= 0) this.#freeWorkers.splice(index, 1);
    const connection = this.#takeBack(worker);
    if (connection !== undefined) this.#waitingConnections.unshift(connection);
    this.#distribute();
  }

  /** Resolves when each connection has been taken. */
  settled(): Promise<void> {
    return new Promise((done) => {
      this.#settledListeners.push(done);
      this.#distribute();
    });
  }

  #distribute(): void {
    while (this.#waitingConnections.length > 0 && this.#freeWorkers.length > 0) {
      const connection = this.#waitingConnections.shift() as Socket;
      const worker = this.#freeWorkers.shift() as ConnectionTarget;
      const timer = setTimeout(() => worker.kill(), LIMIT_MS).unref();
      this.#pendingByWorker.set(worker, { connection, timer });
      worker.hand(connection);
    }
    if (this.#waitingConnections.length > 0 || this.#pendingByWorker.size > 0) return;
    for (const done of this.#settledListeners.splice(0)) done();
  }

  #takeBack(worker: ConnectionTarget): Socket | undefined {
    const pending = this.#pendingByWorker.get(worker);
    clearTimeout(pending?.timer);
    this.#pendingByWorker.delete(worker);
    return pending?.connection;
  }
}
