import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { TenantReader } from '../../application/ports/repositories.ts';
import { StoreUnavailableError } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { aClient, addTenant, aSession, aUse, NOW } from '../contract/store/builders.ts';
import { sessionOpening, sessionRemoval, stepsOf } from '../contract/store/steps.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { type HangingProxy, hangingProxy } from '../support/proxies.ts';

const POOL = 3;
const TIMEOUT_SECONDS = 1;
/** The timeouts of a connection and of a statement, with a reserve for a busy machine. */
const BOUND_MS = 2 * TIMEOUT_SECONDS * 1000 + 3_000;

const openStore = (url: string) =>
  OrmStore.open(
    { url, poolSize: POOL, timeoutSeconds: TIMEOUT_SECONDS },
    new MasterCipher({ masterSecrets: ['a master secret of decent length'] }),
  );

const [postgres] = databases().filter(({ name }) => name === 'postgres');

/** Connections that stay open without traffic: only the service's own timeout ends them. */
describe('database that does not respond', () => {
  let database: TestDatabase | undefined;
  let proxy: HangingProxy;
  let store: OrmStore;
  let tenantId: TenantId;
  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
    proxy = await hangingProxy(database.url);
    store = await openStore(proxy.url);
  });
  beforeEach(async () => {
    tenantId = await addTenant(store);
  });
  afterEach(() => proxy.forward());
  after(async () => {
    await store?.close();
    await proxy?.end();
    await database?.drop();
  });

  const head = () => stepsOf(store, tenantId).state();
  /** Fills the pool with used connections. */
  const fillPool = () => Promise.all(Array.from({ length: POOL }, () => stepsOf(store, tenantId).commit({ uses: [] })));
  const addClient = () => store.forTenant(tenantId, ({ clients }) => clients.add(aClient(tenantId)), { by: 'system' });
  const clientIds = () => store.forTenant(tenantId, async ({ clients }) => (await clients.list()).map(({ clientId }) => clientId));
  const unavailable = async (work: Promise<unknown>) => {
    const start = performance.now();
    const outcome = await work.then(
      () => 'done',
      (error: unknown) => error,
    );
    expect(outcome).to.be.instanceOf(StoreUnavailableError);
    expect(performance.now() - start).to.be.below(BOUND_MS);
  };
  /** Expects that callers are served on new connections once the database is reachable again. */
  const expectServing = async () => {
    proxy.forward();
    const start = performance.now();
    for (let n = 0; n < POOL * 2; n++) expect((await head())?.id).to.equal(tenantId);
    await addClient();
    expect(performance.now() - start).to.be.below(BOUND_MS);
  };

  it('fails a single statement at the timeout, and works again once it responds', async () => {
    await head();
    proxy.hang();
    await unavailable(head());
    await expectServing();
  });

  it('fails the running statement of every pooled connection, and the requests that wait for a connection', async () => {
    await fillPool();
    proxy.hang();
    await Promise.all(Array.from({ length: POOL * 5 }, () => unavailable(stepsOf(store, tenantId).commit({ uses: [] }))));
    await expectServing();
  });

  it('fails new statements while it does not respond', async () => {
    await fillPool();
    proxy.hang();
    for (let n = 0; n < 2; n++) {
      await Promise.all([unavailable(stepsOf(store, tenantId).commit({ uses: [] })), unavailable(addClient())]);
    }
    await expectServing();
  });

  it('fails a unit of work before its first statement', async () => {
    await fillPool();
    proxy.hang();
    await Promise.all(Array.from({ length: POOL + 1 }, () => unavailable(addClient())));
    await expectServing();
  });

  it('fails a unit of work between two statements, and its locks are released', async () => {
    const client = aClient(tenantId);
    const work = store.forTenant(
      tenantId,
      async ({ clients }) => {
        await clients.add(client);
        proxy.hang();
        await clients.get(client.clientId);
      },
      { by: 'system', exclusive: true },
    );
    await unavailable(work);
    await expectServing();
    expect(await clientIds()).to.not.include(client.clientId);
  });

  it('fails a unit of work whose commit it receives and does not confirm', async () => {
    const client = aClient(tenantId);
    const work = store.forTenant(
      tenantId,
      async ({ clients }) => {
        await clients.add(client);
        proxy.dropAnswersAfter('commit');
      },
      { by: 'system' },
    );
    await unavailable(work);
    await expectServing();
    expect(await clientIds()).to.include(client.clientId);
  });

  it('fails queued calls of the same tenant at the same time', async () => {
    const sessions = Array.from({ length: 10 }, () => aSession(tenantId));
    for (const session of sessions) await stepsOf(store, tenantId).commit(sessionOpening(session));
    proxy.hang();
    await Promise.all(sessions.map(({ id }) => unavailable(stepsOf(store, tenantId).commit(sessionRemoval(id, 'system')))));
    await expectServing();
  });

  it('loses unused connections', async () => {
    await fillPool();
    proxy.hang();
    await new Promise((resolve) => setTimeout(resolve, (TIMEOUT_SECONDS + 1.5) * 1000));
    await expectServing();
  });

  it('does not affect a statement that is answered in time', async () => {
    await rawSql(database?.url ?? '', async (run) => {
      // The lock is held for less than the statement timeout.
      const blockingQuery = run(`do $$ begin lock table used_values in exclusive mode; perform pg_sleep(0.7); end $$`);
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(await stepsOf(store, tenantId).commit({ uses: [aUse()] })).to.include({ done: true });
      await blockingQuery;
    });
  });

  it('is not assumed by a process that was paused itself', async () => {
    // The proxy is paused with this process.
    const ownStore = await openStore(database?.url ?? '');
    const sendCommits = () => Promise.all(Array.from({ length: POOL }, () => stepsOf(ownStore, tenantId).commit({ uses: [] })));
    await sendCommits();
    const pendingCommits = sendCommits();
    await new Promise((resolve) => setImmediate(resolve));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, (TIMEOUT_SECONDS + 1.5) * 1000);
    expect(await pendingCommits).to.deep.equal([{ done: true }, { done: true }, { done: true }]);
    await ownStore.close();
  });

  it('cancels a statement that exceeds the timeout, and keeps the connection', async () => {
    await rawSql(database?.url ?? '', async (run) => {
      const blockingQuery = run(`do $$ begin lock table used_values in exclusive mode; perform pg_sleep(2); end $$`);
      await new Promise((resolve) => setTimeout(resolve, 100));
      await unavailable(stepsOf(store, tenantId).commit({ uses: [aUse()] }));
      expect(await stepsOf(store, tenantId).grantByCode('none')).to.deep.include({ grant: undefined });
      await blockingQuery;
    });
  });

  it('rejects a transaction that continues too late, after its locks were released', async () => {
    const work = store.forTenant(
      tenantId,
      async ({ clients }) => {
        await clients.add(aClient(tenantId));
        await new Promise((resolve) => setTimeout(resolve, (TIMEOUT_SECONDS + 0.7) * 1000));
        await clients.list();
      },
      { by: 'system', exclusive: true },
    );
    const delayedCall = new Promise((resolve) => setTimeout(resolve, 400)).then(() => addClient());
    await Promise.all([unavailable(work), delayedCall]);
    await expectServing();
  });

  it('does not make calls wait for a connection longer than for an answer', async () => {
    const endTimes: (() => void)[] = [];
    const holdConnection = async ({ clients }: TenantReader) => {
      await clients.list();
      await new Promise<void>((resolve) => endTimes.push(resolve));
    };
    const blockingQuery = Array.from({ length: POOL }, () => store.forTenant(tenantId, holdConnection, { by: 'system' }));
    while (endTimes.length < POOL) await new Promise((resolve) => setTimeout(resolve, 5));
    const start = performance.now();
    const waitingReads = Promise.all(Array.from({ length: 10 }, () => unavailable(head())));
    const furtherWrites = Promise.all(Array.from({ length: 3 }, () => unavailable(addClient())));
    await Promise.all([waitingReads, furtherWrites]);
    expect(performance.now() - start).to.be.below(TIMEOUT_SECONDS * 1000 + 700);
    for (const end of endTimes) end();
    await Promise.allSettled(blockingQuery);
    await expectServing();
  });

  it('does not delay the stop of the service beyond the same timeout', async () => {
    const ownStore = await openStore(proxy.url);
    await Promise.all(Array.from({ length: POOL }, () => stepsOf(ownStore, tenantId).commit({ uses: [] })));
    proxy.hang();
    const start = performance.now();
    const pending = unavailable(stepsOf(ownStore, tenantId).fetchSession('none' as never, NOW));
    await new Promise((resolve) => setImmediate(resolve));
    await ownStore.close();
    await pending;
    expect(performance.now() - start).to.be.below(BOUND_MS);
  });
});
