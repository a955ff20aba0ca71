import { createRequire } from 'node:module';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { EXPIRY_STATEMENTS } from '../../adapters/persistence/maintenance/expiry.ts';
import { VISIT_DUE_SESSIONS } from '../../adapters/persistence/maintenance/retention.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { outcomeQuery } from '../../adapters/persistence/session-rates.ts';
import type { Statement } from '../../adapters/persistence/statement.ts';
import { listSessionsQuery, sessionPlaceQuery } from '../../adapters/persistence/statements.ts';
import type { TenantCaller } from '../../application/caller.ts';
import type { EventBus } from '../../application/ports/event-bus.ts';
import type { ExpiryCursor, Maintenance } from '../../application/ports/maintenance.ts';
import type { ServiceSettings } from '../../application/ports/settings.ts';
import type { SessionQuery, Store } from '../../application/ports/store.ts';
import { CleanUpSessions } from '../../application/sessions/clean-up-sessions.ts';
import { ExpireSessions } from '../../application/sessions/expire-sessions.ts';
import type { FetchedSessions } from '../../application/sessions/fetched-sessions.ts';
import { ListSessions, SessionListQuery } from '../../application/sessions/sessions.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { databases, openRaw, type TestDatabase } from '../support/databases.ts';
import { aConfiguration, addList, addTenant, openOffer } from './store/builders.ts';
import { stepsOf } from './store/steps.ts';

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
const ABOVE_INT = 3_000_000_000;
type PlanStep = { readonly parent: number; readonly detail: string };
/** The driver of the service: the SQLite of Node plans without samples of the values. */
const Driver: new (file: string) => { prepare(text: string): { all(...values: readonly unknown[]): PlanStep[] }; close(): void } =
  createRequire(import.meta.url)('better-sqlite3');

