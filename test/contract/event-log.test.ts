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
const HOLDER = 'this process';

/** A separate connection for transactions that stay open. */
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
    const openSession = async (changes: Partial<Session> = {}, owner = tenantId) => {
      const session = aSession(owner, { request: null, ...changes });
      await stepsOf(store, owner).commit(sessionOpening(session));
      return session;
    };
    const fetchSession = (session: Session) => stepsOf(store, session.tenantId).fetchSession(session.publicId, seconds(1));
    const failSession = (session: Session) => store.commit(session.tenantId, { session: advance(session, 'fail') }, seconds(2));
    const waitForOthers = () => waitForOtherDatabases(kind.name, raw);
    const next = async (limit = LIMIT, holder = HOLDER): Promise<LogBatch> => {
      await waitForOthers();
      const batch = await log().nextEvents(holder, LEASE_SECONDS, limit);
      if (batch === undefined) throw new Error('another process has the lease');
      return batch;
    };
    const describeEvents = ({ events }: LogBatch) => events.map((event) => `${event.sessionId} ${event.version}`);
    /** Forwards all events, up to `limit` at a time. */
    const forwardAll = async (limit = LIMIT): Promise<string[]> => {
      const all: string[] = [];
      for (;;) {
        const batch = await next(limit);
        const last = batch.events.at(-1);
        if (last === undefined) return all;
        all.push(...describeEvents(batch));
        expect(await log().advanceRelay(batch.after, last.cursor)).to.equal(true);
      }
    };
    const expectedEvents = (session: Session, ...versions: number[]) => versions.map((version) => `${session.id} ${version}`);

    it('begins with the next change, and contains only public properties', async () => {
      await fetchSession(await openSession());
      await log().startRelay();
      const session = await openSession({ kind: 'verification' });
      await fetchSession(session);
      await log().startRelay();
      const { events, needsRenumbering } = await next();
      expect(needsRenumbering).to.equal(false);
      expect(events.map(({ cursor: _cursor, ...event }) => event)).to.deep.equal([
        { tenantId, sessionId: session.id, kind: 'verification', version: 1, status: 'active', at: NOW },
        { tenantId, sessionId: session.id, kind: 'verification', version: 2, status: 'fetched', at: seconds(1) },
      ]);
    });

    it('returns all events of all tenants once, with a cursor that advances in steps of any size', async () => {
      await log().startRelay();
      const otherTenant = await addTenant(store);
      const sessions = await Promise.all(
        Array.from({ length: 12 }, (_, index) => openSession({}, index % 2 === 0 ? tenantId : otherTenant)),
      );
      await Promise.all(sessions.map(fetchSession));
      await Promise.all(sessions.map(failSession));
      expect(describeEvents(await next(4))).to.have.length(4);
      expect(describeEvents(await next(4)), 'the cursor did not move').to.deep.equal(describeEvents(await next(4)));
      const all = await forwardAll(5);
      expect(all).to.have.members(sessions.flatMap((session) => expectedEvents(session, 1, 2, 3)));
      for (const session of sessions) {
        const sessionEvents = all.filter((event) => event.startsWith(session.id));
        expect(sessionEvents).to.deep.equal(expectedEvents(session, 1, 2, 3));
      }
      expect(await forwardAll()).to.deep.equal([]);
    });

    it('contains sessions that expire, many in one transaction', async () => {
      await log().startRelay();
      const sessions = await Promise.all(Array.from({ length: 7 }, () => openSession({ expiresAt: NOW })));
      await log().expireSessions(seconds(1), 100);
      const all = await forwardAll(3);
      expect(all).to.have.members(sessions.flatMap((session) => expectedEvents(session, 1, 2)));
      expect(new Set(all).size).to.equal(all.length);
    });

    it('advances its cursor only from the cursor that the caller read', async () => {
      await log().startRelay();
      await fetchSession(await openSession());
      const { after, events } = await next();
      const [first, second] = events.map(({ cursor }) => cursor) as [RelayCursor, RelayCursor];
      expect(await log().advanceRelay(after, second)).to.equal(true);
      expect(await log().advanceRelay(after, first), 'by a process with an outdated cursor').to.equal(false);
      expect(await forwardAll()).to.deep.equal([]);
    });

    it('is forwarded by one process, and by another one when that process stops or does not respond', async () => {
      await log().startRelay();
      const getsEvents = async (holder: string, leaseSeconds: number) =>
        (await log().nextEvents(holder, leaseSeconds, LIMIT)) !== undefined;
      expect(await getsEvents('one', 60)).to.equal(true);
      expect(await getsEvents('two', 60)).to.equal(false);
      expect(await getsEvents('one', 60)).to.equal(true);
      await log().releaseRelay('two');
      expect(await getsEvents('two', 60), 'while another process holds the lease').to.equal(false);
      await log().releaseRelay('one');
      expect(await getsEvents('two', 0.05)).to.equal(true);
      await new Promise((resolve) => setTimeout(resolve, 60));
      expect(await getsEvents('one', 60)).to.equal(true);
    });

    it('is not forwarded before it begins', async () => {
      expect(await log().nextEvents(HOLDER, 60, LIMIT)).to.equal(undefined);
    });

    it('returns all later events after the newest sessions were removed', async () => {
      await log().startRelay();
      const removedSessions = [await openSession(), await openSession(), await openSession()];
      await forwardAll();
      for (const { id } of removedSessions) await store.commit(tenantId, { removes: id }, NOW);
      const session = await openSession();
      await fetchSession(session);
      expect(await forwardAll()).to.deep.equal(expectedEvents(session, 1, 2));
    });

    it('skips the events of a removed session, and returns no event without its type', async () => {
      await log().startRelay();
      const removedSession = await openSession();
      await store.commit(tenantId, { removes: removedSession.id }, NOW);
      const orphan = await openSession();
      await raw(`delete from sessions where id = '${orphan.id}'`);
      const batch = await next();
      expect(describeEvents(batch)).to.deep.equal(expectedEvents(orphan, 1));
      expect(batch.events[0]?.kind).to.equal(undefined);
    });

    it('reports how many unforwarded events the clean-up removed', async () => {
      const cleanUpSessions = () => log().cleanUpSessions(seconds(90_000), 100, { ttlSeconds: 86_400 });
      await failSession(await openSession());
      expect(await cleanUpSessions(), 'an anonymized session has no event').to.deep.equal({ removed: 1, anonymized: 0 });
      await log().startRelay();
      await failSession(await openSession());
      await forwardAll();
      await failSession(await openSession());
      await failSession(await openSession());
      expect(await cleanUpSessions()).to.deep.equal({ removed: 3, anonymized: 0, unsent: 4 });
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
      const ASSIGN_TRANSACTION_ID = 'select pg_current_xact_id()';

      it('waits for a transaction that began earlier and commits late', async () => {
        const [lateClient] = clients as [Client, Client];
        await log().startRelay();
        const before = await openSession();
        expect(await forwardAll()).to.deep.equal(expectedEvents(before, 1));
        await lateClient.query('begin');
        await lateClient.query(logEvent(before.id, 2));
        const laterSessions = [await openSession(), await openSession()];
        expect(await forwardAll(), 'no event overtakes the open transaction').to.deep.equal([]);
        await lateClient.query('commit');
        expect(await forwardAll()).to.deep.equal(
          [before, ...laterSessions].flatMap((session, i) => expectedEvents(session, i === 0 ? 2 : 1)),
        );
      });

      it('continues after an open transaction is rolled back', async () => {
        const [lateClient] = clients as [Client, Client];
        await log().startRelay();
        await lateClient.query('begin');
        await lateClient.query(logEvent('rolled-back' as SessionId, 1));
        const session = await openSession();
        expect(await forwardAll()).to.deep.equal([]);
        await lateClient.query('rollback');
        expect(await forwardAll()).to.deep.equal(expectedEvents(session, 1));
      });

      for (const limit of [1, LIMIT]) {
        it(`keeps the order of a session whose later event has the lower position, ${limit} at a time`, async () => {
          const [earlyClient, openClient] = clients as [Client, Client];
          await log().startRelay();
          const session = await openSession();
          const isOfSession = (event: string) => event.startsWith(session.id);
          // Transactions of other databases of this server delay events as well.
          while (!(await forwardAll()).some(isOfSession)) await new Promise((resolve) => setTimeout(resolve, 20));
          // This transaction has its identifier, and then waits for the session.
          await earlyClient.query('begin');
          await earlyClient.query(ASSIGN_TRANSACTION_ID);
          await openClient.query('begin');
          await openClient.query(ASSIGN_TRANSACTION_ID);
          await fetchSession(session);
          await earlyClient.query(logEvent(session.id, 3));
          await earlyClient.query('commit');
          expect(await forwardAll(limit), 'an earlier event is not committed yet').to.deep.equal([]);
          await failSession(await openSession());
          await openClient.query('commit');
          const events: string[] = [];
          while (events.length < 2) events.push(...(await forwardAll(limit)).filter(isOfSession));
          expect(events).to.deep.equal(expectedEvents(session, 2, 3));
        });
      }

      it('restarts once when a restored database counts from lower numbers', async () => {
        await log().startRelay();
        const forwarded = await openSession();
        await forwardAll();
        const unforwarded = await openSession();
        await raw('update session_events set position = position + 1000000000');
        await raw('update event_cursors set position = position + 1000000000');
        const later = await openSession();
        await fetchSession(unforwarded);
        expect((await next()).needsRenumbering).to.equal(true);
        expect(await log().renumber(1)).to.equal(1);
        expect((await next()).needsRenumbering, 'some events are not renumbered').to.equal(true);
        while ((await log().renumber(1)) > 0);
        expect((await next()).needsRenumbering).to.equal(false);
        const all = await forwardAll();
        expect(all).to.include.members([...expectedEvents(later, 1), ...expectedEvents(unforwarded, 1, 2)]);
        expect(all, 'events that were forwarded before').to.not.include(expectedEvents(forwarded, 1)[0]);
        expect(all.filter((event) => event.startsWith(unforwarded.id))).to.deep.equal(expectedEvents(unforwarded, 1, 2));
        const last = await openSession();
        expect(await forwardAll()).to.deep.equal(expectedEvents(last, 1));
      });

      it('reads a page at the same cost among many events as among few', async () => {
        await raw(`insert into session_events (tenant_id, session_id, version, status, at)
          select '${tenantId}', 's' || i / 3, i % 3 + 1, 'failed', 0 from generate_series(1, 60000) i`);
        await log().startRelay();
        const session = await openSession();
        const reads = async () => {
          const [row] = await raw(`select sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0)) as blocks
            from pg_statio_user_tables where relname = 'session_events'`);
          return Number(row?.['blocks']);
        };
        const readsAfterFlush = async () => {
          await raw('select pg_stat_force_next_flush()');
          return reads();
        };
        const before = await readsAfterFlush();
        expect(describeEvents(await next())).to.deep.equal(expectedEvents(session, 1));
        // A connection reports its statistics with a delay of up to a second.
        await store.close();
        expect((await readsAfterFlush()) - before).to.be.lessThan(50);
        store = await OrmStore.open({ url: database?.url ?? '', poolSize: 4 }, cipher);
      });
    });
  });
}

