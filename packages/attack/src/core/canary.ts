import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CaseResult, held, open } from './case.ts';
import type { Answer } from './http.ts';

/** A server may call after its response. */
const LISTEN_MS = 120;

/** A listener on this machine whose address only attacks contain: any call proves that an attack worked. */
export class Canary {
  readonly #server: Server;
  readonly #seen = new Set<string>();
  #next = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Canary> {
    const server = createServer();
    const canary = new Canary(server);
    server.on('request', (request, response) => {
      canary.#seen.add((request.url ?? '').split('/')[1]?.split('?')[0] ?? '');
      response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return canary;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Runs an attack that contains an address of this listener. @returns true if the target called it. */
  async watch(attack: (address: string) => Promise<Answer>): Promise<CaseResult> {
    const id = `probe-${this.#next++}`;
    const { port } = this.#server.address() as AddressInfo;
    const answer = await attack(`http://127.0.0.1:${port}/${id}`);
    await new Promise((resolve) => setTimeout(resolve, LISTEN_MS));
    if (this.#seen.has(id)) return open('called the address');
    if (answer.status >= 500 || answer.status === -1) {
      return open(answer.status === -1 ? 'hangs' : `breaks: ${answer.status}`);
    }
    return held(`not called, ${answer.status}`);
  }
}
