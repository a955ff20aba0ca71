import { createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import sinon from 'sinon';
import { sqliteDriver } from '../../adapters/persistence/drivers.ts';
import { StoreUnavailableError } from '../../application/ports/store.ts';
import { PresentationVerifier } from '../../application/verification/presentation-verifier.ts';
import { freePort } from '../demo/process.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { openRaw } from '../support/postgres-server.ts';
import { present, Shop } from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

/** The result of the write check is cached for a second. */
const CACHE_MS = 1_100;

/** A database that can be made read-only while the service runs. */
type Lockable = { lock(): Promise<void>; unlock(): Promise<void>; end(): void };

type Native = { readonly open: boolean; pragma(text: string): unknown };

/** Makes the open connection read-only, as on a read-only file system. */
function readOnlyConnection(): Lockable {
  const spy = sinon.spy(sqliteDriver().prototype as Native, 'pragma');
  const setMode = async (mode: string) => {
    for (const native of new Set(spy.thisValues as Native[])) if (native.open) native.pragma(`query_only = ${mode}`);
  };
  return { lock: () => setMode('on'), unlock: () => setMode('off'), end: () => spy.restore() };
}

/** Makes the server read-only, like a standby, and closes its connections. */
function readOnlyServer({ url }: TestDatabase): Lockable {
  const name = new URL(url).pathname.slice(1);
  const setMode = async (mode: string) => {
    const { run, close } = await openRaw(url);
    await run('set default_transaction_read_only = off');
    await run(`alter database ${name} ${mode} default_transaction_read_only${mode === 'set' ? ' = on' : ''}`);
    await run(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`);
    await close();
  };
  return { lock: () => setMode('set'), unlock: () => setMode('reset'), end: () => {} };
}

const LOCKABLE = { sqlite: readOnlyConnection, postgres: readOnlyServer };

describe('probes', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('report that the process is alive, and that it is ready', async () => {
    const live = await service.call('GET', '/health/live');
    expect([live.status, live.body]).to.deep.equal([200, { status: 'ok' }]);
    const ready = await service.call('GET', '/health/ready');
    const expectedDetails = { database: { status: 'up' }, keys: { status: 'up' } };
    const { version, commit, ...state } = ready.body;
    expect([ready.status, state]).to.deep.equal([200, { status: 'ok', info: expectedDetails, error: {}, details: expectedDetails }]);
    expect([version, commit]).to.not.include(undefined);
    for (const path of ['/health/live', '/health/ready']) expect((await service.call('HEAD', path)).status, path).to.equal(200);
  });

  it('report that the service is not ready when it cannot sign, and ready while one key provider answers', async () => {
    const address = `http://127.0.0.1:${await freePort(createServer)}`;
    const vaultProvider = { type: 'vault', address, mount: 'transit', auth: { method: 'token', token: 'nobody-knows' } };
    const readinessWith = async (config: object) => {
      const otherService = await startTestService({ KMS_CONFIG: JSON.stringify(config) });
      const { status, body } = await otherService.call('GET', '/health/ready');
      await otherService.close();
      return [status, body.details.keys.status];
    };
    expect(await readinessWith({ default: 'house', providers: { house: vaultProvider } })).to.deep.equal([503, 'down']);
    const bothProviders = { default: 'house', providers: { house: vaultProvider, local: { type: 'local' } } };
    expect(await readinessWith(bothProviders)).to.deep.equal([200, 'up']);
  });

  it('report that the process is not ready while it drains, and all other requests are answered', async () => {
    const stoppingService = await startTestService();
    const { token } = await createTenant(stoppingService, 'acme');
    stoppingService.service.drain();
    for (const path of ['/health', '/health/ready']) {
      const { status, body } = await stoppingService.call('GET', path);
      expect([status, body.status, body.error]).to.deep.equal([503, 'error', { accepting: { status: 'down' } }]);
    }
    expect((await stoppingService.call('GET', '/health/live')).status).to.equal(200);
    expect((await stoppingService.call('GET', '/session', { token })).status).to.equal(200);
    await stoppingService.close();
  });
});

