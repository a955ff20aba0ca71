import { expect } from 'chai';
import { bringUp, connect } from '../../adapters/persistence/database.ts';
import { databases, openRaw, type TestDatabase } from '../support/databases.ts';

for (const kind of databases()) {
  describe(`The migrations for ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    before(async function () {
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

    it('wait for a change that is under way, and hold nothing that it wants', async function () {
      const used = await kind.openEmpty();
      if (used === undefined) return this.skip();
      await bringUp({ url: used.url, poolSize: 2 }, 'Migration00000000000031_tenant_ends');
      const [change, watch] = [await openRaw(used.url), await openRaw(used.url)];
      try {
        // In the order in which a token request comes to its tables.
        await change.run('begin');
        await change.run('select 1 from tenants');
        await change.run('lock table grants in row exclusive mode');
        const ended = bringUp({ url: used.url, poolSize: 2 }).then(
          () => undefined,
          (error: Error) => error.message,
        );
        const waiting = `select 1 from pg_locks where not granted and locktype = 'relation'
          and database = (select oid from pg_database where datname = current_database())`;
        while ((await watch.run(waiting)).length === 0);
        await change.run('lock table sessions in row exclusive mode');
        await change.run('commit');
        expect(await ended).to.equal(undefined);
        const filled = `select 1 from pg_class where relname = 'sessions' and reloptions is not null`;
        expect(await watch.run(filled)).to.have.lengthOf(1);
      } finally {
        await change.close();
        await watch.close();
        await used.drop();
      }
    });
  });
}
