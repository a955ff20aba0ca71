import { expect } from 'chai';
import { bringUp, connect } from '../../adapters/persistence/database.ts';
import { databases, openRaw, type TestDatabase } from '../support/databases.ts';

for (const kind of databases()) {
  describe(`The migrations for ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    before(async function () {
      this.timeout(60_000);
      database = await kind.openEmpty();
      if (database === undefined) this.skip();
    });
    after(() => database?.drop());

    it('have everything that the rows have, by their snapshot', async () => {
      const orm = await connect({ url: database?.url ?? '', poolSize: 2 });
      try {
        expect(await orm.migrator.checkSchema()).to.equal(false);
      } finally {
        await orm.close();
      }
    });

    if (kind.name !== 'postgres') return;

    it('need not read what extensions there are', async function () {
      this.timeout(30_000);
      const closed = await kind.openEmpty();
      if (closed === undefined) return this.skip();
      const { run, close } = await openRaw(closed.url);
      try {
        await run('revoke select on pg_extension from public');
        await run('grant create on schema public to pg_monitor');
        await run(`alter database ${new URL(closed.url).pathname.slice(1)} set role = 'pg_monitor'`);
        await bringUp({ url: closed.url, poolSize: 2 });
      } finally {
        await close();
        await closed.drop();
      }
    });
  });
}
