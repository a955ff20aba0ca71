import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Listener } from '../adapters/http/listener.ts';
import type { Log } from '../application/ports/log.ts';
import { stopAccepting } from './accepting.ts';

// An `import` would read all that the module exports, and some of it brings HTTP/2 and `fetch` along: 13 MB that nothing uses.
const { createServer } = process.getBuiltinModule('node:http');
const OPTIONS = {
  headersTimeout: 20_000,
  requestTimeout: 60_000,
  maxHeaderSize: 32_768,
  // A request without a body is no stream then, of which nobody would read anything: a tenth of what a status list costs.
  optimizeEmptyRequests: true,
} as const;
const SWEEP_MS = 25;
const MINUTE_MS = 60_000;

/** `keepAliveSeconds`: how long an idle connection stays open. */
export type ConnectionLimits = { readonly maxConnections: number; readonly keepAliveSeconds: number };

/** The HTTP server of one process, with connections of its own port or those that a supervisor hands over. */
export class HttpServer {
  readonly #server: Server;
  readonly #log: Log;
  /**
   * What is answered on each last. Not a set of answers: one that changes with each request leaves its old tables behind, which
   * live until old objects are collected, and all answers that ever stood in it with them.
   */
  readonly #connections = new Map<Socket, { latest: ServerResponse | undefined }>();
  #isClosing = false;
  #empty = () => {};

  constructor(
    { IncomingMessage, ServerResponse, listen }: Listener,
    { maxConnections, keepAliveSeconds }: ConnectionLimits,
    log: Log,
  ) {
    this.#log = log;
    const made = { IncomingMessage, ServerResponse };
    this.#server = createServer({ ...OPTIONS, ...made, keepAliveTimeout: keepAliveSeconds * 1000 });
    this.#server.maxConnections = maxConnections;
    this.#server.on('connection', (socket) => this.#watch(socket));
    this.#server.on('request', (_request, response) => this.#note(response));
    this.#server.on('request', listen);
    this.#tellOfDroppedConnections();
  }

  /** @returns the port. */
  listen(port: number, host: string): Promise<number> {
    return new Promise((done, failed) => {
      this.#server.once('error', failed);
      this.#server.listen(port, host, () => done((this.#server.address() as AddressInfo).port));
    });
  }

  /** Instead of `listen`: connections come by `take`. */
  expectConnections(): void {
    // From this event on Node watches the times of a server's connections.
    this.#server.emit('listening');
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  take(socket: Socket): void {
    if (this.#connections.size >= this.#server.maxConnections) {
      socket.destroy();
      this.#server.emit('drop');
    } else this.#server.emit('connection', socket);
  }

  /**
   * Takes no new connections, and resolves when those that there are have ended.
   * @param graceMs that running requests get to finish.
   * @param noticeMs in which clients that keep connections are told by an answer that theirs ends; idle ones end afterwards.
   */
  async close(graceMs: number, noticeMs: number): Promise<void> {
    const timer = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    // First of all: a balancer whose connections go on until then opens few others, which the system would reset.
    if (this.#server.listening) await stopAccepting(this.#server);
    this.#isClosing = true;
    for (const { latest } of this.#connections.values()) if (latest !== undefined) endConnectionWith(latest);
    const noticed = performance.now() + noticeMs;
    // Timers come first in a turn of the event loop: a connection that looks idle then may have its next request waiting.
    const sweep = setInterval(() => setImmediate(() => this.#closeIdle(noticed)), SWEEP_MS);
    if (this.#connections.size > 0)
      await new Promise<void>((done) => {
        this.#empty = done;
      });
    clearInterval(sweep);
    clearTimeout(timer);
  }

  #closeIdle(noticed: number): void {
    if (performance.now() >= noticed) this.#server.closeIdleConnections();
  }

  #watch(socket: Socket): void {
    this.#connections.set(socket, { latest: undefined });
    socket.once('close', () => {
      this.#connections.delete(socket);
      if (this.#connections.size === 0) this.#empty();
    });
  }

  #note(response: ServerResponse): void {
    const connection = this.#connections.get(response.req.socket);
    if (this.#isClosing) {
      // Who sent several at once is answered all of them: the connection ends with the answer that says so.
      if (connection?.latest !== undefined) goOnAfter(connection.latest);
      endConnectionWith(response);
    }
    if (connection === undefined) return;
    connection.latest = response;
    response.once('close', () => {
      if (connection.latest === response) connection.latest = undefined;
    });
  }

  /** Once a minute at most: whoever opens too many connections does not also fill the log. */
  #tellOfDroppedConnections(): void {
    let told = -MINUTE_MS;
    this.#server.on('drop', () => {
      if (performance.now() - told < MINUTE_MS) return;
      told = performance.now();
      this.#log.warn(
        `more than MAX_CONNECTIONS (${this.#server.maxConnections}) connections are open; new ones are closed`,
      );
    });
  }
}

/** The client is told so, and sends nothing more on it (RFC 9112 section 9.6). */
function endConnectionWith(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

function goOnAfter(response: ServerResponse): void {
  if (!response.headersSent) response.removeHeader('Connection');
}
