import { Agent, createServer, request, type Server } from 'node:http';

/** Gives each request to the next of several processes, whoever sent the one before. */
export class Balancer {
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(ports: readonly number[]) {
    let turn = 0;
    this.#server = createServer({ keepAliveTimeout: 65_000 }, (incoming, outgoing) => {
      const port = ports[turn++ % ports.length];
      const { method, url: path, headers } = incoming;
      const forwarded = request(
        { host: '127.0.0.1', port, method, path, headers, agent: this.#agent },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing);
        },
      );
      forwarded.on('error', () => outgoing.destroy());
      incoming.pipe(forwarded);
    });
  }

  listen(port: number): Promise<void> {
    return new Promise((done, failed) => {
      this.#server.once('error', failed).listen(port, '127.0.0.1', () => done());
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
  }
}
