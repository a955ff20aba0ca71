import { copyFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import sinon from 'sinon';
import { LocalKms } from '../../adapters/kms/local/local-kms.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Store } from '../../application/ports/store.ts';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { freePort } from '../demo/process.ts';
import { databases, openRaw } from './databases.ts';
import { type Scrapes, sumSamples } from './metrics.ts';
import { trustListBody } from './populated.ts';
import { Shop } from './present.ts';
import { RawWallet } from './raw-wallet.ts';
import { waitUntil } from './standby.ts';
import { createTenant, startTestService, type TestService } from './test-service.ts';
import { WorkerService } from './worker-service.ts';

export const METRICS_TOKEN = 'a-token-of-whoever-reads-metrics';

export async function scrape(address: string): Promise<string> {
  const answer = await fetch(`${address}/metrics`, { headers: { Authorization: `Bearer ${METRICS_TOKEN}` } });
  if (answer.status !== 200) throw new Error(`no metrics: ${answer.status}`);
  return answer.text();
}

/** Metrics are refreshed by a health request, and periodically in the background. */
export async function scrapeHealth(service: TestService): Promise<string> {
  await service.call('GET', '/health');
  return scrape(service.address);
}

export const startMeasuredService = (environment: Readonly<Record<string, string>> = {}) =>
  startTestService({ METRICS_TOKEN, ...environment });

/** Scrapes the metrics of a fresh service before and after a cause. */
export async function scrapeAround(
  cause: (service: TestService) => Promise<unknown>,
  environment: Readonly<Record<string, string>> = {},
): Promise<Scrapes> {
  const service = await startMeasuredService(environment);
  try {
    const before = await scrapeHealth(service);
    await cause(service);
    return { before, after: await scrapeHealth(service), at: Date.now() / 1000 };
  } finally {
    sinon.restore();
    await service.close();
  }
}

/** Scrapes the metrics of a fresh shop, which presents credentials, before and after a cause. */
export async function scrapeAroundShop(
  cause: (shop: Shop) => Promise<unknown>,
  environment: Readonly<Record<string, string>> = {},
): Promise<Scrapes> {
  const shop = await Shop.open({}, () => startMeasuredService(environment));
  try {
    const before = await scrapeHealth(shop.service);
    await cause(shop);
    return { before, after: await scrapeHealth(shop.service), at: Date.now() / 1000 };
  } finally {
    sinon.restore();
    await shop.close();
  }
}

/** Scrapes a service that is misconfigured from its start. */
export async function scrapeMisconfigured(environment: Readonly<Record<string, string>>): Promise<Scrapes> {
  return { ...(await scrapeAround(async () => {}, environment)), before: '' };
}

const repeat = (count: number, work: () => Promise<unknown>) => Promise.all(Array.from({ length: count }, work));
const offer = (shop: Shop, extra: object = {}) =>
  shop.call(
    'POST',
    '/issuer/offer',
    { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'], ...extra },
    shop.acme.token,
  );

export const fullSessionQuota = () =>
  scrapeAroundShop(
    async (shop) => {
      const claims = { name: 'x'.repeat(100_000) };
      await repeat(12, () => offer(shop, { credentialClaims: { card: { type: 'inline', claims } } }));
    },
    { QUOTA_SESSION_BYTES: '1048576' },
  );

export async function scrapeCrashed(): Promise<Scrapes> {
  const service = await startMeasuredService();
  const before = await scrapeHealth(service);
  await service.close();
  const after = await scrape(service.address).catch(() => undefined);
  return { before, after, at: Date.now() / 1000 };
}

/** Scrapes a service while a table lock delays its requests. */
async function whileLocked(environment: Readonly<Record<string, string>>, requests: number): Promise<Scrapes> {
  const [, postgres] = databases();
  const database = await postgres?.open();
  if (database === undefined) throw new Error('PostgreSQL is missing');
  const shop = await Shop.open({}, () => startMeasuredService({ DATABASE_URL: database.url, ...environment }));
  const { run, close } = await openRaw(database.url);
  try {
    const before = await scrapeHealth(shop.service);
    await run('begin; lock table sessions in access exclusive mode; select pg_sleep(0)');
    const offers = repeat(requests, () => offer(shop));
    await setTimeout(500);
    const after = await scrape(shop.service.address);
    await run('rollback');
    await offers;
    return { before, after, at: Date.now() / 1000 };
  } finally {
    await close();
    await shop.close();
    await database.drop();
  }
}

export const exhaustedPool = () => whileLocked({ DATABASE_POOL: '2', REQUESTS_AT_ONCE: '10' }, 10);
export const longQueue = () => whileLocked({ DATABASE_POOL: '2', REQUESTS_AT_ONCE: '4' }, 60);

export const rejectedWrites = () =>
  scrapeAroundShop(async (shop) => {
    const store = shop.service.service.container.get(Store);
    await store.maintenance.time();
    const { StoreUnwritableError } = await import('../../application/ports/store.ts');
    sinon.stub(store, 'ping').rejects(new StoreUnwritableError('read-only'));
    sinon.stub(store, 'commit').rejects(new StoreUnwritableError('read-only'));
    await repeat(20, () => offer(shop));
  });

export const unexpectedErrors = () =>
  scrapeAroundShop(async (shop) => {
    sinon.stub(shop.service.service.container.get(Store), 'commit').rejects(new TypeError('unforeseen'));
    await offer(shop);
  });

export const slowBackend = () =>
  scrapeAroundShop(async (shop) => {
    const claimsWebhook = { url: `${shop.backend.url}/slow` };
    const json = { id: 'slow', config: { format: 'dc+sd-jwt' }, claimsWebhook };
    await shop.call('POST', '/issuer/credentials', json, shop.acme.token);
    shop.backend.on('/slow', (response) => {
      globalThis.setTimeout(() => response.end(JSON.stringify({ slow: { name: 'Ada' } })), 1_500);
    });
    const offerBody = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['slow'] };
    await repeat(5, async () => {
      const { body } = await shop.call('POST', '/issuer/offer', offerBody, shop.acme.token);
      const wallet = new RawWallet(shop.service, 'acme');
      await wallet.request(await wallet.accessToken(body.uri), 'slow');
    });
  });

export const manyConnections = () =>
  scrapeAround(
    async (service) => {
      const { port } = new URL(service.address);
      const open = (): Promise<Socket> =>
        new Promise((resolve) => {
          const socket = connect(Number(port), '127.0.0.1', () => resolve(socket));
        });
      const sockets = await Promise.all(Array.from({ length: 17 }, open));
      await setTimeout(50);
      globalThis.setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, 1_000);
    },
    { MAX_CONNECTIONS: '20' },
  );