for (const kind of databases()) {
  describe(`service whose ${kind.name} rejects writes`, () => {
    let database: TestDatabase | undefined;
    let lockable: Lockable;
    let shop: Shop;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const { url } = database;
      lockable = LOCKABLE[kind.name](database);
      shop = await Shop.open({}, () => startTestService({ DATABASE_URL: url }));
      await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
    });
    after(async () => {
      await shop?.close();
      lockable?.end();
      await database?.drop();
    });

    const readStatus = async (path: string) => (await shop.service.call('GET', path)).status;
    const probes = async () => [await readStatus('/health/live'), await readStatus('/health/ready'), await readStatus('/health')];

    it('is not ready, still reads, returns Retry-After to writers, and is ready afterwards', async () => {
      expect(await probes()).to.deep.equal([200, 200, 200]);
      await lockable.lock();
      await setTimeout(CACHE_MS);
      expect(await probes()).to.deep.equal([200, 503, 503]);
      const { body } = await shop.service.call('GET', '/health/ready');
      expect(body.error).to.deep.equal({ database: { status: 'down' } });
      expect(await readStatus('/acme/.well-known/openid-credential-issuer')).to.equal(200);
      const rejection = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'told' });
      expect([rejection.status, rejection.body.code], rejection.text).to.deep.equal([503, 'unavailable']);
      expect(rejection.headers.get('retry-after')).to.match(/^\d+$/);
      await lockable.unlock();
      // The rejected write counts for five seconds: other writes of its size may fail although a small one succeeds.
      for (let attempts = 130; attempts > 0 && (await readStatus('/health/ready')) !== 200; attempts--) await setTimeout(100);
      expect(await probes()).to.deep.equal([200, 200, 200]);
    });

    for (const requestId of ['check', 'told']) {
      it(`leaves the session of a presentation open, so that the wallet can send it again (${requestId})`, async () => {
        shop.backend.on('/told', (response) => response.end());
        const credential = await shop.issue();
        const request = await shop.requestPresentation(requestId);
        await lockable.lock();
        const firstResponse = await shop.present(request, credential);
        expect([firstResponse.status, firstResponse.body.error], firstResponse.text).to.deep.equal([503, 'temporarily_unavailable']);
        await lockable.unlock();
        const secondResponse = await shop.present(request, credential);
        expect(secondResponse.status, secondResponse.text).to.equal(200);
        expect((await shop.session(request.session)).status).to.equal('completed');
      });
    }
  });
}

describe('presentation that is verified while the database becomes unavailable', () => {
  it('leaves the session open, so that the wallet can send it again', async () => {
    const database = await databases()[0]?.open();
    if (database === undefined) throw new Error('SQLite is missing');
    const settings = { DATABASE_URL: database.url, PORT: String(await freePort(createServer)) };
    const shop = await Shop.open({}, () => startTestService(settings));
    const credential = await shop.issue();
    const request = await shop.requestPresentation();
    await shop.close();
    // A process that has not noticed it verifies the stored session, and no later write succeeds.
    const service = await startTestService(settings);
    const verify = sinon.stub(PresentationVerifier.prototype, 'verify');
    verify.rejects(new StoreUnavailableError('the database takes too long'));
    try {
      const firstResponse = await present(service, request, credential);
      expect([firstResponse.status, firstResponse.body.error], firstResponse.text).to.deep.equal([503, 'temporarily_unavailable']);
    } finally {
      verify.restore();
    }
    const secondResponse = await present(service, request, credential);
    expect(secondResponse.status, secondResponse.text).to.equal(200);
    await service.close();
    await database.drop();
  });
});

describe('statement that PostgreSQL cancels', () => {
  it('makes the service answer "try again", and is not reported as a failure', async function () {
    const database = await databases()[1]?.open();
    if (database === undefined) return this.skip();
    const service = await startTestService({ DATABASE_URL: database.url, DATABASE_TIMEOUT: '1' });
    const { token } = await createTenant(service, 'acme');
    const { run, close } = await openRaw(database.url);
    await run('begin; lock table sessions in access exclusive mode; select 1');
    try {
      const answer = await service.call('GET', '/session', { token });
      expect([answer.status, answer.body.code], answer.text).to.deep.equal([503, 'unavailable']);
      expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
    } finally {
      await run('rollback');
      await close();
    }
    expect((await service.call('GET', '/session', { token })).status).to.equal(200);
    await service.close();
    await database.drop();
  });
});
