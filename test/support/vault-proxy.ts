import { createServer, type Server, request as send } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** Stands between the service and Vault: counts calls, and does to them what networks do. */
export class VaultProxy {
  readonly calls: string[] = [];
  /** What becomes of calls from now on: passed on, answered after so long, never answered, or cut. */
  mode: 'pass' | 'late' | 'hang' | 'cut' = 'pass';
  lateMs = 10_000;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: string) {
    this.#server = createServer((asked, answer) => {
      const { mode } = this;
      this.calls.push(`${asked.method} ${asked.url}`);
      if (mode === 'cut') return void asked.socket.destroy();
      if (mode === 'hang') return;
      const pass = () => {
        const { method, headers, url } = asked;
        const onward = send(`${target}${url}`, { method, headers, agent: false }, (got) => {
          answer.writeHead(got.statusCode ?? 502, got.headers);
          got.pipe(answer);
        });
        onward.on('error', () => answer.destroy());
        asked.pipe(onward);
      };
      if (mode === 'pass') return pass();
      setTimeout(pass, this.lateMs).unref();
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async before(target: string): Promise<VaultProxy> {
    const proxy = new VaultProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  will(mode: VaultProxy['mode']): void {
    this.mode = mode;
  }

  /** Calls since the last time that this was asked. */
  take(): readonly string[] {
    return this.calls.splice(0);
  }

  /** Ends the connections that are there. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }
}