/** Scrapes until other tests no longer occupy the processor. Each scrape begins a new measurement. */
export async function scrapeIdle(service: TestService): Promise<string> {
  for (let attempts = 50; ; attempts--) {
    await setTimeout(200);
    const text = await scrape(service.address);
    if (attempts === 0 || sumSamples(text, 'nodejs_eventloop_lag_p99_seconds') < 0.1) return text;
  }
}

export async function blockedThread(): Promise<Scrapes> {
  let idleScrape = '';
  const result = await scrapeAround(async (service) => {
    idleScrape = await scrapeIdle(service);
    for (let index = 0; index < 8; index++) {
      const endTime = performance.now() + 300;
      while (performance.now() < endTime);
      await setImmediate();
    }
  });
  return { ...result, before: idleScrape };
}

export const failingSignatures = () =>
  scrapeAroundShop(async (shop) => {
    const { body } = await offer(shop);
    sinon.stub(LocalKms.prototype, 'sign').throws(new Error('the key does not exist'));
    const wallet = new RawWallet(shop.service, 'acme');
    await wallet.accessToken(body.uri).catch(() => {});
  });

export const wrongClock = () =>
  scrapeAround(async ({ service }) => {
    const clock = service.container.get(Clock);
    sinon.stub(clock, 'now').callsFake(() => new Date(Date.now() - 300_000));
  });

export const lockedList = () =>
  scrapeAround(async ({ service }) => {
    // Other tests prove why a list is held; the count from the database is cached for a minute.
    const { maintenance } = service.container.get(Store);
    sinon.stub(maintenance, 'countHeldTrustLists').resolves(1);
    service.container
      .get((await import('../../application/ports/event-bus.ts')).EventBus)
      .publish({ type: 'cache', lists: 'trust-lists' } as never);
  });

export const failingBackend = () =>
  scrapeAroundShop(async (shop) => {
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
    shop.backend.on('/told', (response) => response.writeHead(503).end());
    const result = await shop.issue();
    for (let index = 0; index < 3; index++) await shop.present(await shop.requestPresentation('told'), result);
  });

export const closedPort = () => freePort(createServer);