for (const kind of databases()) {
  describe(`job costs on ${kind.name}`, () => {
    let database: TestDatabase;
    let store: OrmStore;
    let raw: Awaited<ReturnType<typeof openRaw>>;
    let tenantId: TenantId;

    beforeEach(async function () {
      const openedDatabase = await kind.open();
      if (openedDatabase === undefined) return this.skip();
      database = openedDatabase;
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
    const insertSessions = async (count: number, newest: number, status = 'completed') => {
      const numbers =
        kind.name === 'postgres'
          ? `generate_series(1, ${count}) as numbers(n)`
          : `(with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count}) select n from numbers)`;
      const createdAt = `${newest} - 86300000 + cast(86300000.0 * n / ${count} as bigint)`;
      await raw.run(
        `insert into sessions (tenant_id, id, public_id, kind, status, version, created_at, updated_at, expires_at,
           configuration_ids, use_dc_api, request, outcome, issued_mask, revoked_mask, issued_count)
         select '${tenantId}', '${status}' || n, '${status}' || n, 'issuance', '${status}', 3, ${createdAt}, ${createdAt}, ${createdAt} + 300000,
           '["a"]', false, 'sealed', null, 1, 0, 1 from ${numbers}`,
      );
      await raw.run('analyze sessions');
    };

    if (kind.name === 'postgres') {
      /** Blocks that a statement reads. */
      const countBlocks = async ({ text }: Statement, parameters: readonly (string | number)[]) => {
        await raw.run(`create or replace function blocks_of(query text) returns bigint language plpgsql as $$
          declare plan json;
          begin
            execute 'explain (analyze, buffers, format json) ' || query into plan;
            return (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
          end $$`);
        const literal = (value: string | number) => (typeof value === 'number' ? `${value}::bigint` : `'${value}'`);
        const query = text.replaceAll(/\$(\d)/g, (_, index) => literal(parameters[Number(index) - 1] ?? 0));
        const [row] = await raw.run(`select blocks_of($query$${query}$query$) as blocks`);
        return Number(row?.['blocks']);
      };

      it('expire-sessions and clean-up-sessions read the same number of blocks with ten times as many stored sessions', async () => {
        const now = Date.now();
        const countExpiryBlocks = () => countBlocks(EXPIRY_STATEMENTS.postgres, [now, now - 150_000, '', 2_000, '']);
        await insertSessions(2_000, now);
        const fewBlocks = await countExpiryBlocks();
        const countDueBlocks = () =>
          countBlocks(VISIT_DUE_SESSIONS.postgres, [now, tenantId, 'full', now - 86_400_000, now - 86_500_000, '', 2_000]);
        const blocksWithoutDue = await countDueBlocks();
        // Removed rows stay in the index until a vacuum.
        await raw.run('truncate sessions');
        await insertSessions(20_000, now);
        expect(await countDueBlocks(), 'clean-up-sessions').to.be.at.most(blocksWithoutDue + 3);
        // A tenth of a percent of the day is in the range: 3 of 2,000 sessions, and 35 of 20,000.
        expect(await countExpiryBlocks()).to.be.at.most(fewBlocks + 60);
      });
    }

    if (kind.name === 'sqlite') {
      it('jobs and lists read sessions in index order, also when one tenant has nearly all sessions', async () => {
        const now = Date.now();
        await insertSessions(20_000, now);
        await raw.run('analyze');
        const cursor = { createdAt: new Date(now - 3_600_000), id: 'm' };
        const kinds = ['issuance'] as const;
        type RunStatement = { readonly statement: Statement; readonly parameters: readonly unknown[] };
        const ofTenant = ({ statement, parameters }: RunStatement): RunStatement => ({ statement, parameters: [tenantId, ...parameters] });
        const statements: readonly RunStatement[] = [
          { statement: EXPIRY_STATEMENTS.sqlite, parameters: [now, now - 3_600_000, -1, 500] },
          { statement: VISIT_DUE_SESSIONS.sqlite, parameters: [now, tenantId, 'full', now - 60_000, Number.MIN_SAFE_INTEGER, '', 500] },
          ...[true, false].flatMap((ascending) =>
            [{}, { since: new Date(now - 7_200_000), until: new Date(now) }].flatMap((range) => [
              ofTenant(listSessionsQuery({ kinds, limit: 25, ascending, after: cursor, ...range, through: cursor })),
              ofTenant(sessionPlaceQuery({ ascending, after: cursor, ...range }, 10_000)),
            ]),
          ),
          ofTenant(outcomeQuery({ kinds, since: new Date(0), failed: true, limit: 25, after: cursor })),
        ];
        const file = new Driver(database.url.replace('sqlite:', ''));
        /** Steps that read more than the index leads to, or that sort rows of the table. */
        const findExpensiveSteps = ({ statement: { text }, parameters }: RunStatement) => {
          const values = Array.from(text.matchAll(/\$(\d+)/g), ([, index]) => parameters[Number(index) - 1]);
          const plan = file.prepare(`explain query plan ${text.replaceAll(/\$\d+/g, '?')}`).all(...values);
          const scan = plan.find(({ detail }) => /^(SEARCH|SCAN) (s|sessions)\b/.test(detail));
          return plan
            .filter(({ parent, detail }) => parent === scan?.parent && /^SCAN|ANY\(|TEMP B-TREE/.test(detail))
            .map(({ detail }) => detail);
        };
        for (const statement of statements) expect(findExpensiveSteps(statement), statement.statement.name).to.deep.equal([]);
        file.close();
      });
    }

    it('expire-sessions expires due sessions regardless of the number of finished sessions', async () => {
      const now = Date.now();
      await insertSessions(3_000, now);
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
      expect(await run(now + 31_000), 'only sessions that became due, and those with a second visit').to.equal(2);
      expect(published).to.deep.equal([{ type: 'session', tenantId, sessionId: session.id }]);
      expect((await stepsOf(store, tenantId).session(session.id))?.session?.status).to.equal('expired');
      expect(await run(now + 61_000)).to.equal(2);
      expect(await run(now + 86_500_000), 'a day later it visits all').to.be.at.least(6);
    });

    it('expire-sessions finds sessions of the same millisecond across batches', async () => {
      const now = Date.now();
      await insertSessions(1_000, now, 'active');
      await raw.run(`update sessions set expires_at = ${now - 1000}`);
      let cursor: ExpiryCursor | undefined;
      let count = 0;
      do {
        const range = cursor === undefined ? {} : { after: cursor };
        const expired = await store.maintenance.expireSessions(new Date(now), 90, range);
        count += expired.expired.length;
        cursor = expired.next;
      } while (cursor !== undefined);
      expect(count).to.equal(1_000);
      expect(await raw.run(`select 1 from sessions where status <> 'expired'`)).to.have.length(0);
      expect(await raw.run(`select 1 from session_events where status = 'expired'`)).to.have.length(1_000);
    });

    describe('clean-up-sessions', () => {
      const DAY = 86_400_000;
      let calls: number;
      let job: CleanUpSessions;
      beforeEach(() => {
        calls = 0;
        const { maintenance } = store;
        const cleanUpSessions: Maintenance['cleanUpSessions'] = (...parameters) => {
          calls++;
          return maintenance.cleanUpSessions(...parameters);
        };
        const countingStore = { maintenance: { ...maintenance, cleanUpSessions } } as unknown as Store;
        job = new CleanUpSessions({ store: countingStore, settings: { sessionTtlSeconds: 86_400 } as ServiceSettings });
      });
      const run = async (at: number) => {
        const step = job.begin(new Date(at), 100);
        const total = { removed: 0, anonymized: 0 };
        const before = calls;
        for (;;) {
          const { removed, anonymized, mayBeMore } = await step();
          total.removed += removed;
          total.anonymized += anonymized;
          if (!mayBeMore) return { ...total, calls: calls - before };
        }
      };
      const setRetention = (mode: string, ttlSeconds = 86_400) =>
        raw.run(`update tenants set session_config = '{"cleanupMode":"${mode}","ttlSeconds":${ttlSeconds}}' where id = '${tenantId}'`);
      const countSessions = async () => Number((await raw.run('select count(*) as n from sessions'))[0]?.['n']);

      it('visits each due session once, and anonymized sessions not again', async () => {
        const now = Date.now();
        await setRetention('anonymize');
        await insertSessions(1_000, now - DAY);
        const first = await run(now);
        expect(first).to.include({ removed: 0, anonymized: 1_000 });
        expect(first.calls).to.be.at.least(10);
        expect(await run(now + 60_000)).to.deep.equal({ removed: 0, anonymized: 0, calls: 1 });
        await setRetention('full');
        expect((await run(now + 120_000)).removed, 'after a change of the mode').to.equal(1_000);
      });

      it('removes due sessions at once when the tenant shortens ttlSeconds', async () => {
        const now = Date.now();
        await insertSessions(1_000, now);
        expect(await run(now)).to.deep.equal({ removed: 0, anonymized: 0, calls: 1 });
        await setRetention('full', 43_200);
        const { removed } = await run(now + 60_000);
        expect(removed).to.be.within(490, 510);
        await setRetention('full', 60);
        expect((await run(now + 300_000)).removed).to.equal(1_000 - removed);
        expect(await countSessions()).to.equal(0);
      });

      it('visits a session that was still open again within ten minutes', async () => {
        const now = Date.now();
        await setRetention('full', 60);
        await insertSessions(20, now - 120_000);
        await openOffer(store, tenantId, {
          session: { createdAt: new Date(now - 200_000), expiresAt: new Date(now + 30_000), status: 'active' },
        });
        expect((await run(now)).removed).to.equal(20);
        expect((await run(now + 60_000)).removed).to.equal(0);
        expect((await run(now + 600_000)).removed).to.equal(1);
        expect(await countSessions()).to.equal(0);
      });
    });

    for (const [title, haveSameTime] of [
      ['over the day', false],
      ['at the same millisecond', true],
    ] as const) {
      it(`a list of the few failed sessions among many created ${title} reads a bounded number for each page`, async () => {
        const now = Date.now();
        await insertSessions(25_000, now);
        await raw.run(
          `update sessions set status = 'failed', request = null where id in ('completed20', 'completed12000', 'completed24990')`,
        );
        if (haveSameTime) await raw.run(`update sessions set created_at = ${now - 1000}`);
        const rangeLimits: number[] = [];
        const reads = store.read(tenantId);
        const countingReads = {
          ...reads,
          sessionCursorAt: (...parameters: Parameters<typeof reads.sessionCursorAt>) => {
            rangeLimits.push(parameters[1]);
            return reads.sessionCursorAt(...parameters);
          },
          sessions: async (query: SessionQuery) => {
            expect(query.through ?? (await reads.sessionCursorAt(query, 10_000)), 'within a range').to.satisfy(
              (cursor: unknown) => query.through !== undefined || cursor === undefined,
            );
            return reads.sessions(query);
          },
        };
        const list = new ListSessions({
          store: { read: () => countingReads } as unknown as Store,
          clock: { now: () => new Date(now) },
          fetchedSessions: { flushTenant: async () => {} } as unknown as FetchedSessions,
        });
        const caller = {
          ...{ tenantId, clientId: 'c', roles: ['issuance:manage'] },
          ...{ allowedPresentationConfigs: null, allowedIssuanceConfigs: null },
        } as unknown as TenantCaller;
        for (const sort of ['asc', 'desc'] as const) {
          const sessions: string[] = [];
          let pages = 0;
          let cursor: string | undefined;
          do {
            rangeLimits.length = 0;
            const query = SessionListQuery.parse({ status: 'failed', sort, ...(cursor !== undefined && { cursor }) });
            const page = await list.execute(caller, query);
            expect(
              rangeLimits.reduce((sum, count) => sum + count, 0),
              'visited',
            ).to.be.at.most(10_000);
            sessions.push(...page.sessions.map(({ id }) => id));
            cursor = page.next;
            expect(++pages).to.be.at.most(9);
          } while (cursor !== undefined);
          expect(sessions.toSorted()).to.deep.equal(['completed12000', 'completed20', 'completed24990']);
          expect(pages).to.be.at.least(3);
        }
      });
    }

    describe('sizes, counts and times above 2^31', () => {
      if (kind.name === 'postgres') {
        it('refresh-statistics works when a table has 65,536 pages or more', async () => {
          for (const table of ['sessions', 'grants']) await raw.run(`update pg_class set relpages = 2000000000 where relname = '${table}'`);
          expect(await store.maintenance.refreshStatistics()).to.deep.equal({ refreshed: [], failures: [] });
        });

        it('refresh-statistics refreshes the other tables when one of them cannot be analyzed', async () => {
          await raw.run(`create function refuse(text) returns text immutable language plpgsql as $$ begin return $1; end $$`);
          await raw.run('create index refusing on used_values (refuse(hash))');
          await raw.run(`insert into used_values select 'none', 'x', md5('' || g), 1 from generate_series(1, 3000) g`);
          await raw.run(`insert into session_events select 'none', md5('' || g), 1, 'x', 1 from generate_series(1, 3000) g`);
          await raw.run(
            `create or replace function refuse(text) returns text immutable language plpgsql as $$ begin raise exception 'refused'; end $$`,
          );
          const { refreshed, failures } = await store.maintenance.refreshStatistics();
          expect(refreshed).to.deep.equal(['session_events']);
          expect(failures.map(({ table }) => table)).to.deep.equal(['used_values']);
        });
      }

      it('a status list with a counter close to 2^31 reports that it is full', async () => {
        const list = await addList(store, tenantId);
        await raw.run(`update status_lists set capacity = 2147483647, used_entries = 2147483600 where id = '${list.id}'`);
        const steps = stepsOf(store, tenantId);
        expect(await steps.allocateStatusRun(list, 1000)).to.equal(undefined);
        expect(await steps.allocateStatusRun(list, 10)).to.equal(2_147_483_600);
        expect(await steps.allocateStatusRun(list, 10, 2_147_483_640)).to.equal(undefined);
      });

      it('the fill levels of all lists are summed up', async () => {
        for (let n = 0; n < 3; n++) await addList(store, tenantId);
        await raw.run('update status_lists set capacity = 2147483647, used_entries = 2147483647');
        expect(await store.maintenance.listFill()).to.deep.equal({ ...{ lists: 3, used: 3 * 2_147_483_647, capacity: 3 * 2_147_483_647 } });
      });

      it('revisions of a tenant are incremented', async () => {
        await raw.run(`update tenants set revisions = '{"all":${ABOVE_INT},"credentials":${ABOVE_INT}}' where id = '${tenantId}'`);
        if (kind.name === 'postgres') await raw.run(`update tenants set revision = revision + 1 where id = '${tenantId}'`);
        await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.put(aConfiguration('one')), {
          by: 'system',
        });
        const [row] = await raw.run(`select revisions from tenants where id = '${tenantId}'`);
        const revisions = typeof row?.['revisions'] === 'string' ? JSON.parse(row['revisions']) : row?.['revisions'];
        expect(revisions.credentials).to.equal(ABOVE_INT + 1);
        if (kind.name === 'postgres') expect(revisions.all).to.equal(ABOVE_INT + 1);
      });

      it('sessions of a tenant that keeps them for 95 years are kept', async () => {
        const tenantWithLongRetention = await addTenant(store, { sessionConfig: { ttlSeconds: ABOVE_INT, cleanupMode: 'full' } });
        const { session } = await openOffer(store, tenantWithLongRetention, {
          session: { createdAt: new Date(0), expiresAt: new Date(1), status: 'completed' },
        });
        const cleanUp = (at: number) => store.maintenance.cleanUpSessions(new Date(at), 100, { ttlSeconds: ABOVE_INT });
        expect((await cleanUp(ABOVE_INT * 1000 - 1)).removed).to.equal(0);
        expect((await cleanUp(ABOVE_INT * 1000)).removed).to.equal(1);
        expect((await stepsOf(store, tenantWithLongRetention).session(session.id))?.session).to.equal(undefined);
      });
    });
  });
}
