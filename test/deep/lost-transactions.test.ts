import type { MikroORM } from '@mikro-orm/core';
import { expect } from 'chai';
import { openDatabase } from '../../adapters/persistence/database.ts';
import type { Database } from '../../adapters/persistence/opened.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';

const POOL = 2;

type Sqlite = { pragma(text: string, options?: { simple: true }): unknown };

/** What makes a transaction end without us: a connection or a transaction must not stay taken for ever. */
for (const kind of databases()) {
  describe(`A transaction that ${kind.name} ends by itself`, () => {
    let database: TestDatabase | undefined;
    let opened: Database;
    let orm: MikroORM;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      await rawSql(database.url, (run) => run('create table notes (text text)'));
    });
    beforeEach(async () => {
      opened = await openDatabase({ url: database?.url ?? '', poolSize: POOL });
      orm = await opened.orm();
    });
    afterEach(() => opened.close());
    after(() => database?.drop());

    const write = (text: string, more = async (_run: (sql: string) => Promise<unknown>) => {}) =>
      orm.em.fork().transactional(async (em) => {
        const run = (sql: string) => em.getConnection().execute(sql, [], 'all', em.getTransactionContext());
        await run(`insert into notes values ('${text}')`);
        await more(run);
      });
    const stored = async () => {
      const rows = await orm.em.fork().getConnection().execute('select text from notes order by text');
      return (rows as { text: string }[]).map(({ text }) => text.slice(0, 10));
    };
    const refused = (work: Promise<unknown>) =>
      work.then(
        () => false,
        () => true,
      );

    if (kind.name === 'sqlite') {
      it('for want of space leaves the next one free to go', async () => {
        const native = opened.native as Sqlite;
        const pages = Number(native.pragma('page_count', { simple: true }));
        native.pragma(`max_page_count = ${pages}`);
        for (let round = 0; round < 3; round++)
          expect(await refused(write('x'.repeat(100_000)))).to.equal(true);
        native.pragma('max_page_count = 100000');
        await write('after');
        expect(await stored()).to.deep.equal(['after']);
      });
    } else {
      it('with its connection gives the place in the pool back', async () => {
        for (let round = 0; round < POOL * 2; round++) {
          const lost = write('lost', (run) =>
            run('select pg_terminate_backend(pg_backend_pid())').then(() => {}),
          );
          expect(await refused(lost)).to.equal(true);
        }
        await write('after');
        expect(await stored()).to.deep.equal(['after']);
      });

      it('before its first statement writes nothing on another footing', async () => {
        const pool = opened.native as {
          once(event: 'acquire', listener: (client: { end(): Promise<void> }) => void): void;
        };
        for (let round = 0; round < POOL * 2; round++) {
          pool.once('acquire', (client) => void client.end());
          expect(await refused(write('lost'))).to.equal(true);
        }
        await write('again');
        expect(await stored()).to.deep.equal(['after', 'again']);
      });
    }
  });
}
