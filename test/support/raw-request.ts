import { Agent, request } from 'node:http';
import { connect } from 'node:net';

export type RawRequest = {
  readonly method: string;
  /** Sent unchanged, without normalization. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
};

export type RawAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
};

const agent = new Agent({ keepAlive: true, maxSockets: 8 });

/** Sends a request without normalization by a client library. Event streams are closed after their headers. */
export function send(address: string, { method, path, headers, body }: RawRequest): Promise<RawAnswer> {
  const { hostname, port } = new URL(address);
  // Without a Content-Length the body of a GET would be parsed as another request.
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve, reject) => {
    const clientRequest = request(
      { agent, hostname, port, method, path, headers: { ...headers, ...length }, timeout: 15_000 },
      (response) => {
        const { statusCode: status = 0, headers: onResponse } = response;
        if (onResponse['content-type'] === 'text/event-stream') {
          response.destroy();
          resolve({ status, headers: onResponse, text: '' });
          return;
        }
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => resolve({ status, headers: onResponse, text: Buffer.concat(chunks).toString('utf8') }));
      },
    );
    clientRequest.once('timeout', () => clientRequest.destroy(new Error(`no answer to ${method} ${path.slice(0, 100)}`)));
    clientRequest.once('error', reject);
    clientRequest.end(body);
  });
}

export type RawConversation = { readonly text: string; readonly closed: boolean };

/** Writes bytes to a connection of its own and waits until the peer closes it, at most `patienceMs`. */
export function sendBytes(
  address: string,
  bytes: readonly (string | Buffer)[],
  options: { readonly timeoutMs?: number; readonly end?: boolean } = {},
): Promise<RawConversation> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    const chunks: Buffer[] = [];
    const finishConversation = (closed: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text: Buffer.concat(chunks).toString('latin1'), closed });
    };
    const timer = setTimeout(() => finishConversation(false), options.timeoutMs ?? 3_000);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('close', () => finishConversation(true));
    socket.once('error', () => finishConversation(true));
    for (const part of bytes) socket.write(part);
    if (options.end === true) socket.end();
  });
}
