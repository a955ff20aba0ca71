import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { connect, runMigrations } from '../../adapters/persistence/opening/database.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { databases, openRaw, type TestDatabase } from '../support/databases.ts';

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

for (const kind of databases()) {
  describe(`migrations on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    before(async function () {
      database = await kind.openEmpty();
      if (database === undefined) this.skip();
    });
    after(() => database?.drop());

    it('create every column of the entities, by their snapshot', async () => {
      const orm = await connect({ url: database?.url ?? '', poolSize: 2 });
      try {
        expect(await orm.migrator.checkSchema()).to.equal(false);
      } finally {
        await orm.close();
      }
    });

    it('keep the revocations of an earlier release effective for its grants', async function () {
      const used = await kind.openEmpty();
      if (used === undefined) return this.skip();
      await runMigrations({ url: used.url, poolSize: 2 }, 'Migration00000000000037_grants_of_subjects');
      const { run, close } = await openRaw(used.url);
      const at = (secondsLater: number) => Date.now() + secondsLater * 1_000;
      try {
        await run(`insert into tenants (id, name, status, revision, version, created_at, updated_at)
          values ('acme', 'Acme', 'active', 1, 1, 0, 0)`);
        for (const [id, consumedAt] of [
          ['before', at(0)],
          ['code', at(59)],
          ['after', at(120)],
          ['unredeemed', null],
        ] as const)
          await run(`insert into grants (tenant_id, id, kind, session_id, public_id, code_hash, configuration_ids, expires_at,
              attempts, consumed_at)
            values ('acme', '${id}', 'authorization_code', 'session', 'public', '${id}', '["card"]', ${at(9_000)}, 0, ${consumedAt})`);
        await run(`insert into revoked_subjects (tenant_id, fingerprint, credential_configuration_id, revoked_at)
          values ('acme', 'ada', '', ${at(0)})`);
      } finally {
        await close();
      }
      await runMigrations({ url: used.url, poolSize: 2 });
      const store = await OrmStore.open({ url: used.url, poolSize: 2 }, cipher);
      try {
        const identify = async (fingerprint: string, grantId: string) => {
          const batch = { id: randomUUID(), sessionId: 'session' as SessionId, credentialConfigurationId: 'card' };
          const entry = { fingerprint, batch, endsAt: null, grantId, authorizedAt: new Date(at(9_000)) };
          return (await store.commit('acme' as TenantId, { identifies: entry }, new Date())).done;
        };
        const all = async (fingerprint: string) => {
          const grants = ['before', 'code', 'after', 'unredeemed'];
          return Promise.all(grants.map((id) => identify(fingerprint, id)));
        };
        expect(await all('ada')).to.deep.equal([false, false, true, false]);
        expect(await all('bob')).to.deep.equal([true, true, true, true]);
        await store.maintenance.noteRevoked('acme' as TenantId, ['bob'], undefined, new Date(0));
        expect(await all('bob'), 'a revocation after the upgrade affects all of them').to.deep.equal([false, false, false, false]);
      } finally {
        await store.close();
        await used.drop();
      }
    });

    if (kind.name !== 'postgres') return;

    it('run without the right to list extensions', async function () {
      const database = await kind.openEmpty();
      if (database === undefined) return this.skip();
      const { run, close } = await openRaw(database.url);
      try {
        await run('revoke select on pg_extension from public');
        await run('grant create on schema public to pg_monitor');
        await run(`alter database ${new URL(database.url).pathname.slice(1)} set role = 'pg_monitor'`);
        await runMigrations({ url: database.url, poolSize: 2 });
      } finally {
        await close();
        await database.drop();
      }
    });

    it('wait for a transaction that is under way, without holding a lock that it needs', async function () {
      const used = await kind.openEmpty();
      if (used === undefined) return this.skip();
      await runMigrations({ url: used.url, poolSize: 2 }, 'Migration00000000000031_tenant_ends');
      const [change, watch] = [await openRaw(used.url), await openRaw(used.url)];
      try {
        // In the order in which a token request accesses its tables.
        await change.run('begin');
        await change.run('select 1 from tenants');
        await change.run('lock table grants in row exclusive mode');
        const migration = runMigrations({ url: used.url, poolSize: 2 }).then(
          () => undefined,
          (error: Error) => error.message,
        );
        const waiting = `select 1 from pg_locks where not granted and locktype = 'relation'
          and database = (select oid from pg_database where datname = current_database())`;
        while ((await watch.run(waiting)).length === 0);
        await change.run('lock table sessions in row exclusive mode');
        await change.run('commit');
        expect(await migration).to.equal(undefined);
        const selectReloptions = `select 1 from pg_class where relname = 'sessions' and reloptions is not null`;
        expect(await watch.run(selectReloptions)).to.have.lengthOf(1);
      } finally {
        await change.close();
        await watch.close();
        await used.drop();
      }
    });
  });
}
