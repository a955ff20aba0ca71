import { createServer, type Server } from 'node:http';

export type CollectedSpan = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly status: number;
  readonly attributes: Readonly<Record<string, unknown>>;
};

type Attribute = { readonly key: string; readonly value: Readonly<Record<string, unknown>> };

/** A collector of traces (OTLP over HTTP, JSON). */
export class Collector {
  readonly spans: CollectedSpan[] = [];
  /** All received messages, unparsed. */
  text = '';
  readonly #server: Server;
  readonly endpoint: string;

  private constructor(server: Server) {
    this.#server = server;
    this.endpoint = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  }

  static async start(): Promise<Collector> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const collector = new Collector(server);
    server.on('request', async (request, response) => {
      const text = Buffer.concat(await request.toArray()).toString();
      if (request.url === '/v1/traces') collector.#take(text);
      response.setHeader('Content-Type', 'application/json').end('{}');
    });
    return collector;
  }

  #take(text: string): void {
    this.text += text;
    // biome-ignore lint/suspicious/noExplicitAny: a message of a protocol that nothing else here knows
    const { resourceSpans } = JSON.parse(text) as any;
    for (const { scopeSpans } of resourceSpans)
      for (const { spans } of scopeSpans)
        for (const { attributes = [], status = {}, parentSpanId = '', ...span } of spans)
          this.spans.push({
            ...span,
            parentSpanId,
            status: status.code ?? 0,
            attributes: Object.fromEntries((attributes as Attribute[]).map(({ key, value }) => [key, Object.values(value)[0]])),
          });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
