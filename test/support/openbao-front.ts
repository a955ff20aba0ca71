import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export type FrontCall = {
  readonly method: string;
  /** Below `/v1/`. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** `cut`: the connection ends without an answer. */
export type Played =
  | { readonly status: number; readonly body: string | object; readonly headers?: object }
  | 'cut';

/** Stands between the service and a real server and sees each call. */
export type OpenBaoFront = {
  readonly address: string;
  /** The calls since the last time that this was asked, as `POST sign/…` without the mount of Transit. */
  take(): readonly string[];
  readonly calls: readonly FrontCall[];
  /** What is answered here, since the real server cannot be made to; undefined is passed on. */
  play(play: (call: FrontCall) => Played | undefined | Promise<Played | undefined>): void;
  end(): Promise<void>;
};

export async function openBaoFront(target: string): Promise<OpenBaoFront> {
  const calls: FrontCall[] = [];
  let taken = 0;
  let play: Parameters<OpenBaoFront['play']>[0] = () => undefined;
  const server = createServer(async (incoming, outgoing) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const { method = '', url = '', headers } = incoming;
    const call = { method, path: url.replace(/^\/v1\//, ''), headers, body: Buffer.concat(parts).toString() };
    calls.push(call);
    const played = await play(call);
    if (played === undefined) return forward(target, incoming, call, outgoing);
    if (played === 'cut') return incoming.socket.destroy();
    const text = typeof played.body === 'string' ? played.body : JSON.stringify(played.body);
    outgoing.writeHead(played.status, { ...played.headers }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    take() {
      const since = calls.slice(taken);
      taken = calls.length;
      return since.map(({ method, path }) => `${method} ${path.replace(/^transit\//, '')}`);
    },
    play(played) {
      play = played;
    },
    end: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function forward(target: string, incoming: IncomingMessage, call: FrontCall, outgoing: ServerResponse): void {
  const { host: _host, ...headers } = incoming.headers;
  const onward = request(`${target}${incoming.url}`, { method: call.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  onward.end(call.body);
}
