import { get } from 'node:http';
import { createServer, connect as dial, type Socket } from 'node:net';

const LOOK_MS = 100;

/** Shares out connections among services, of which it asks again and again whether they are ready. */
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
    const look = () => Promise.all(ports.map(async (port) => ready[(await isReady(port)) ? 'add' : 'delete'](port)));
    let turn = 0;
    const server = createServer((near) => {
      const there = [...ready];
      const port = there[turn++ % there.length];
      if (port === undefined) {
        near.destroy();
        return;
      }
      const far = dial(port, '127.0.0.1');
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(socket);
        socket.setNoDelay(true).on('error', () => other.destroy());
        socket.on('close', () => {
          sockets.delete(socket);
          other.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
    await look();
    const timer = setInterval(look, LOOK_MS);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
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
  return new Promise((done) => {
    const asked = get({ port, host: '127.0.0.1', path: '/health/ready', agent: false }, (response) => {
      response.resume();
      done(response.statusCode === 200);
    });
    asked.once('error', () => done(false));
  });
}
