import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { Store } from '../../application/ports/store.ts';
import { databases } from '../support/databases.ts';
import { countWork, type WorkCounter, type WorkCounts } from '../support/measurements.ts';
import { type CountingProxy, countingProxy, type Traffic } from '../support/proxies.ts';
import { startTestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';
import { Flows } from './flows.ts';
import { type Around, HttpClient } from './http-client.ts';
import type { ScenarioName } from './scenarios.ts';
import { freePort, ROOT_CLIENT } from './service-process.ts';
import { setUpTenant } from './tenant-setup.ts';
import { KeyRing } from './wallet-crypto.ts';
import { FORMATS } from './world.ts';

type Counts = Traffic & WorkCounts;

/** Work of the service for each request of a flow and `afterwards`; zero values are omitted. */
export type FlowCounts = Readonly<Record<string, Partial<Counts>>>;
export type AllCounts = Readonly<Record<string, FlowCounts>>;

const FILE = new URL('counts.json', import.meta.url);
const ISSUING: readonly ScenarioName[] = ['issue', 'issue-status', 'issue-mdoc', 'batch', 'code'];
const OTHERS: readonly ScenarioName[] = ['verify', 'verify-mdoc', 'session', 'status-list', 'revoke'];
const AFTERWARDS = 'afterwards';
/** Repetitions until configurations are cached, statements are prepared and status list entries are leased. */
const WARM_UP = 3;
/** Jobs work beside, and some entries are leased for many, so the least of several rounds counts. */
const ROUNDS = 3;
const KEYS = 512;
/** A request has ended once no statement was sent to the database for this long. */
const QUIET_MS = 5;
/** Buffered writes are complete after this time. */
const LATE_MS = 250;

/** Counts all flows on a fresh PostgreSQL database. @returns undefined when there is none here. */
export async function countFlows(): Promise<AllCounts | undefined> {
  const database = await databases()
    .find(({ name }) => name === 'postgres')
    ?.open();
  if (database === undefined) return undefined;
  const proxy = await countingProxy(database.url);
  const provider = await WalletProvider.start();
  const port = await freePort();
  const start = () =>
    startTestService({
      DATABASE_URL: proxy.url,
      PORT: String(port),
      PUBLIC_URL: `http://localhost:${port}`,
      AUTH_CLIENT_ID: ROOT_CLIENT.id,
      AUTH_CLIENT_SECRET: ROOT_CLIENT.secret,
      RATE_LIMIT_OFFER: '0',
    });
  let service = await start();
  const work = countWork();
  try {
    const flush = async () => {
      const store = service.service.container.get(Store);
      if (store instanceof OrmStore) await store.sessionBytes?.flush();
    };
    const counter = new Counter(proxy, work, flush);
    const world = await setUpTenant(service.address, provider);
    const http = new HttpClient(service.address, 1, counter.around);
    const flows = new Flows(world, new KeyRing(KEYS), http);
    for (const format of FORMATS) {
      while (flows.held[format].all.length < WARM_UP + ROUNDS) await flows.stockUp(format);
    }
    const allCounts: [string, FlowCounts][] = [];
    for (const name of ISSUING) allCounts.push([name, await countFlow(name, flows, counter)]);
    // A verifier is seldom the issuer: it has not seen the keys of the wallets yet.
    await service.close();
    service = await start();
    for (const name of OTHERS) allCounts.push([name, await countFlow(name, flows, counter)]);
    await http.close();
    return Object.fromEntries(allCounts);
  } finally {
    work.end();
    await service.close();
    await provider.close();
    await proxy.end();
    await database.drop();
  }
}

async function countFlow(name: ScenarioName, flows: Flows, counter: Counter): Promise<FlowCounts> {
  const flow = flows.flow(name);
  flows.rewind();
  if (name === 'revoke') {
    const heldCredentials = flows.held['dc+sd-jwt'].all;
    flows.statuses.addRevocable(heldCredentials.map(({ session }) => ({ session, listUri: '' })));
  }
  const runs: Readonly<Record<string, Counts>>[] = [];
  for (let run = 0; run < WARM_UP; run++) await counter.ignore(() => flow(0));
  while (runs.length < ROUNDS) runs.push(await counter.count(() => flow(0)));
  const [firstRun = {}] = runs;
  return Object.fromEntries(
    Object.keys(firstRun).map((step) => {
      const counts = leastCounts(runs.map((run) => run[step]));
      return [step, Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))];
    }),
  );
}

function leastCounts(samples: readonly (Counts | undefined)[]): Counts {
  const leastOf = (name: keyof Counts) => Math.min(...samples.map((counts) => counts?.[name] ?? Number.POSITIVE_INFINITY));
  return {
    roundTrips: leastOf('roundTrips'),
    statements: leastOf('statements'),
    commits: leastOf('commits'),
    bytes: leastOf('bytes'),
    signed: leastOf('signed'),
    verified: leastOf('verified'),
    imported: leastOf('imported'),
    called: leastOf('called'),
  };
}

/** Ascribes what is counted to the request that was under way. */
class Counter {
  readonly #proxy: CountingProxy;
  readonly #work: WorkCounter;
  readonly #flush: () => Promise<void>;
  #steps: [string, Counts][] = [];

  /** @param flush writes what the service gathers for a second and writes for all requests at once. */
  constructor(proxy: CountingProxy, work: WorkCounter, flush: () => Promise<void>) {
    this.#proxy = proxy;
    this.#work = work;
    this.#flush = flush;
  }

  readonly around: Around = async (step, send) => {
    await this.#flush();
    this.#take();
    const answer = await send();
    this.#steps.push([stepName(step), await this.#settled(QUIET_MS)]);
    return answer;
  };

  ignore(flow: () => Promise<void>): Promise<void> {
    return this.#work.uncounted(flow);
  }

  async count(flow: () => Promise<void>): Promise<Readonly<Record<string, Counts>>> {
    this.#steps = [];
    await this.#work.uncounted(flow);
    this.#steps.push([AFTERWARDS, await this.#settled(LATE_MS)]);
    return Object.fromEntries(this.#steps);
  }

  #take(): Counts {
    return { ...this.#proxy.takeTraffic(), ...this.#work.takeCounts() };
  }

  async #settled(quietMs: number): Promise<Counts> {
    let sum = this.#take();
    for (;;) {
      await pause(quietMs);
      const delta = this.#take();
      if (delta.bytes === 0) return sum;
      sum = addCounts(sum, delta);
    }
  }
}

function addCounts(left: Counts, right: Counts): Counts {
  const names = Object.keys(left) as (keyof Counts)[];
  return Object.fromEntries(names.map((name) => [name, left[name] + right[name]])) as Counts;
}

/** Without values that differ from run to run: `GET /session/:id`. */
function stepName(step: string): string {
  const [path = ''] = step.split('?', 1);
  return path.replaceAll(/\/[\w-]{20,}/g, '/:id');
}

export function readCounts(): AllCounts {
  return JSON.parse(readFileSync(FILE, 'utf8')) as AllCounts;
}

export function writeCounts(allCounts: AllCounts): void {
  writeFileSync(FILE, `${JSON.stringify(allCounts, null, 2)}\n`);
}
