import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { EXPIRY_STATEMENTS } from '../../adapters/persistence/maintenance/expiry.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Statement } from '../../adapters/persistence/statement.ts';
import type { EventBus } from '../../application/ports/event-bus.ts';
import type { ExpiryPlace } from '../../application/ports/maintenance.ts';
import { ExpireSessions } from '../../application/sessions/expire-sessions.ts';
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

    /** Finished sessions of the last day, oldest first, with an expiry five minutes after creation. */
    const fill = async (count: number, at: number, status = 'completed') => {
      const numbers =
        kind.name === 'postgres'
          ? `generate_series(1, ${count}) as numbers(n)`
          : `(with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count}) select n from numbers)`;
      const created = `${at} - 86300000 + cast(86300000.0 * n / ${count} as bigint)`;
      await raw.run(
        `insert into sessions (tenant_id, id, public_id, kind, status, version, created_at, updated_at, expires_at,
           configuration_ids, use_dc_api, request, outcome, issued_mask, revoked_mask, issued_count)
         select '${tenantId}', '${status}' || n, '${status}' || n, 'issuance', '${status}', 3, ${created}, ${created}, ${created} + 300000,
           '["a"]', false, 'sealed', null, 1, 0, 1 from ${numbers}`,
      );
      await raw.run('analyze sessions');
    };

    if (kind.name === 'postgres') {
      /** Blocks that a statement touches. */
      const blocksOf = async ({ text }: Statement, parameters: readonly (string | number)[]) => {
        await raw.run(`create or replace function blocks_of(query text) returns bigint language plpgsql as $$
          declare plan json;
          begin
            execute 'explain (analyze, buffers, format json) ' || query into plan;
            return (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
          end $$`);
        const literal = (value: string | number) =>
          typeof value === 'number' ? `${value}::bigint` : `'${value}'`;
        const query = text.replaceAll(/\$(\d)/g, (_, place) => literal(parameters[Number(place) - 1] ?? 0));
        const [row] = await raw.run(`select blocks_of($query$${query}$query$) as blocks`);
        return Number(row?.['blocks']);
      };

      it('expire-sessions touches as many blocks with ten times as many sessions stored', async () => {
        const now = Date.now();
        const cost = () => blocksOf(EXPIRY_STATEMENTS.postgres, [now, now - 150_000, '', 2_000, '']);
        await fill(2_000, now);
        const few = await cost();
        await raw.run('delete from sessions');
        await fill(20_000, now);
        // A tenth of a percent of the day is in the range: 3 sessions of 2,000, and 35 of 20,000.
        expect(await cost()).to.be.at.most(few + 60);
      });
    }

    it('expire-sessions expires what became due, however much is finished before it', async () => {
      const now = Date.now();
      await fill(3_000, now);
      const { session } = await openOffer(store, tenantId, {
        session: { createdAt: new Date(now), expiresAt: new Date(now + 30_000), status: 'active' },
      });
      const published: unknown[] = [];
      const eventBus = { publish: (event: unknown) => published.push(event) } as unknown as EventBus;
      const job = new ExpireSessions({ store, eventBus });
      const run = async (at: number) => {
        const step = job.begin(new Date(at), 500);
        for (let batches = 1; ; batches++) if (!(await step()).mayBeMore) return batches;
      };
      expect(await run(now), 'the first run visits all').to.be.at.least(6);
      expect(await run(now + 31_000), 'only what became due, and what had its second look').to.equal(2);
      expect(published).to.deep.equal([{ type: 'session', tenantId, sessionId: session.id }]);
      expect((await stepsOf(store, tenantId).findSession(session.id))?.status).to.equal('expired');
      expect(await run(now + 61_000)).to.equal(2);
      expect(await run(now + 86_500_000), 'a day later it visits all').to.be.at.least(6);
    });

    it('expire-sessions finds sessions of the same millisecond across batches', async () => {
      const now = Date.now();
      await fill(1_000, now, 'active');
      await raw.run(`update sessions set expires_at = ${now - 1000}`);
      let place: ExpiryPlace | undefined;
      let count = 0;
      do {
        const range = place === undefined ? {} : { after: place };
        const found = await store.maintenance.expireSessions(new Date(now), 90, range);
        count += found.expired.length;
        place = found.next;
      } while (place !== undefined);
      expect(count).to.equal(1_000);
      expect(await raw.run(`select 1 from sessions where status <> 'expired'`)).to.have.length(0);
      expect(await raw.run(`select 1 from session_events where status = 'expired'`)).to.have.length(1_000);
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
