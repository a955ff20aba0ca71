import { get } from 'node:http';
import { createServer, connect as dial, type Socket } from 'node:net';

const PROBE_INTERVAL_MS = 100;

/** A balancer that polls the readiness of services and distributes connections among the ready ones. */
export class HealthBalancer {
  readonly address: string;
  readonly #close: () => void;

  private constructor(port: number, close: () => void) {
    this.address = `http://127.0.0.1:${port}`;
    this.#close = close;
  }

  /** @param ports of services on this machine; at least one is ready when this resolves. */
  static async start(ports: readonly number[]): Promise<HealthBalancer> {
    const ready = new Set<number>();
    const sockets = new Set<Socket>();
    const probe = () => Promise.all(ports.map(async (port) => ready[(await isReady(port)) ? 'add' : 'delete'](port)));
    let nextIndex = 0;
    const server = createServer((client) => {
      const target = [...ready];
      const port = target[nextIndex++ % target.length];
      if (port === undefined) {
        client.destroy();
        return;
      }
      const upstream = dial(port, '127.0.0.1');
      for (const [socket, peer] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        sockets.add(socket);
        socket.setNoDelay(true).on('error', () => peer.destroy());
        socket.on('close', () => {
          sockets.delete(socket);
          peer.destroy();
        });
      }
      client.pipe(upstream).pipe(client);
    });
    await probe();
    const timer = setInterval(probe, PROBE_INTERVAL_MS);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    return new HealthBalancer(port, () => {
      clearInterval(timer);
      server.close();
      for (const socket of sockets) socket.destroy();
    });
  }

  close(): void {
    this.#close();
  }
}

function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probeRequest = get({ port, host: '127.0.0.1', path: '/health/ready', agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    probeRequest.once('error', () => resolve(false));
  });
}
