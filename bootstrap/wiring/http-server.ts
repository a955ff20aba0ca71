import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Listener } from '../../adapters/http/server/listener.ts';
import type { Log } from '../../application/ports/log.ts';
import { stopAccepting } from './stop-accepting.ts';

// An `import` would read all exports of the module, and some of them load HTTP/2 and `fetch`: 13 MB that nothing uses.
const { createServer } = process.getBuiltinModule('node:http');
const OPTIONS = {
  headersTimeout: 20_000,
  requestTimeout: 60_000,
  maxHeaderSize: 32_768,
  // A request without a body is then no stream, which saves a tenth of the cost of serving a status list.
  optimizeEmptyRequests: true,
} as const;
const SWEEP_MS = 25;
const MINUTE_MS = 60_000;
/** A client loses its connection when it reads nothing for this long although a response waits for it. */
export const STALLED_MS = 120_000;
const STALL_CHECK_MS = 30_000;
/** The number of requests on one connection that may wait for the request before them. A client that sends more loses its connection. */
export const MAX_PIPELINED = 100;
/**
 * The bytes of the headers and bodies of these requests, which are in memory and not part of BODY_MEMORY yet. Node stops reading a
 * connection only when a single body exceeds 64 KiB.
 */
export const MAX_PIPELINED_BYTES = 256 * 1024;

/** `keepAliveSeconds` is the time for which an idle connection stays open. */
export type ConnectionLimits = { readonly maxConnections: number; readonly keepAliveSeconds: number };

type WaitingRequest = { readonly request: IncomingMessage; readonly headerBytes: number; readonly begin: () => void };

type Connection = {
  latestResponse: ServerResponse | undefined;
  servedResponse: ServerResponse | undefined;
  /** The requests that arrived meanwhile. */
  readonly waitingRequests: WaitingRequest[];
  /** The amount that the client had read at the last check, and the time since which it has not changed. */
  progress: string | undefined;
  progressSince: number;
};

/** The HTTP server of one process. It serves connections of its own port, or connections that a supervisor hands over. */
export class HttpServer {
  readonly #server: Server;
  readonly #log: Log;
  /**
   * The state of each connection. A set of responses is not used: it would change with each request and leave its old tables behind, which
   * keep all responses in memory until old objects are collected.
   */
  readonly #connections = new Map<Socket, Connection>();
  readonly #stallCheck: NodeJS.Timeout;
  #isClosing = false;
  #onEmpty = () => {};

