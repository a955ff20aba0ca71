import { createServer, connect as dial, type Socket } from 'node:net';

/** Stands between a service and PostgreSQL and counts how often the service waits for an answer. */
export type CountingProxy = {
  /** The address of the database, through the proxy. */
  readonly url: string;
  /** Round trips since the last call of this. */
  take(): number;
  end(): Promise<void>;
};

/** Types of messages after which a client waits (PostgreSQL manual, section 55.7): `Sync` and `Query`. */
const WAITS = new Set(['S', 'Q'].map((letter) => letter.charCodeAt(0)));

export async function countingProxy(url: string): Promise<CountingProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((near) => {
    const far = dial(Number(target.port || 5432), target.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
    }
    const read = messages((type) => {
      if (WAITS.has(type)) count++;
    });
    near.on('data', read);
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxied = new URL(url);
  proxied.hostname = '127.0.0.1';
  proxied.port = String((server.address() as { port: number }).port);
  return {
    url: proxied.href,
    take() {
      const taken = count;
      count = 0;
      return taken;
    },
    async end() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Calls `seen` with the type of each message of a client; the first one, which starts the connection, has none. */
function messages(seen: (type: number) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let hasStarted = false;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const head = hasStarted ? 1 : 0;
      if (rest.length < head + 4) return;
      const length = head + rest.readInt32BE(head);
      if (rest.length < length) return;
      if (hasStarted) seen(rest[0] ?? 0);
      hasStarted = true;
      rest = rest.subarray(length);
    }
  };
}
