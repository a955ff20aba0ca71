import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type BackendCall = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The raw body. */
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly body: any;
};

/** The response of the backend at one path: a JSON value, or a function that writes the response. */
export type BackendAnswer = { readonly json: unknown } | ((response: ServerResponse, call: BackendCall) => void);

/** A backend that records every call and whose responses can be configured. */
export class Backend {
  readonly calls: BackendCall[] = [];
  readonly url: string;
  readonly close: () => Promise<void>;
  readonly #answers: Map<string, BackendAnswer>;

  private constructor(url: string, answers: Map<string, BackendAnswer>, close: () => Promise<void>) {
    this.url = url;
    this.#answers = answers;
    this.close = close;
  }

  static async start(): Promise<Backend> {
    const answers = new Map<string, BackendAnswer>();
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const call = { path: request.url ?? '', headers: request.headers, text, body: text === '' ? undefined : JSON.parse(text) };
        backend.calls.push(call);
        const answer = answers.get(call.path) ?? { json: {} };
        if (typeof answer === 'function') return answer(response, call);
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer.json));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const close = () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    const backend = new Backend(`http://127.0.0.1:${port}`, answers, close);
    return backend;
  }

  on(path: string, answer: BackendAnswer): void {
    this.#answers.set(path, answer);
  }

  /** Returns the calls to one path. */
  callsTo(path: string): readonly BackendCall[] {
    return this.calls.filter((call) => call.path === path);
  }

  clearCalls(): void {
    this.calls.length = 0;
  }
}