  constructor({ IncomingMessage, ServerResponse, listen }: Listener, { maxConnections, keepAliveSeconds }: ConnectionLimits, log: Log) {
    this.#log = log;
    const messageClasses = { IncomingMessage, ServerResponse };
    this.#server = createServer({ ...OPTIONS, ...messageClasses, keepAliveTimeout: keepAliveSeconds * 1000 });
    this.#server.maxConnections = maxConnections;
    this.#server.on('connection', (socket) => this.#watch(socket));
    this.#server.on('request', (request, response) => this.#serve(request, response, listen));
    this.#warnOfDroppedConnections();
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

  /** Replaces `listen` when connections are passed to `take`. */
  expectConnections(): void {
    // After this event Node checks the timeouts of the connections of a server.
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
   * Accepts no new connections, and resolves when the existing connections have ended.
   * @param graceMs the time that running requests get to finish.
   * @param noticeMs the time in which a response tells clients that their kept connection ends; afterwards idle connections are closed.
   */
  async close(graceMs: number, noticeMs: number): Promise<void> {
    const timer = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    // This comes first: a load balancer whose connections continue until then opens few others, which the system would reset.
    if (this.#server.listening) await stopAccepting(this.#server);
    this.#isClosing = true;
    for (const { latestResponse } of this.#connections.values()) if (latestResponse !== undefined) endConnectionWith(latestResponse);
    const noticeEnd = performance.now() + noticeMs;
    // Timers run first in a turn of the event loop: a connection that looks idle then may have a waiting request.
    const sweep = setInterval(() => setImmediate(() => this.#closeIdle(noticeEnd)), SWEEP_MS);
    if (this.#connections.size > 0)
      await new Promise<void>((done) => {
        this.#onEmpty = done;
      });
    clearInterval(sweep);
    clearInterval(this.#stallCheck);
    clearTimeout(timer);
  }

  /**
   * Closes the connections of clients that have not read anything for `STALLED_MS` although a response waits for them. Otherwise the
   * connections and their responses would stay in memory forever.
   * @param now milliseconds of a monotonic clock.
   */
  closeStalled(now: number): void {
    for (const [socket, connection] of this.#connections) {
      const progress = progressOf(socket);
      if (progress === undefined || progress !== connection.progress) {
        connection.progress = progress;
        connection.progressSince = now;
      } else if (now - connection.progressSince >= STALLED_MS) socket.destroy();
    }
  }

  #closeIdle(noticeEnd: number): void {
    if (performance.now() >= noticeEnd) this.#server.closeIdleConnections();
  }

  #watch(socket: Socket): void {
    this.#connections.set(socket, {
      latestResponse: undefined,
      servedResponse: undefined,
      waitingRequests: [],
      progress: undefined,
      progressSince: 0,
    });
    socket.once('close', () => {
      this.#connections.delete(socket);
      if (this.#connections.size === 0) this.#onEmpty();
    });
  }

  /**
   * Serves the requests of one connection in turn. A client may send several requests without waiting for the responses (RFC 9112 section
   * 9.3.2); if they started together, they would use the slots of other clients.
   */
  #serve(request: IncomingMessage, response: ServerResponse, listen: RequestListener): void {
    const connection = this.#connections.get(request.socket);
    this.#noteResponse(response, connection);
    if (connection === undefined) {
      listen(request, response);
      return;
    }
    const begin = () => {
      // Once the connection ends, no more requests are served (RFC 9112 section 9.6): the client would not get a response.
      if (request.socket.destroyed || request.socket.writableEnded) return;
      connection.servedResponse = response;
      listen(request, response);
    };
    response.once('close', () => {
      if (connection.latestResponse === response) connection.latestResponse = undefined;
      if (connection.servedResponse !== response) return;
      connection.servedResponse = undefined;
      connection.waitingRequests.shift()?.begin();
    });
    if (connection.servedResponse === undefined) begin();
    else if (mayWait(connection)) connection.waitingRequests.push({ request, headerBytes: request.rawHeaders.join('').length, begin });
    else request.socket.destroy();
  }

  #noteResponse(response: ServerResponse, connection: Connection | undefined): void {
    if (this.#isClosing) {
      // A client that sent several requests gets all responses: the connection ends after the response that announces it.
      if (connection?.latestResponse !== undefined) keepConnectionAfter(connection.latestResponse);
      endConnectionWith(response);
    }
    if (connection === undefined) return;
    connection.latestResponse = response;
  }

  /** Warns at most once a minute, so that clients with too many connections do not fill the log. */
  #warnOfDroppedConnections(): void {
    let warnedAt = -MINUTE_MS;
    this.#server.on('drop', () => {
      if (performance.now() - warnedAt < MINUTE_MS) return;
      warnedAt = performance.now();
      this.#log.warn(
        `more connections are open than this process accepts (${this.#server.maxConnections}, by MAX_CONNECTIONS and the limit of open files); new ones are closed`,
      );
    });
  }
}

/** @returns true when one more request may wait. Its own body arrives after it, and counts for the next request. */
function mayWait({ waitingRequests }: Connection): boolean {
  if (waitingRequests.length >= MAX_PIPELINED) return false;
  const bytes = waitingRequests.reduce((sum, { request, headerBytes }) => sum + headerBytes + request.readableLength, 0);
  return bytes <= MAX_PIPELINED_BYTES;
}

/**
 * @returns the bytes that the system accepted from this process for the client, as two counts; undefined when no data wait to be read.
 */
function progressOf(socket: Socket): string | undefined {
  if (socket.writableLength === 0) return undefined;
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return `${socket.bytesWritten - socket.writableLength} ${handle?.writeQueueSize ?? 0}`;
}

/** The client is told that the connection ends, and sends no more requests on it (RFC 9112 section 9.6). */
function endConnectionWith(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

function keepConnectionAfter(response: ServerResponse): void {
  if (!response.headersSent) response.removeHeader('Connection');
}
