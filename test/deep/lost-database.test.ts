import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import type { MikroORM } from '@mikro-orm/core';
import { expect } from 'chai';
import sinon from 'sinon';
import { connect, openDatabase } from '../../adapters/persistence/opening/database.ts';
import type { Database } from '../../adapters/persistence/opening/open-driver.ts';
import { Log } from '../../application/ports/log.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { type HangingProxy, hangingProxy } from '../support/proxies.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

type Native = { pragma(text: string, options?: { simple: true }): unknown };

/** A database whose connections can be broken while the service runs. */
type BreakableDatabase = { readonly url: string; lose(): Promise<void>; bring(): Promise<void>; end(): void };

/** Simulates a full disk for the connection of the service. */
async function breakableSqlite({ url }: TestDatabase): Promise<BreakableDatabase> {
  const orm = await connect({ url: 'sqlite::memory:', poolSize: 2 });
  const prototype = Object.getPrototypeOf(await orm.em.getConnection().getNativeClient()) as Native;
  await orm.close();
  const spy = sinon.spy(prototype, 'pragma');
  const nativeConnections = () => [...new Set(spy.thisValues as (Native & { readonly open: boolean })[])];
  const limit = (pages: (native: Native) => number) => {
    for (const native of nativeConnections().filter(({ open }) => open)) native.pragma(`max_page_count = ${pages(native)}`);
  };
  return {
    url,
    lose: async () => limit((native) => Number(native.pragma('page_count', { simple: true }))),
    bring: async () => limit(() => 1_000_000),
    end: () => spy.restore(),
  };
}

/** Simulates the loss of the network between the service and its server. */
async function breakablePostgres({ url }: TestDatabase): Promise<BreakableDatabase> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const make = () =>
    createServer((client) => {
      const upstream = dial(Number(target.port || 5432), target.hostname);
      for (const socket of [client, upstream]) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          client.destroy();
          upstream.destroy();
        });
      }
      client.pipe(upstream).pipe(client);
    });
  let server: Server = make();
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as { port: number };
  const proxiedUrl = new URL(url);
  proxiedUrl.host = `127.0.0.1:${port}`;
  const breakConnection = async () => {
    const serverClosed = new Promise<unknown>((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await serverClosed;
  };
  return {
    url: proxiedUrl.href,
    lose: breakConnection,
    bring: async () => {
      server = make();
      await listen(port);
    },
    end: () => void breakConnection(),
  };
}

const BREAKABLE = { sqlite: breakableSqlite, postgres: breakablePostgres };

for (const kind of databases()) {
  describe(`service whose ${kind.name} fails`, () => {
    let database: TestDatabase | undefined;
    let breakable: BreakableDatabase;
    let service: TestService;
    let tenant: { id: string; token: string };

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      breakable = await BREAKABLE[kind.name](database);
      service = await startTestService({ DATABASE_URL: breakable.url });
      tenant = await createTenant(service, 'acme');
    });
    after(async () => {
      await service?.close();
      breakable?.end();
      await database?.drop();
    });

    const longText = 'x'.repeat(900);
    const write = () =>
      service.call('PATCH', '/client/acme-admin', { token: tenant.token, json: { roles: ['clients:manage'], description: longText } });
    /** Fills the free space of the file. */
    const fillDisk = async () => {
      let answer = await write();
      for (let n = 0; n < 200 && answer.status === 200; n++) answer = await write();
      return answer;
    };

    it('reports that it is unavailable, logs the reason, and continues when the database works', async () => {
      const errors = sinon.spy(service.service.container.get(Log), 'error');
      await breakable.lose();
      try {
        const answer = await fillDisk();
        expect([answer.status, answer.body.code], answer.text).to.deep.equal([503, 'unavailable']);
        expect(answer.headers.get('content-type')).to.equal('application/problem+json');
        expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
        expect(answer.text).not.to.match(/SQLITE|ECONN|full|127\.0\.0\.1/);
        const [message, , cause] = errors.lastCall.args;
        expect(message).to.match(/^the database cannot be (written|reached)$/);
        expect(cause).to.be.instanceOf(Error);
        expect(errors.args.map(([text]) => text)).not.to.include('unexpected failure');
        if (kind.name === 'postgres') {
          const grant = { grant_type: 'client_credentials', client_id: 'acme-admin', client_secret: 'x' };
          const token = await service.call('POST', '/oauth2/token', { json: grant });
          expect([token.status, token.body.error], token.text).to.deep.equal([503, 'temporarily_unavailable']);
          const request = await service.call('GET', '/acme/request/unknown');
          expect([request.status, request.body.error], request.text).to.deep.equal([503, 'temporarily_unavailable']);
        }
      } finally {
        errors.restore();
        await breakable.bring();
      }
      const afterRecovery = await write();
      expect(afterRecovery.status, afterRecovery.text).to.equal(200);
    });
  });
}

