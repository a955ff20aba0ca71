import { expect } from 'chai';
import { bringUp, connect } from '../../adapters/persistence/database.ts';
import { databases, openRaw, type TestDatabase } from '../support/databases.ts';

const BEFORE_ROOM = 'Migration00000000000031_tenant_ends';

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

    describe('on tables that a release before and a backup use', () => {
      let used: TestDatabase | undefined;
      let other: Awaited<ReturnType<typeof openRaw>>;
      let late: Awaited<ReturnType<typeof openRaw>>;
      const settings = () => ({ url: used?.url ?? '', poolSize: 2 });
      beforeEach(async function () {
        this.timeout(60_000);
        used = await kind.openEmpty();
        if (used === undefined) return this.skip();
        await bringUp(settings(), BEFORE_ROOM);
        [other, late] = [await openRaw(used.url), await openRaw(used.url)];
        await other.run('begin');
      });
      afterEach(async () => {
        await other?.close();
        await late?.close();
        await used?.drop();
      });
      const filled = `select 1 from pg_class where relname = 'sessions' and reloptions is not null`;
      const untilItWaits = async () => {
        const waiting = `select 1 from pg_locks where not granted and locktype = 'relation'
          and database = (select oid from pg_database where datname = current_database())`;
        while ((await late.run(waiting)).length === 0);
      };

      it('let others go on while they wait for a table', async function () {
        this.timeout(30_000);
        await other.run('lock table sessions in access share mode');
        const migrated = bringUp(settings());
        await untilItWaits();
        const begun = performance.now();
        await late.run('select count(*) from sessions');
        const waited = performance.now() - begun;
        await other.run('commit');
        await migrated;
        expect(waited).to.be.below(2_000);
        expect(await late.run(filled)).to.have.lengthOf(1);
      });

      it('give way to who waits for them, and begin anew', async function () {
        this.timeout(30_000);
        await other.run('lock table grants in row exclusive mode');
        const migrated = bringUp(settings());
        // Now, and not when nobody looks any more.
        const ended = migrated.then(
          () => undefined,
          (error: Error) => error.message,
        );
        await untilItWaits();
        await other.run('lock table sessions in row exclusive mode');
        await other.run('commit');
        expect(await ended).to.equal(undefined);
        expect(await late.run(filled)).to.have.lengthOf(1);
      });
    });
  });
}
