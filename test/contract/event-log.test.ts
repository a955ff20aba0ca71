import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { connect } from '../../adapters/persistence/opening/database.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { LogBatch, RelayCursor } from '../../application/ports/event-log.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { advance } from '../../domain/sessions/session-change.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { describeUpgrade } from '../support/upgrade.ts';
import { addTenant, aSession, NOW, seconds } from './store/builders.ts';
import { sessionOpening, stepsOf } from './store/steps.ts';

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
const LIMIT = 100;
const LEASE_SECONDS = 60;
const ME = 'this process';

/** A connection of its own, for transactions that stay open. */
type Client = { query(text: string): Promise<{ rows: Record<string, unknown>[] }>; release(): void };

for (const kind of databases()) {
  describe(`event log on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let store: OrmStore;
    let tenantId: TenantId;
    beforeEach(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      store = await OrmStore.open({ url: database.url, poolSize: 4 }, cipher);
      tenantId = await addTenant(store);
    });
    afterEach(async () => {
      await store?.close();
      await database?.drop();
    });

    const log = () => store.maintenance;
    const raw = (text: string) => rawSql(database?.url ?? '', (run) => run(text));
    const open = async (changes: Partial<Session> = {}, own = tenantId) => {
      const session = aSession(own, { request: null, ...changes });
      await stepsOf(store, own).commit(sessionOpening(session));
      return session;
    };
    const fetch = (session: Session) => stepsOf(store, session.tenantId).fetchSession(session.publicId, seconds(1));
    const fail = (session: Session) => store.commit(session.tenantId, { session: advance(session, 'fail') }, seconds(2));
    const untilOthersEnd = () => untilOtherDatabasesEnd(kind.name, raw);
    const next = async (limit = LIMIT, holder = ME): Promise<LogBatch> => {
      await untilOthersEnd();
      const batch = await log().nextEvents(holder, LEASE_SECONDS, limit);
      if (batch === undefined) throw new Error('another process has the lease');
      return batch;
    };
    const told = ({ events }: LogBatch) => events.map((event) => `${event.sessionId} ${event.version}`);
    /** Hands on what there is, as much at a time as the limit says. */
    const handOn = async (limit = LIMIT): Promise<string[]> => {
      const all: string[] = [];
      for (;;) {
        const batch = await next(limit);
        const last = batch.events.at(-1);
        if (last === undefined) return all;
        all.push(...told(batch));
        expect(await log().advanceRelay(batch.after, last.cursor)).to.equal(true);
      }
    };
    const shown = (session: Session, ...versions: number[]) => versions.map((version) => `${session.id} ${version}`);

    it('begins with the next change, and contains only public properties', async () => {
      await fetch(await open());
      await log().startRelay();
      const session = await open({ kind: 'verification' });
      await fetch(session);
      await log().startRelay();
      const { events, isBehind } = await next();
      expect(isBehind).to.equal(false);
      expect(events.map(({ cursor: _place, ...event }) => event)).to.deep.equal([
        { tenantId, sessionId: session.id, kind: 'verification', version: 1, status: 'active', at: NOW },
        { tenantId, sessionId: session.id, kind: 'verification', version: 2, status: 'fetched', at: seconds(1) },
      ]);
    });

    it('returns all events of all tenants once, with a cursor that advances in steps of any size', async () => {
      await log().startRelay();
      const other = await addTenant(store);
      const sessions = await Promise.all(Array.from({ length: 12 }, (_, index) => open({}, index % 2 === 0 ? tenantId : other)));
      await Promise.all(sessions.map(fetch));
      await Promise.all(sessions.map(fail));
      expect(told(await next(4))).to.have.length(4);
      expect(told(await next(4)), 'the place did not move').to.deep.equal(told(await next(4)));
      const all = await handOn(5);
      expect(all).to.have.members(sessions.flatMap((session) => shown(session, 1, 2, 3)));
      for (const session of sessions) {
        const own = all.filter((event) => event.startsWith(session.id));
        expect(own).to.deep.equal(shown(session, 1, 2, 3));
      }
      expect(await handOn()).to.deep.equal([]);
    });

    it('contains sessions that expire, many in one transaction', async () => {
      await log().startRelay();
      const sessions = await Promise.all(Array.from({ length: 7 }, () => open({ expiresAt: NOW })));
      await log().expireSessions(seconds(1), 100);
      const all = await handOn(3);
      expect(all).to.have.members(sessions.flatMap((session) => shown(session, 1, 2)));
      expect(new Set(all).size).to.equal(all.length);
    });

    it('advances its cursor only from the cursor that the caller read', async () => {
      await log().startRelay();
      await fetch(await open());
      const { after, events } = await next();
      const [first, second] = events.map(({ cursor: place }) => place) as [RelayCursor, RelayCursor];
      expect(await log().advanceRelay(after, second)).to.equal(true);
      expect(await log().advanceRelay(after, first), 'a process that was asleep').to.equal(false);
      expect(await handOn()).to.deep.equal([]);
    });

    it('is forwarded by one process, and by another one when that process ends or is silent', async () => {
      await log().startRelay();
      const isTaken = async (holder: string, leaseSeconds: number) => (await log().nextEvents(holder, leaseSeconds, LIMIT)) !== undefined;
      expect(await isTaken('one', 60)).to.equal(true);
      expect(await isTaken('two', 60)).to.equal(false);
      expect(await isTaken('one', 60)).to.equal(true);
      await log().releaseRelay('two');
      expect(await isTaken('two', 60), 'what others leave').to.equal(false);
      await log().releaseRelay('one');
      expect(await isTaken('two', 0.05)).to.equal(true);
      await new Promise((resolve) => setTimeout(resolve, 60));
      expect(await isTaken('one', 60)).to.equal(true);
    });

    it('is not forwarded before it begins', async () => {
      expect(await log().nextEvents(ME, 60, LIMIT)).to.equal(undefined);
    });

    it('returns all later events after the newest sessions were removed', async () => {
      await log().startRelay();
      const gone = [await open(), await open(), await open()];
      await handOn();
      for (const { id } of gone) await store.commit(tenantId, { removes: id }, NOW);
      const session = await open();
      await fetch(session);
      expect(await handOn()).to.deep.equal(shown(session, 1, 2));
    });

    it('skips the events of a removed session, and returns no event without its type', async () => {
      await log().startRelay();
      const gone = await open();
      await store.commit(tenantId, { removes: gone.id }, NOW);
      const orphan = await open();
      await raw(`delete from sessions where id = '${orphan.id}'`);
      const batch = await next();
      expect(told(batch)).to.deep.equal(shown(orphan, 1));
      expect(batch.events[0]?.kind).to.equal(undefined);
    });

    it('reports how many unforwarded events the clean-up removed', async () => {
      const cleanUp = () => log().cleanUpSessions(seconds(90_000), 100, { ttlSeconds: 86_400 });
      await fail(await open());
      expect(await cleanUp(), 'nobody is to be told').to.deep.equal({ removed: 1, anonymized: 0 });
      await log().startRelay();
      await fail(await open());
      await handOn();
      await fail(await open());
      await fail(await open());
      expect(await cleanUp()).to.deep.equal({ removed: 3, anonymized: 0, unsent: 4 });
    });

    if (kind.name !== 'postgres') return;

    describe('with concurrent writers', () => {
      let clients: Client[];
      let close: () => Promise<void>;
      beforeEach(async () => {
        const orm = await connect({ url: database?.url ?? '', poolSize: 4 });
        const pool = (await orm.em.getConnection().getNativeClient()) as { connect(): Promise<Client> };
        clients = await Promise.all([pool.connect(), pool.connect()]);
        close = async () => {
          for (const client of clients) {
            await client.query('rollback');
            client.release();
          }
          await orm.close();
        };
      });
      afterEach(() => close());
      const logEvent = (id: SessionId, version: number) =>
        `insert into session_events (tenant_id, session_id, version, status, at)
         values ('${tenantId}', '${id}', ${version}, 'failed', 0)`;
      const takeId = 'select pg_current_xact_id()';

      it('waits for a transaction that began earlier and commits late', async () => {
        const [late] = clients as [Client, Client];
        await log().startRelay();
        const before = await open();
        expect(await handOn()).to.deep.equal(shown(before, 1));
        await late.query('begin');
        await late.query(logEvent(before.id, 2));
        const others = [await open(), await open()];
        expect(await handOn(), 'nothing passes the one that is open').to.deep.equal([]);
        await late.query('commit');
        expect(await handOn()).to.deep.equal([before, ...others].flatMap((one, i) => shown(one, i === 0 ? 2 : 1)));
      });

      it('continues after an open transaction is rolled back', async () => {
        const [late] = clients as [Client, Client];
        await log().startRelay();
        await late.query('begin');
        await late.query(logEvent('nobody' as SessionId, 1));
        const session = await open();
        expect(await handOn()).to.deep.equal([]);
        await late.query('rollback');
        expect(await handOn()).to.deep.equal(shown(session, 1));
      });

      for (const limit of [1, LIMIT]) {
        it(`keeps the order of a session whose later event has the lower position, ${limit} at a time`, async () => {
          const [early, open_] = clients as [Client, Client];
          await log().startRelay();
          const session = await open();
          const isOwn = (event: string) => event.startsWith(session.id);
          // Transactions of other databases of this server hold events up as well.
          while (!(await handOn()).some(isOwn)) await new Promise((resolve) => setTimeout(resolve, 20));
          // This one has its id, and then waits for the session.
          await early.query('begin');
          await early.query(takeId);
          await open_.query('begin');
          await open_.query(takeId);
          await fetch(session);
          await early.query(logEvent(session.id, 3));
          await early.query('commit');
          expect(await handOn(limit), 'the event before is not complete yet').to.deep.equal([]);
          await fail(await open());
          await open_.query('commit');
          const own: string[] = [];
          while (own.length < 2) own.push(...(await handOn(limit)).filter(isOwn));
          expect(own).to.deep.equal(shown(session, 2, 3));
        });
      }

      it('restarts once when a restored database counts from lower numbers', async () => {
        await log().startRelay();
        const sent = await open();
        await handOn();
        const unsent = await open();
        await raw('update session_events set position = position + 1000000000');
        await raw('update event_cursors set position = position + 1000000000');
        const fresh = await open();
        await fetch(unsent);
        expect((await next()).isBehind).to.equal(true);
        expect(await log().renumber(1)).to.equal(1);
        expect((await next()).isBehind, 'not all of it').to.equal(true);
        while ((await log().renumber(1)) > 0);
        expect((await next()).isBehind).to.equal(false);
        const all = await handOn();
        expect(all).to.include.members([...shown(fresh, 1), ...shown(unsent, 1, 2)]);
        expect(all, 'what was handed on before').to.not.include(shown(sent, 1)[0]);
        expect(all.filter((event) => event.startsWith(unsent.id))).to.deep.equal(shown(unsent, 1, 2));
        const last = await open();
        expect(await handOn()).to.deep.equal(shown(last, 1));
      });

      it('reads a page at the same cost among many events as among few', async () => {
        await raw(`insert into session_events (tenant_id, session_id, version, status, at)
          select '${tenantId}', 's' || i / 3, i % 3 + 1, 'failed', 0 from generate_series(1, 60000) i`);
        await log().startRelay();
        const session = await open();
        const reads = async () => {
          const [row] = await raw(`select sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0)) as blocks
            from pg_statio_user_tables where relname = 'session_events'`);
          return Number(row?.['blocks']);
        };
        const settled = async () => {
          await raw('select pg_stat_force_next_flush()');
          return reads();
        };
        const before = await settled();
        expect(told(await next())).to.deep.equal(shown(session, 1));
        // A connection reports what it did a second later at the latest.
        await store.close();
        expect((await settled()) - before).to.be.lessThan(50);
        store = await OrmStore.open({ url: database?.url ?? '', poolSize: 4 }, cipher);
      });
    });
  });
}

type Run = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Places are those of the whole server, which waits for what was written before; other databases are other tests. */
async function untilOtherDatabasesEnd(kind: string, run: Run): Promise<void> {
  if (kind !== 'postgres') return;
  const writing = async () => {
    const rows = await run(`select pid || ' ' || backend_xid as one from pg_stat_activity
      where backend_xid is not null and datname is distinct from current_database()`);
    return rows.map((row) => String(row['one']));
  };
  const before = await writing();
  for (let present = before; before.some((one) => present.includes(one)); present = await writing()) await pause(5);
}

describeUpgrade('event log of a release without forwarding', (upgrade, kind) => {
  it('is kept, begins with later changes, and accepts events of the previous release', async () => {
    const { url, start, downgrade: goBack } = upgrade();
    const { Store } = await import('../../application/ports/store.ts');
    const older = await start();
    const first = older.service.container.get(Store);
    const tenantId = await addTenant(first);
    const session = aSession(tenantId, { request: null });
    await stepsOf(first, tenantId).commit(sessionOpening(session));
    await older.close();
    await goBack('Migration00000000000008_commit');

    const store = (await start()).service.container.get(Store);
    const steps = stepsOf(store, tenantId);
    expect(await steps.sessionEvents(session.id, 0, 10)).to.have.length(1);
    await store.maintenance.startRelay();
    await steps.fetchSession(session.publicId, NOW);
    // SQLite belongs to one process, which was started on the older release again.
    await rawSql(url, (run) =>
      run(`insert into session_events (tenant_id, session_id, version, status, at)
        values ('${tenantId}', '${session.id}', 3, 'failed', 0)`),
    );
    await rawSql(url, (run) => untilOtherDatabasesEnd(kind, run));
    const batch = await store.maintenance.nextEvents(ME, LEASE_SECONDS, LIMIT);
    expect(
      batch?.events.map(({ version }) => version),
      kind,
    ).to.deep.equal([2, 3]);
  });
});