/** Scrapes a service that starts on a database that `prepare` filled and `change` altered. */
async function scrapeExistingDatabase(
  prepare: (shop: Shop) => Promise<unknown>,
  change: (run: (text: string) => Promise<unknown>) => Promise<unknown> = async () => {},
): Promise<Scrapes> {
  const [sqlite] = databases();
  const database = await sqlite?.open();
  if (database === undefined) throw new Error('SQLite is missing');
  const shop = await Shop.open({}, () => startTestService({ DATABASE_URL: database.url }));
  await prepare(shop);
  await shop.close();
  const { run, close } = await openRaw(database.url);
  await change(run);
  await close();
  const service = await startMeasuredService({ DATABASE_URL: database.url });
  try {
    let after = '';
    for (let attempts = 100; attempts > 0 && !/task="measure"/.test(after); attempts--) {
      await setTimeout(50);
      after = await scrape(service.address);
    }
    return { before: '', after, at: Date.now() / 1000 };
  } finally {
    await service.close();
    await database.drop();
  }
}

const expectSuccess = ({ status, text }: { readonly status: number; readonly text: string }) => {
  if (status >= 300) throw new Error(`${status} ${text}`);
};

export const expiringCertificate = () =>
  scrapeExistingDatabase(async (shop) => {
    const json = { usageType: 'statusList', certValidityDays: 5, rotationIntervalDays: 5 };
    expectSuccess(await shop.call('POST', '/key-chain', json));
  });

export const oldTrustList = () =>
  scrapeExistingDatabase(
    async (shop) => {
      expectSuccess(await shop.call('POST', '/trust-list', trustListBody('issuers', 'signing'), shop.acme.token));
    },
    (run) => run(`update trust_lists set next_update = ${Date.now() + 3 * 86_400_000}`),
  );

export const oldRegistration = () =>
  scrapeExistingDatabase(async (shop) => {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const exp = Math.floor(Date.now() / 1000) + 10 * 86_400;
    const jwt = `${encode({ alg: 'ES256', typ: 'rc-rp+jwt' })}.${encode({ exp })}.${'A'.repeat(86)}`;
    await shop.service.service.container.get(Store).forTenant(
      'shop' as TenantId,
      async ({ presentationConfigurations }) => {
        const configuration = await presentationConfigurations.get('check');
        await presentationConfigurations.put({ ...configuration, registrationCert: { jwt } });
      },
      { by: SYSTEM, exclusive: true },
    );
  });

export const failingJob = () =>
  scrapeExistingDatabase(
    async () => {},
    (run) => run('drop table status_lists'),
  );

/** A backup replaces the SQLite file while the service runs. */
export async function restoredBackup(): Promise<Scrapes> {
  const [sqlite] = databases();
  const database = await sqlite?.open();
  if (sqlite === undefined || database === undefined) throw new Error('SQLite is missing');
  await (await startTestService({ DATABASE_URL: database.url })).close();
  const backup = await sqlite.backUp(database);
  const service = await startMeasuredService({ DATABASE_URL: database.url });
  try {
    await createTenant(service, 'forgotten');
    const before = await scrapeHealth(service);
    const file = database.url.slice('sqlite:'.length);
    for (const path of [file, `${file}-wal`, `${file}-shm`]) rmSync(path, { force: true });
    copyFileSync(backup.url.slice('sqlite:'.length), file);
    await waitUntil(async () => (await scrapeHealth(service)).includes('{part="history"} 0'));
    if ((await service.call('GET', '/health/ready')).status !== 200) throw new Error('it is not ready');
    return { before, after: await scrapeHealth(service), at: Date.now() / 1000 };
  } finally {
    await service.close();
    for (const each of [database, backup]) await each.drop();
  }
}

export async function stoppedJobs(): Promise<Scrapes> {
  const { after, at } = await scrapeExistingDatabase(async () => {});
  return { before: after ?? '', after, at, hasStoppedJobs: true };
}

export async function restarts(): Promise<Scrapes> {
  const [firstScrape, secondScrape] = [await scrapeNewProcess(), await scrapeNewProcess()];
  return { before: firstScrape, after: secondScrape, at: Date.now() / 1000, alternatesStartTime: true };
}

export async function fullHeap(): Promise<Scrapes> {
  const result = new URL('./held-memory.ts', import.meta.url).href;
  const after = await scrapeNewProcess({ NODE_OPTIONS: `--max-old-space-size=100 --import=${result}` });
  return { before: '', after, at: Date.now() / 1000 };
}

/** Scrapes a separate process right after its start. */
async function scrapeNewProcess(environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const service = await WorkerService.start({ WORKERS: '1', LOG_LEVEL: 'info', METRICS_TOKEN, ...environment });
  try {
    await setTimeout(600);
    return await scrape(service.address);
  } finally {
    await service.stop();
  }
}