type Run = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Positions belong to the whole server, which waits for earlier transactions; other databases belong to other tests. */
async function waitForOtherDatabases(kind: string, run: Run): Promise<void> {
  if (kind !== 'postgres') return;
  const writing = async () => {
    const rows = await run(`select pid || ' ' || backend_xid as one from pg_stat_activity
      where backend_xid is not null and datname is distinct from current_database()`);
    return rows.map((row) => String(row['one']));
  };
  const before = await writing();
  for (let present = before; before.some((transaction) => present.includes(transaction)); present = await writing()) await pause(5);
}

describeUpgrade('event log of a release without forwarding', (upgrade, kind) => {
  it('is kept, begins with later changes, and accepts events of the previous release', async () => {
    const { url, start, downgrade: goBack } = upgrade();
    const { Store } = await import('../../application/ports/store.ts');
    const olderStore = await start();
    const first = olderStore.service.container.get(Store);
    const tenantId = await addTenant(first);
    const session = aSession(tenantId, { request: null });
    await stepsOf(first, tenantId).commit(sessionOpening(session));
    await olderStore.close();
    await goBack('Migration00000000000008_commit');

    const store = (await start()).service.container.get(Store);
    const steps = stepsOf(store, tenantId);
    expect(await steps.sessionEvents(session.id, 0, 10)).to.have.length(1);
    await store.maintenance.startRelay();
    await steps.fetchSession(session.publicId, NOW);
    // SQLite belongs to one process, which was restarted with the older release.
    await rawSql(url, (run) =>
      run(`insert into session_events (tenant_id, session_id, version, status, at)
        values ('${tenantId}', '${session.id}', 3, 'failed', 0)`),
    );
    await rawSql(url, (run) => waitForOtherDatabases(kind, run));
    const batch = await store.maintenance.nextEvents(HOLDER, LEASE_SECONDS, LIMIT);
    expect(
      batch?.events.map(({ version }) => version),
      kind,
    ).to.deep.equal([2, 3]);
  });
});
