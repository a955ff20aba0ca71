import { copyFileSync, rmSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Store } from '../../application/ports/store.ts';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { METRICS_TOKEN, measured, scrape, scrapeHealth } from './alert-causes.ts';
import { databases, openRaw } from './databases.ts';
import { trustListBody } from './populated.ts';
import { Shop } from './present.ts';
import type { Scrapes } from './promtool.ts';
import { until } from './standby.ts';
import { createTenant, startTestService } from './test-service.ts';
import { WorkerService } from './worker-service.ts';

/** A database from before, as `prepare` left it, in which somebody then did something. */
async function fromBefore(
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
  const service = await measured({ DATABASE_URL: database.url });
  try {
    let after = '';
    for (let left = 100; left > 0 && !/task="measure"/.test(after); left--) {
      await setTimeout(50);
      after = await scrape(service.address);
    }
    return { before: '', after, at: Date.now() / 1000 };
  } finally {
    await service.close();
    await database.drop();
  }
}

const succeeds = ({ status, text }: { readonly status: number; readonly text: string }) => {
  if (status >= 300) throw new Error(`${status} ${text}`);
};

export const shortCertificate = () =>
  fromBefore(async (shop) => {
    const json = { usageType: 'statusList', certValidityDays: 5, rotationIntervalDays: 5 };
    succeeds(await shop.call('POST', '/key-chain', json));
  });

export const oldTrustList = () =>
  fromBefore(
    async (shop) => {
      succeeds(await shop.call('POST', '/trust-list', trustListBody('issuers', 'signing'), shop.acme.token));
    },
    (run) => run(`update trust_lists set next_update = ${Date.now() + 3 * 86_400_000}`),
  );

export const oldRegistration = () =>
  fromBefore(async (shop) => {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const exp = Math.floor(Date.now() / 1000) + 10 * 86_400;
    const jwt = `${encode({ alg: 'ES256', typ: 'rc-rp+jwt' })}.${encode({ exp })}.${'A'.repeat(86)}`;
    await shop.service.service.container.get(Store).forTenant(
      'shop' as TenantId,
      async ({ presentationConfigurations }) => {
        const configuration = await presentationConfigurations.get('check');
        await presentationConfigurations.put({ ...configuration, registrationCert: { jwt } });
      },
      { by: SYSTEM, alone: true },
    );
  });

export const failingJob = () =>
  fromBefore(
    async () => {},
    (run) => run('drop table status_lists'),
  );

/** A backup takes the place of the file of SQLite while the service runs. */
export async function rewound(): Promise<Scrapes> {
  const [sqlite] = databases();
  const database = await sqlite?.open();
  if (sqlite === undefined || database === undefined) throw new Error('SQLite is missing');
  await (await startTestService({ DATABASE_URL: database.url })).close();
  const backup = await sqlite.backUp(database);
  const service = await measured({ DATABASE_URL: database.url });
  try {
    await createTenant(service, 'forgotten');
    const before = await scrapeHealth(service);
    const file = database.url.slice('sqlite:'.length);
    for (const path of [file, `${file}-wal`, `${file}-shm`]) rmSync(path, { force: true });
    copyFileSync(backup.url.slice('sqlite:'.length), file);
    await until(async () => (await scrapeHealth(service)).includes('{part="history"} 0'));
    if ((await service.call('GET', '/health/ready')).status !== 200) throw new Error('it is not ready');
    return { before, after: await scrapeHealth(service), at: Date.now() / 1000 };
  } finally {
    await service.close();
    for (const each of [database, backup]) await each.drop();
  }
}

export async function standingJobs(): Promise<Scrapes> {
  const { after, at } = await fromBefore(async () => {});
  return { before: after ?? '', after, at, stands: true };
}

export async function restarts(): Promise<Scrapes> {
  const [first, second] = [await startedAlone(), await startedAlone()];
  return { before: first, after: second, at: Date.now() / 1000, flaps: true };
}

export async function fullHeap(): Promise<Scrapes> {
  const held = new URL('./held-memory.ts', import.meta.url).href;
  const after = await startedAlone({ NODE_OPTIONS: `--max-old-space-size=100 --import=${held}` });
  return { before: '', after, at: Date.now() / 1000 };
}

/** What a process of its own measured at its start. */
async function startedAlone(environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const service = await WorkerService.start({
    WORKERS: '1',
    LOG_LEVEL: 'info',
    METRICS_TOKEN,
    ...environment,
  });
  try {
    await setTimeout(600);
    return await scrape(service.address);
  } finally {
    await service.stop();
  }
}
