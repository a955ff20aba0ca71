import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { databases, openRaw, type TestDatabase } from '../support/databases.ts';
import { aConfiguration, addList, addTenant, openOffer } from './store/builders.ts';
import { stepsOf } from './store/steps.ts';

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
const ABOVE_INT = 3_000_000_000;

for (const kind of databases()) {
  describe(`Jobs on ${kind.name}`, () => {
    let database: TestDatabase;
    let store: OrmStore;
    let raw: Awaited<ReturnType<typeof openRaw>>;
    let tenantId: TenantId;

    beforeEach(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
      store = await OrmStore.open({ url: database.url, poolSize: 4 }, cipher);
      raw = await openRaw(database.url);
      tenantId = await addTenant(store);
    });
    afterEach(async () => {
      await raw?.close();
      await store?.close();
      await database?.drop();
    });

    describe('arithmetic of sizes, counts and times above 2^31', () => {
      if (kind.name === 'postgres') {
        it('refresh-statistics works when a table has 65,536 pages or more', async () => {
          for (const table of ['sessions', 'grants'])
            await raw.run(`update pg_class set relpages = 2000000000 where relname = '${table}'`);
          expect(await store.maintenance.refreshStatistics()).to.deep.equal({ refreshed: [], failures: [] });
        });

        it('refresh-statistics refreshes the other tables when one of them cannot be analyzed', async () => {
          await raw.run(
            `create function refuse(text) returns text immutable language plpgsql as $$ begin return $1; end $$`,
          );
          await raw.run('create index refusing on used_values (refuse(hash))');
          await raw.run(
            `insert into used_values select 'none', 'x', md5('' || g), 1 from generate_series(1, 3000) g`,
          );
          await raw.run(
            `insert into session_events select 'none', md5('' || g), 1, 'x', 1 from generate_series(1, 3000) g`,
          );
          await raw.run(
            `create or replace function refuse(text) returns text immutable language plpgsql as $$ begin raise exception 'refused'; end $$`,
          );
          const { refreshed, failures } = await store.maintenance.refreshStatistics();
          expect(refreshed).to.deep.equal(['session_events']);
          expect(failures.map(({ table }) => table)).to.deep.equal(['used_values']);
        });
      }

      it('a status list with a counter close to 2^31 answers that it is full', async () => {
        const list = await addList(store, tenantId);
        await raw.run(
          `update status_lists set capacity = 2147483647, used_entries = 2147483600 where id = '${list.id}'`,
        );
        const steps = stepsOf(store, tenantId);
        expect(await steps.takeStatusRun(list, 1000)).to.equal(undefined);
        expect(await steps.takeStatusRun(list, 10)).to.equal(2_147_483_600);
        expect(await steps.takeStatusRun(list, 10, 2_147_483_640)).to.equal(undefined);
      });

      it('the fill of all lists is summed up', async () => {
        for (let n = 0; n < 3; n++) await addList(store, tenantId);
        await raw.run('update status_lists set capacity = 2147483647, used_entries = 2147483647');
        expect(await store.maintenance.listFill()).to.deep.equal({
          ...{ lists: 3, used: 3 * 2_147_483_647, capacity: 3 * 2_147_483_647 },
        });
      });

      it('revisions of a tenant go on', async () => {
        await raw.run(
          `update tenants set revisions = '{"all":${ABOVE_INT},"credentials":${ABOVE_INT}}' where id = '${tenantId}'`,
        );
        if (kind.name === 'postgres')
          await raw.run(`update tenants set revision = revision + 1 where id = '${tenantId}'`);
        await store.forTenant(tenantId, (own) => own.credentialConfigurations.put(aConfiguration('one')), {
          by: 'system',
        });
        const [row] = await raw.run(`select revisions from tenants where id = '${tenantId}'`);
        const revisions =
          typeof row?.['revisions'] === 'string' ? JSON.parse(row['revisions']) : row?.['revisions'];
        expect(revisions.credentials).to.equal(ABOVE_INT + 1);
        if (kind.name === 'postgres') expect(revisions.all).to.equal(ABOVE_INT + 1);
      });

      it('sessions of a tenant that keeps them for 95 years are kept', async () => {
        const patient = await addTenant(store, {
          sessionConfig: { ttlSeconds: ABOVE_INT, cleanupMode: 'full' },
        });
        const { session } = await openOffer(store, patient, {
          session: { createdAt: new Date(0), expiresAt: new Date(1), status: 'completed' },
        });
        const clean = (at: number) =>
          store.maintenance.cleanUpSessions(new Date(at), 100, { ttlSeconds: ABOVE_INT });
        expect((await clean(ABOVE_INT * 1000 - 1)).removed).to.equal(0);
        expect((await clean(ABOVE_INT * 1000)).removed).to.equal(1);
        expect(await stepsOf(store, patient).findSession(session.id)).to.equal(undefined);
      });
    });
  });
}
