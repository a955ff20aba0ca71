import { createServer, connect as dial, type Socket } from 'node:net';

/** Traffic between a service and PostgreSQL. */
export type Traffic = {
  /** Number of times that the service waited for an answer. */
  readonly roundTrips: number;
  readonly statements: number;
  /** Writing transactions, each of which waits for the disk. */
  readonly commits: number;
  /** Sent bytes. */
  readonly bytes: number;
};

/** A proxy before PostgreSQL that counts the traffic. */
export type CountingProxy = {
  /** The address of the database, through the proxy. */
  readonly url: string;
  /** Round trips since the last call of this or of `takeAll`. */
  takeRoundTrips(): number;
  takeTraffic(): Traffic;
  end(): Promise<void>;
};

const NO_TRAFFIC: Traffic = { roundTrips: 0, statements: 0, commits: 0, bytes: 0 };

/** Changes rows: by itself, in a common table expression, or by the function that applies a change. */
const WRITES = /^\s*(insert|update|delete)\b|\b(insert into|delete from)\b|\bupdate \w+ set\b|\bcommit_change_\d/i;

export async function countingProxy(url: string): Promise<CountingProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let traffic = NO_TRAFFIC;
  const countTraffic = (delta: Partial<Traffic>) => {
    const sum = (name: keyof Traffic) => traffic[name] + (delta[name] ?? 0);
    traffic = { roundTrips: sum('roundTrips'), statements: sum('statements'), commits: sum('commits'), bytes: sum('bytes') };
  };
  const server = createServer((client) => {
    const upstream = dial(Number(target.port || 5432), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
    }
    const readMessages = messages(new ConnectionReader(countTraffic));
    client.on('data', (bytes: Buffer) => {
      countTraffic({ bytes: bytes.length });
      readMessages(bytes);
    });
    client.pipe(upstream);
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxied = new URL(url);
  proxied.hostname = '127.0.0.1';
  proxied.port = String((server.address() as { port: number }).port);
  const takeAll = () => {
    const result = traffic;
    traffic = NO_TRAFFIC;
    return result;
  };
  return {
    url: proxied.href,
    takeRoundTrips: () => takeAll().roundTrips,
    takeTraffic: takeAll,
    async end() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Parses the messages of one connection (PostgreSQL manual, sections 55.2 and 55.7). */
class ConnectionReader {
  readonly #add: (delta: Partial<Traffic>) => void;
  /** Texts of prepared statements by name. */
  readonly #prepared = new Map<string, string>();
  #bound = '';
  #isOpen = false;
  #wrote = false;

  constructor(countTraffic: (delta: Partial<Traffic>) => void) {
    this.#add = countTraffic;
  }

  readMessages(type: string, body: Buffer): void {
    const text = (from: number) => body.toString('utf8', from, body.indexOf(0, from));
    if (type === 'P') this.#prepared.set(text(0), text(Buffer.byteLength(text(0)) + 1));
    else if (type === 'B') this.#bound = this.#prepared.get(text(Buffer.byteLength(text(0)) + 1)) ?? '';
    else if (type === 'E') this.#execute(this.#bound);
    else if (type === 'Q') this.#execute(text(0));
    // A client waits after these two messages.
    if (type === 'S' || type === 'Q') this.#add({ roundTrips: 1 });
  }

  #execute(text: string): void {
    this.#add({ statements: 1 });
    if (/^\s*(begin|start transaction)/i.test(text)) {
      this.#isOpen = true;
      this.#wrote = false;
    } else if (/^\s*(commit|end)\b/i.test(text)) {
      if (this.#isOpen && this.#wrote) this.#add({ commits: 1 });
      this.#isOpen = false;
    } else if (/^\s*rollback\s*;?$/i.test(text)) {
      this.#isOpen = false;
    } else if (WRITES.test(text)) {
      if (this.#isOpen) this.#wrote = true;
      else this.#add({ commits: 1 });
    }
  }
}

/** Passes each message of a client to the reader; the startup message has no type. */
function messages(reader: ConnectionReader): (bytes: Buffer) => void {
  let remainder: Buffer = Buffer.alloc(0);
  let hasStarted = false;
  return (bytes) => {
    remainder = Buffer.concat([remainder, bytes]);
    for (;;) {
      const head = hasStarted ? 1 : 0;
      if (remainder.length < head + 4) return;
      const length = head + remainder.readInt32BE(head);
      if (remainder.length < length) return;
      if (hasStarted) reader.readMessages(String.fromCharCode(remainder[0] ?? 0), remainder.subarray(head + 4, length));
      hasStarted = true;
      remainder = remainder.subarray(length);
    }
  };
}

/** A proxy before a server whose connections can be cut. */
export type CuttingProxy = {
  /** The address of the server, through the proxy. */
  readonly url: string;
  /** Closes all connections, and new ones until `restore`. */
  cut(): void;
  restore(): void;
  end(): Promise<void>;
};

export async function cuttingProxy(url: string): Promise<CuttingProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = dial(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxiedUrl = new URL(url);
  proxiedUrl.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const destroyAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: proxiedUrl.href,
    cut() {
      isCut = true;
      destroyAll();
    },
    restore() {
      isCut = false;
    },
    async end() {
      const closed = new Promise<unknown>((resolve) => server.close(resolve));
      destroyAll();
      await closed;
    },
  };
}

/** A proxy before a database that can stop forwarding without closing connections. */
export type HangingProxy = {
  /** The address of the database, through the proxy. */
  readonly url: string;
  /**
   * Stops forwarding on the open connections permanently. New ones are accepted and not answered until `forward`.
   * @param mode `answers`: data to the database is still forwarded.
   */
  hang(mode?: 'everything' | 'answers'): void;
  /** Drops all answers once the client has sent this text. */
  dropAnswersAfter(marker: string): void;
  /** Forwards new connections again. */
  forward(): void;
  end(): Promise<void>;
};

type ConnectionPair = { client: Socket; upstream: Socket | undefined; isDeaf: boolean; isDumb: boolean };

export async function hangingProxy(url: string): Promise<HangingProxy> {
  const target = new URL(url);
  const pairs = new Set<ConnectionPair>();
  let isHanging = false;
  let dropMarker: string | undefined;
  const hang: HangingProxy['hang'] = (mode = 'everything') => {
    isHanging = true;
    for (const pair of pairs) {
      pair.isDumb = true;
      if (mode === 'everything') pair.isDeaf = true;
    }
  };
  const server = createServer((client) => {
    const upstream = isHanging ? undefined : dial(Number(target.port || 5432), target.hostname);
    const pair: ConnectionPair = { client: client, upstream: upstream, isDeaf: isHanging, isDumb: isHanging };
    pairs.add(pair);
    for (const socket of [client, upstream]) socket?.on('error', () => {});
    client.on('data', (bytes) => {
      if (dropMarker !== undefined && bytes.includes(dropMarker)) hang('answers');
      if (!pair.isDeaf) upstream?.write(bytes);
    });
    upstream?.on('data', (bytes) => pair.isDumb || client.write(bytes));
    // The database does not notice that its client disconnected.
    client.on('close', () => pair.isDeaf || pair.isDumb || upstream?.destroy());
    upstream?.on('close', () => pair.isDumb || client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxiedUrl = new URL(url);
  proxiedUrl.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  return {
    url: proxiedUrl.href,
    hang,
    dropAnswersAfter(marker) {
      dropMarker = marker;
    },
    forward() {
      isHanging = false;
      dropMarker = undefined;
    },
    async end() {
      const closed = new Promise<unknown>((resolve) => server.close(resolve));
      for (const { client, upstream } of pairs) {
        client.destroy();
        upstream?.destroy();
      }
      await closed;
    },
  };
}
