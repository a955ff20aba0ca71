import { createServer, connect as dial, type Socket } from 'node:net';

/** What stands between a service and its database, and can go silent without closing anything. */
export type HangingProxy = {
  /** The address of the database, through the proxy. */
  readonly url: string;
  /**
   * From now on nothing passes on the connections that are there, for ever, as if somebody between had forgotten them. New
   * ones are taken in and not answered until `forward`.
   * @param what `answers`: what is said to the database still arrives there.
   */
  hang(what?: 'everything' | 'answers'): void;
  /** Loses the answers from the moment on at which the database is told this. */
  loseAnswersTo(words: string): void;
  /** New connections are passed on again. */
  forward(): void;
  end(): Promise<void>;
};

type Pair = { near: Socket; far: Socket | undefined; isDeaf: boolean; isDumb: boolean };

export async function hangingProxy(url: string): Promise<HangingProxy> {
  const target = new URL(url);
  const pairs = new Set<Pair>();
  let isHanging = false;
  let lastWords: string | undefined;
  const hang: HangingProxy['hang'] = (what = 'everything') => {
    isHanging = true;
    for (const pair of pairs) {
      pair.isDumb = true;
      if (what === 'everything') pair.isDeaf = true;
    }
  };
  const server = createServer((near) => {
    const far = isHanging ? undefined : dial(Number(target.port || 5432), target.hostname);
    const pair: Pair = { near, far, isDeaf: isHanging, isDumb: isHanging };
    pairs.add(pair);
    for (const socket of [near, far]) socket?.on('error', () => {});
    near.on('data', (bytes) => {
      if (lastWords !== undefined && bytes.includes(lastWords)) hang('answers');
      if (!pair.isDeaf) far?.write(bytes);
    });
    far?.on('data', (bytes) => pair.isDumb || near.write(bytes));
    // The database does not learn that its caller has gone.
    near.on('close', () => pair.isDeaf || pair.isDumb || far?.destroy());
    far?.on('close', () => pair.isDumb || near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const through = new URL(url);
  through.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  return {
    url: through.href,
    hang,
    loseAnswersTo(words) {
      lastWords = words;
    },
    forward() {
      isHanging = false;
      lastWords = undefined;
    },
    async end() {
      const closed = new Promise<unknown>((resolve) => server.close(resolve));
      for (const { near, far } of pairs) {
        near.destroy();
        far?.destroy();
      }
      await closed;
    },
  };
}
