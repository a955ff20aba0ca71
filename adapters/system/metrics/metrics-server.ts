import { createServer, type Server } from 'node:http';

const CONNECTIONS = 20;
/** Idle and slow connections are detected each second: by default Node checks twice a minute. */
const TIMES = { headersTimeout: 5_000, requestTimeout: 5_000, keepAliveTimeout: 65_000, connectionsCheckingInterval: 1_000 };
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Answers `GET /metrics` at a separate address, without authentication. */
export class MetricsServer {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** @throws Error if the address cannot be used. */
  static async open({ host, port }: { readonly host: string; readonly port: number }, read: () => Promise<string>): Promise<MetricsServer> {
    const server = createServer(TIMES, async ({ method, url }, response) => {
      if (url !== '/metrics' || (method !== 'GET' && method !== 'HEAD')) {
        response.writeHead(404).end();
        return;
      }
      try {
        const text = await read();
        response.writeHead(200, { 'Content-Type': METRICS_TYPE, 'Content-Length': Buffer.byteLength(text) });
        response.end(text);
      } catch {
        response.writeHead(503).end();
      }
    });
    server.maxConnections = CONNECTIONS;
    // A client that keeps its connection open must not lock others out.
    server.on('drop', () => server.closeIdleConnections());
    await new Promise<void>((done, failed) => {
      server.once('error', (error) => failed(Object.assign(error, { setting: 'METRICS_ADDRESS' })));
      server.listen(port, host, () => done());
    });
    return new MetricsServer(server);
  }

  async close(): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    this.#server.closeAllConnections();
    await closed;
  }
}
