import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { FollowWallets } from '../../application/oauth/follow-wallets.ts';
import { Store } from '../../application/ports/store.ts';
import { RemoteStatusLists } from '../../application/status-lists/remote-status-lists.ts';
import { StatusAllocator } from '../../application/status-lists/status-allocator.ts';
import { TenantConfigurations } from '../../application/tenant-cache/tenant-configurations.ts';
import { inBatches } from '../../bootstrap/jobs/jobs.ts';
import { obtain } from '../../bootstrap/wiring/wire.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { packEntries } from '../../domain/status-lists/bits.ts';
import { compressList } from '../support/compress-list.ts';
import { databases } from '../support/databases.ts';
import { createResource } from '../support/populated.ts';
import { openRaw } from '../support/postgres-server.ts';
import { makeJwt, now } from '../support/raw-wallet.ts';
import { createTenant, startTestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

/**
 * Measures the evaluation of a wallet provider's status list that many credentials follow, on PostgreSQL: `node
 * test/bench/followed-run.ts --credentials 10000000 --fallen 0,1000,100000 --revoked 0.02`.
 */
const { values } = parseArgs({
  options: {
    credentials: { type: 'string', default: '10000000' },
    /** Wallets that were revoked since the last pass, for each pass. */
    fallen: { type: 'string', default: '0,1000,100000' },
    /** Share of the wallets that were revoked long ago. */
    revoked: { type: 'string', default: '0.02' },
  },
});
const CREDENTIALS = Number(values.credentials);
const LIST = 'followed-list';
const TENANT = 'acme' as TenantId;
const CAPACITY = 2 ** Math.ceil(Math.log2(CREDENTIALS + 1));
const FILL = 500_000;

const seconds = (startTime: number) => ((performance.now() - startTime) / 1000).toFixed(1);
const megabytes = () => Math.round(process.memoryUsage.rss() / 2 ** 20);

const kind = databases().find(({ name }) => name === 'postgres');
const database = await kind?.open();
if (database === undefined) throw new Error('There is no PostgreSQL server.');
const provider = await WalletProvider.start();
const service = await startTestService({ DATABASE_URL: database.url });
const { container } = service.service;
const store = container.get(Store);
const sql = await openRaw(database.url);
try {
  const { token } = await createTenant(service, TENANT);
  const display = [{ name: 'Issuer', locale: 'en' }];
  await createResource(service, token, '/issuer/config', { display, ...provider.configuration() });
  const config = { format: 'dc+sd-jwt', display };
  await createResource(service, token, '/issuer/credentials', { id: 'card', config, statusManagement: true });
  await fill();
  const entries = new Map<number, number>();
  serve(entries);
  await revokeLongAgo(entries);
  for (const count of values.fallen.split(',').map(Number)) await pass(entries, count);
} finally {
  await sql.close();
  await service.close();
  await provider.close();
  await database.drop();
}

/** One batch of one credential for each wallet, and what it follows. */
async function fill(): Promise<void> {
  const configured = await obtain(container, TenantConfigurations).readStored(TENANT);
  if (configured === undefined) throw new Error('no tenant');
  const allocator = obtain(container, StatusAllocator);
  const { listId } = await allocator.allocate(configured, { id: 'card', keyChainId: null }, 1);
  const anchor = parseCertificate(Buffer.from(provider.root.certificate, 'base64'))?.hash ?? '';
  const statuses = [{ uri: `${provider.url}/status/1`, anchor, idx: 0, listId: LIST }];
  const follows = { batchId: 'first', sessionId: 'first' as SessionId, endsAt: null, statuses };
  await store.commit(TENANT, { follows }, new Date());
  const startedAt = performance.now();
  for (let firstIndex = 1; firstIndex < CREDENTIALS; firstIndex += FILL) {
    const lastIndex = Math.min(firstIndex + FILL, CREDENTIALS) - 1;
    await sql.run(
      `insert into issued_batches select '${TENANT}', md5('s' || g), md5('b' || g), 'card', 1, '${listId}', g % 100000, 0
       from generate_series(${firstIndex}, ${lastIndex}) g`,
    );
    await sql.run(
      `insert into followed_statuses (tenant_id, list_id, idx, batch_id, session_id, ends_at)
       select '${TENANT}', '${LIST}', g, md5('b' || g), md5('s' || g), 4102444800000 from generate_series(${firstIndex}, ${lastIndex}) g`,
    );
  }
  await sql.run('vacuum analyze followed_statuses');
  await sql.run('vacuum analyze issued_batches');
  const [size] = await sql.run(`select pg_total_relation_size('followed_statuses') / 1048576 as megabytes`);
  console.log(
    `${CREDENTIALS.toLocaleString('en')} credentials follow one list of ${CAPACITY.toLocaleString('en')} entries; filled in ${seconds(startedAt)} s, followed_statuses ${size?.['megabytes']} MB`,
  );
}

/** These credentials no longer follow a wallet. */
async function revokeLongAgo(entries: Map<number, number>): Promise<void> {
  const step = Math.round(1 / Number(values.revoked));
  for (let index = step; index < CREDENTIALS; index += step) entries.set(index, 1);
  await sql.run(`delete from followed_statuses where idx % ${step} = 0 and idx > 0`);
  await sql.run('vacuum analyze followed_statuses');
}

async function pass(entries: Map<number, number>, fallen: number): Promise<void> {
  for (let remaining = fallen; remaining > 0; ) {
    const index = 1 + Math.floor(Math.random() * (CREDENTIALS - 1));
    if (entries.has(index)) continue;
    entries.set(index, 1);
    remaining--;
  }
  await sql.run('update followed_lists set next_check_at = 0');
  obtain(container, RemoteStatusLists).clear(TENANT);
  const job = obtain(container, FollowWallets);
  const startedAt = performance.now();
  const memoryBefore = megabytes();
  let peak = 0;
  const budget = { milliseconds: 3_600_000, signal: new AbortController().signal };
  await inBatches(budget, async () => {
    const { mayBeMore } = await job.execute(new Date());
    peak = Math.max(peak, megabytes());
    return mayBeMore || (await store.maintenance.dueFollowedLists(new Date(), 1)).length > 0;
  });
  const took = seconds(startedAt);
  // The service runs its jobs as well, and may have done a part.
  const [{ left: remaining } = { left: -1 }] = await sql.run('select count(*) as left from followed_statuses');
  if (Number(remaining) !== CREDENTIALS - entries.size) throw new Error(`${remaining} credentials follow still`);
  console.log(
    `${entries.size.toLocaleString('en')} entries are revoked, ${fallen.toLocaleString('en')} of them since the last pass: all fell in ${took} s with the rests of the job; memory ${memoryBefore} MB before, ${peak} MB at most`,
  );
}

/** The current list for each request. */
function serve(entries: ReadonlyMap<number, number>): void {
  const answer = provider.answer.bind(provider);
  provider.answer = (path) => {
    if (path !== '/status/1') return answer(path);
    const allEntries = Array.from(entries, ([index, status]) => ({ index, status }));
    const [signer] = provider.statusSigner;
    if (signer === undefined) throw new Error('this run signs nothing');
    const header = { alg: 'ES256', typ: 'statuslist+jwt', x5c: [signer.certificate] };
    const list = { bits: 1, lst: compressList(packEntries(1, CAPACITY, allEntries)) };
    const claims = { sub: `${provider.url}/status/1`, iat: now(), exp: now() + 86_400, ttl: 3_600, status_list: list };
    return { status: 200, type: 'application/statuslist+jwt', body: makeJwt(signer, header, claims) };
  };
}
