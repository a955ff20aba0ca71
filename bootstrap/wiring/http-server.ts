import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Listener } from '../../adapters/http/server/listener.ts';
import type { Log } from '../../application/ports/log.ts';
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
/** A client that reads nothing for so long, although a response waits for it, loses its connection. */
export const STALLED_MS = 120_000;
const STALL_CHECK_MS = 30_000;
/** Requests of one connection that wait for the one before them. A client that sends more at once loses its connection. */
export const MAX_PIPELINED = 100;
/**
 * Bytes of the headers and bodies of these requests, which are in memory and not part of BODY_MEMORY yet. Node stops reading a
 * connection only when one body alone exceeds 64 KiB.
 */
export const MAX_PIPELINED_BYTES = 256 * 1024;

/** `keepAliveSeconds`: how long an idle connection stays open. */
export type ConnectionLimits = { readonly maxConnections: number; readonly keepAliveSeconds: number };

type WaitingRequest = { readonly request: IncomingMessage; readonly headerBytes: number; readonly begin: () => void };

type Connection = {
  /** The response that was begun last. */
  latest: ServerResponse | undefined;
  /** The response that is being made. */
  serving: ServerResponse | undefined;
  /** The requests that arrived meanwhile. */
  readonly waiting: WaitingRequest[];
  /** How far the client had read when it was looked at last, and since when it has not read further. */
  progress: string | undefined;
  progressAt: number;
};

/** The HTTP server of one process, with connections of its own port or those that a supervisor hands over. */
export class HttpServer {
  readonly #server: Server;
  readonly #log: Log;
  /**
   * What is answered on each last. Not a set of answers: one that changes with each request leaves its old tables behind, which
   * live until old objects are collected, and all answers that ever stood in it with them.
   */
  readonly #connections = new Map<Socket, Connection>();
  readonly #stallCheck: NodeJS.Timeout;
  #isClosing = false;
  #empty = () => {};

  constructor({ IncomingMessage, ServerResponse, listen }: Listener, { maxConnections, keepAliveSeconds }: ConnectionLimits, log: Log) {
    this.#log = log;
    const made = { IncomingMessage, ServerResponse };
    this.#server = createServer({ ...OPTIONS, ...made, keepAliveTimeout: keepAliveSeconds * 1000 });
    this.#server.maxConnections = maxConnections;
    this.#server.on('connection', (socket) => this.#watch(socket));
    this.#server.on('request', (request, response) => this.#serve(request, response, listen));
    this.#tellOfDroppedConnections();
    this.#stallCheck = setInterval(() => this.closeStalled(performance.now()), STALL_CHECK_MS);
    this.#stallCheck.unref();
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

  get maxConnections(): number {
    return this.#server.maxConnections;
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
    clearInterval(this.#stallCheck);
    clearTimeout(timer);
  }

  /**
   * Closes the connections of clients that have not read anything for `STALLED_MS` although a response waits for them. Otherwise
   * they would keep their connection and the response in memory for ever.
   * @param now milliseconds of a clock that does not jump.
   */
  closeStalled(now: number): void {
    for (const [socket, connection] of this.#connections) {
      const progress = progressOf(socket);
      if (progress === undefined || progress !== connection.progress) {
        connection.progress = progress;
        connection.progressAt = now;
      } else if (now - connection.progressAt >= STALLED_MS) socket.destroy();
    }
  }

  #closeIdle(noticed: number): void {
    if (performance.now() >= noticed) this.#server.closeIdleConnections();
  }

  #watch(socket: Socket): void {
    this.#connections.set(socket, { latest: undefined, serving: undefined, waiting: [], progress: undefined, progressAt: 0 });
    socket.once('close', () => {
      this.#connections.delete(socket);
      if (this.#connections.size === 0) this.#empty();
    });
  }

  /**
   * Serves the requests of one connection one after the other. A client may send several without waiting for the responses
   * (RFC 9112 section 9.3.2); started together they would take the places of other clients.
   */
  #serve(request: IncomingMessage, response: ServerResponse, listen: RequestListener): void {
    const connection = this.#connections.get(request.socket);
    this.#note(response, connection);
    if (connection === undefined) {
      listen(request, response);
      return;
    }
    const begin = () => {
      // Once the connection ends nothing is served any more (RFC 9112 section 9.6): the client would get no response.
      if (request.socket.destroyed || request.socket.writableEnded) return;
      connection.serving = response;
      listen(request, response);
    };
    response.once('close', () => {
      if (connection.latest === response) connection.latest = undefined;
      if (connection.serving !== response) return;
      connection.serving = undefined;
      connection.waiting.shift()?.begin();
    });
    if (connection.serving === undefined) begin();
    else if (mayWait(connection)) connection.waiting.push({ request, headerBytes: request.rawHeaders.join('').length, begin });
    else request.socket.destroy();
  }

  #note(response: ServerResponse, connection: Connection | undefined): void {
    if (this.#isClosing) {
      // Who sent several at once is answered all of them: the connection ends with the answer that says so.
      if (connection?.latest !== undefined) goOnAfter(connection.latest);
      endConnectionWith(response);
    }
    if (connection === undefined) return;
    connection.latest = response;
  }

  /** Once a minute at most: whoever opens too many connections does not also fill the log. */
  #tellOfDroppedConnections(): void {
    let told = -MINUTE_MS;
    this.#server.on('drop', () => {
      if (performance.now() - told < MINUTE_MS) return;
      told = performance.now();
      this.#log.warn(
        `more connections are open than this process accepts (${this.#server.maxConnections}, by MAX_CONNECTIONS and the limit of open files); new ones are closed`,
      );
    });
  }
}

/** Whether one more request may wait. Its own body comes after it, and counts for the next one. */
function mayWait({ waiting }: Connection): boolean {
  if (waiting.length >= MAX_PIPELINED) return false;
  const bytes = waiting.reduce((sum, { request, headerBytes }) => sum + headerBytes + request.readableLength, 0);
  return bytes <= MAX_PIPELINED_BYTES;
}

/**
 * Bytes that the system took from us for the client, in two counts.
 * @returns undefined when nothing waits to be read.
 */
function progressOf(socket: Socket): string | undefined {
  if (socket.writableLength === 0) return undefined;
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return `${socket.bytesWritten - socket.writableLength} ${handle?.writeQueueSize ?? 0}`;
}

/** The client is told so, and sends nothing more on it (RFC 9112 section 9.6). */
function endConnectionWith(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

function goOnAfter(response: ServerResponse): void {
  if (!response.headersSent) response.removeHeader('Connection');
}