const POOL = 2;

type Sqlite = { pragma(text: string, options?: { simple: true }): unknown };

/** A transaction that the database ends must release its connection. */
for (const kind of databases()) {
  describe(`transaction that ${kind.name} aborts`, () => {
    let database: TestDatabase | undefined;
    let connection: Database;
    let orm: MikroORM;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      await rawSql(database.url, (run) => run('create table notes (text text)'));
    });
    beforeEach(async () => {
      connection = await openDatabase({ url: database?.url ?? '', poolSize: POOL });
      orm = await connection.orm();
    });
    afterEach(() => connection.close());
    after(() => database?.drop());

    const write = (text: string, duringWrite = async (_run: (sql: string) => Promise<unknown>) => {}) =>
      orm.em.fork().transactional(async (em) => {
        const run = (sql: string) => em.getConnection().execute(sql, [], 'all', em.getTransactionContext());
        await run(`insert into notes values ('${text}')`);
        await duringWrite(run);
      });
    const readStored = async () => {
      const rows = await orm.em.fork().getConnection().execute('select text from notes order by text');
      return (rows as { text: string }[]).map(({ text }) => text.slice(0, 10));
    };
    const rejectionOf = (work: Promise<unknown>) =>
      work.then(
        () => false,
        () => true,
      );

    if (kind.name === 'sqlite') {
      it('for want of disk space does not affect the next transaction', async () => {
        const native = connection.native as Sqlite;
        const pages = Number(native.pragma('page_count', { simple: true }));
        native.pragma(`max_page_count = ${pages}`);
        for (let attempt = 0; attempt < 3; attempt++) expect(await rejectionOf(write('x'.repeat(100_000)))).to.equal(true);
        native.pragma('max_page_count = 100000');
        await write('after');
        expect(await readStored()).to.deep.equal(['after']);
      });
    } else {
      it('with its connection releases its slot in the pool', async () => {
        for (let attempt = 0; attempt < POOL * 2; attempt++) {
          const lostWrite = write('lost', (run) => run('select pg_terminate_backend(pg_backend_pid())').then(() => {}));
          expect(await rejectionOf(lostWrite)).to.equal(true);
        }
        await write('after');
        expect(await readStored()).to.deep.equal(['after']);
      });

      it('before its first statement writes nothing outside of a transaction', async () => {
        const pool = connection.native as { once(event: 'acquire', listener: (client: { end(): Promise<void> }) => void): void };
        for (let attempt = 0; attempt < POOL * 2; attempt++) {
          pool.once('acquire', (client) => void client.end());
          expect(await rejectionOf(write('lost'))).to.equal(true);
        }
        await write('again');
        expect(await readStored()).to.deep.equal(['after', 'again']);
      });
    }
  });
}

const [postgres] = databases().filter(({ name }) => name === 'postgres');

describe('service whose database does not respond', () => {
  let database: TestDatabase | undefined;
  let proxy: HangingProxy;
  let service: TestService;
  let tenant: { id: string; token: string };
  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
    proxy = await hangingProxy(database.url);
    service = await startTestService({ DATABASE_URL: proxy.url, DATABASE_POOL: '2', DATABASE_TIMEOUT: '1' });
    tenant = await createTenant(service, 'acme');
  });
  after(async () => {
    await service?.close();
    await proxy?.end();
    await database?.drop();
  });

  const change = (description: string) =>
    service.call('PATCH', '/client/acme-admin', { token: tenant.token, json: { roles: ['clients:manage'], description } });

  it('answers 503 in time, and continues without a restart when the database responds', async () => {
    expect((await change('one')).status).to.equal(200);
    proxy.hang();
    const start = performance.now();
    const answers = await Promise.all([
      ...['two', 'three', 'four', 'five', 'six'].map(change),
      service.call('GET', '/acme/request/unknown'),
    ]);
    expect(performance.now() - start).to.be.below(5_000);
    for (const { status, headers, text } of answers) {
      expect(status, text).to.equal(503);
      expect(headers.get('retry-after')).to.match(/^\d+$/);
    }
    proxy.forward();
    const afterRecovery = await change('seven');
    expect(afterRecovery.status, afterRecovery.text).to.equal(200);
  });
});
