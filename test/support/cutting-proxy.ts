import { createServer, connect as dial, type Socket } from 'node:net';

/** What stands between a service and a server, and can be cut like a cable. */
export type CuttingProxy = {
  /** The address of the server, through the proxy. */
  readonly url: string;
  /** Ends all connections; new ones end at once until `mend`. */
  cut(): void;
  mend(): void;
  end(): Promise<void>;
};

export async function cuttingProxy(url: string): Promise<CuttingProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = dial(Number(target.port), target.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const through = new URL(url);
  through.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const destroyAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: through.href,
    cut() {
      isCut = true;
      destroyAll();
    },
    mend() {
      isCut = false;
    },
    async end() {
      const closed = new Promise<unknown>((resolve) => server.close(resolve));
      destroyAll();
      await closed;
    },
  };
}
