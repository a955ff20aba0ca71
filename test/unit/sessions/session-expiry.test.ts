import { expect } from 'chai';
import sinon from 'sinon';
import type { EventBus } from '../../../application/ports/event-bus.ts';
import type { ExpiryCursor, Maintenance, SessionKey } from '../../../application/ports/maintenance.ts';
import { type Store, StoreUnavailableError } from '../../../application/ports/store.ts';
import { ExpireSessions } from '../../../application/sessions/expire-sessions.ts';
import { FetchedSessions } from '../../../application/sessions/fetched-sessions.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { sessionOpening, stepsOf } from '../../contract/store/steps.ts';
import { ACME, aSession, aWorld } from '../administrators.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const START = new Date('2026-11-28T08:00:00Z');
const startPlus = (milliseconds: number) => new Date(START.getTime() + milliseconds);

describe('job that expires sessions', () => {
  type ScannedRange = { readonly from: number | undefined; readonly until: number };
  let scannedRanges: ScannedRange[];
  let published: unknown[];
  let pages: { expired?: SessionKey[]; overdue?: SessionKey[]; next?: ExpiryCursor }[];
  let job: ExpireSessions;
  let isUnavailable: boolean;

  beforeEach(() => {
    scannedRanges = [];
    published = [];
    pages = [];
    isUnavailable = false;
    const maintenance: Pick<Maintenance, 'expireSessions'> = {
      async expireSessions(_now, _limit, range) {
        if (isUnavailable) throw new Error('the database is away');
        scannedRanges.push({ from: range?.after?.[0], until: range?.until?.getTime() ?? Number.NaN });
        const { expired = [], overdue = [], next } = pages.shift() ?? {};
        return { expired, overdue, next };
      },
    };
    job = new ExpireSessions({
      store: { maintenance } as unknown as Store,
      eventBus: { publish: (event: unknown) => published.push(event) } as unknown as EventBus,
    });
  });

  /** Runs until no session is due. @returns the number of batches. */
  const run = async (now: Date): Promise<number> => {
    const step = job.begin(now, 500);
    for (let batches = 1; ; batches++) if (!(await step()).mayBeMore) return batches;
  };

  it('visits all sessions that expired until now in the first run of a process', async () => {
    await run(START);
    expect(scannedRanges).to.deep.equal([{ from: undefined, until: START.getTime() }]);
  });

  it('visits sessions that expired since the last run minus two minutes, and all others again an hour later', async () => {
    await run(START);
    scannedRanges = [];
    await run(startPlus(30_000));
    const from = START.getTime();
    expect(scannedRanges).to.deep.equal([
      { from: from - 2 * MINUTE_MS, until: from + 30_000 },
      { from: from - HOUR_MS, until: from + 30_000 - HOUR_MS },
    ]);
  });

  it('overlaps runs, so that each expiry is visited twice', async () => {
    await run(START);
    scannedRanges = [];
    for (let tick = 1; tick <= 4; tick++) await run(startPlus(tick * 30_000));
    for (const range of [0, 1]) {
      const ofRange = scannedRanges.filter((_, index) => index % 2 === range);
      for (const [index, { from }] of ofRange.entries()) if (index > 0) expect(from).to.be.at.most(ofRange[index - 1]?.until ?? 0);
    }
  });

  it('visits all sessions again after a day', async () => {
    await run(START);
    await run(startPlus(23 * HOUR_MS));
    scannedRanges = [];
    await run(startPlus(24 * HOUR_MS));
    expect(scannedRanges).to.deep.equal([{ from: undefined, until: startPlus(24 * HOUR_MS).getTime() }]);
  });

  it('visits all sessions after the clock of the database was set back', async () => {
    await run(START);
    scannedRanges = [];
    await run(startPlus(-HOUR_MS));
    expect(scannedRanges).to.deep.equal([{ from: undefined, until: startPlus(-HOUR_MS).getTime() }]);
  });

  it('continues at the point where a run was interrupted, and counts as complete only at the end', async () => {
    const cursor: ExpiryCursor = [START.getTime() - HOUR_MS, 'acme', 'session'];
    pages = [{ next: cursor }, {}];
    expect((await job.begin(START, 500)()).mayBeMore).to.equal(true);
    await run(startPlus(30_000));
    expect(scannedRanges).to.deep.equal([
      { from: undefined, until: START.getTime() },
      { from: cursor[0], until: START.getTime() },
    ]);
    scannedRanges = [];
    await run(startPlus(60_000));
    expect(scannedRanges[0]?.from).to.equal(START.getTime() - 2 * MINUTE_MS);
  });

  it('visits a batch again whose statement failed', async () => {
    await run(START);
    scannedRanges = [];
    const step = job.begin(startPlus(30_000), 500);
    isUnavailable = true;
    expect(await step().catch((error: Error) => error.message)).to.equal('the database is away');
    isUnavailable = false;
    await run(startPlus(60_000));
    expect(scannedRanges[0]).to.deep.equal({ from: START.getTime() - 2 * MINUTE_MS, until: START.getTime() + 30_000 });
  });

  it('notifies streams of each expired session, and returns those with a response', async () => {
    const expired = { tenantId: 'acme' as TenantId, id: 'gone' as SessionId };
    const overdue = { tenantId: 'acme' as TenantId, id: 'answered' as SessionId };
    pages = [{ expired: [expired], overdue: [overdue] }];
    const step = await job.begin(START, 500)();
    expect(step).to.deep.equal({ expired: 1, overdue: [overdue], mayBeMore: false });
    expect(published).to.deep.equal([{ type: 'session', tenantId: 'acme', sessionId: 'gone' }]);
  });
});

const OTHER = 'other' as TenantId;

describe('sessions that wallets fetched', () => {
  let world: ReturnType<typeof aWorld>;
  let fetched: FetchedSessions;
  let wakeUps: string[];

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    await world.addOtherTenant(OTHER);
    fetched = new FetchedSessions(world);
    wakeUps = [];
    world.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'session') wakeUps.push(wakeUp.sessionId);
    });
  });
  afterEach(() => sinon.restore());

  const open = async (number: number, changes: Partial<Session> = {}) => {
    const session = aSession(world.clock, number, changes);
    await stepsOf(world.store, session.tenantId).commit(sessionOpening(session));
    return session;
  };
  const statusOf = async ({ tenantId, id }: Session) => (await stepsOf(world.store, tenantId).session(id))?.session?.status;

  it('are written together, and their streams are notified', async () => {
    const sessions = [await open(1), await open(2), await open(3)];
    const noteFetched = sinon.spy(world.store, 'note');
    for (const session of [...sessions, ...sessions]) fetched.note(session);
    expect(noteFetched.callCount).to.equal(0);
    await fetched.flush();
    expect(noteFetched.callCount).to.equal(1);
    expect(await Promise.all(sessions.map(statusOf))).to.deep.equal(['fetched', 'fetched', 'fetched']);
    expect(wakeUps.sort()).to.deep.equal(sessions.map(({ id }) => id).sort());
  });

  it('are written after a short delay', async () => {
    const session = await open(1);
    fetched.note(session);
    while ((await statusOf(session)) !== 'fetched') await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await statusOf(session)).to.equal('fetched');
  });

  it('are written immediately when many wait', async () => {
    const writeAll: Store['note'] = async (_tenantId, ids) => ids.map((id) => ({ id, version: 2 }));
    const noteFetched = sinon.stub(world.store, 'note').callsFake(writeAll);
    for (let number = 0; number < 450; number++) fetched.note(aSession(world.clock, number));
    await fetched.flushTenant(ACME);
    expect(noteFetched.args.map(([, ids]) => ids.length)).to.deep.equal([200, 200, 50]);
  });

  it('are written before the tenant is read, which waits for no other tenant', async () => {
    const [ownSession, otherSession] = [await open(1), await open(2, { tenantId: OTHER })];
    fetched.note(ownSession);
    fetched.note(otherSession);
    await fetched.flushTenant(ACME);
    expect([await statusOf(ownSession), await statusOf(otherSession)]).to.deep.equal(['fetched', 'active']);
    expect(fetched.flushTenant(ACME)).to.equal(undefined);
    await fetched.flush();
    expect(await statusOf(otherSession)).to.equal('fetched');
  });

  it('wait for a pending write of the same session', async () => {
    const session = await open(1);
    let release = () => {};
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const write = world.store.note.bind(world.store);
    sinon.stub(world.store, 'note').callsFake(async (...parameters) => {
      await blocked;
      return write(...parameters);
    });
    fetched.note(session);
    const [first, second] = [fetched.flushTenant(ACME), fetched.flushTenant(ACME)];
    release();
    await second;
    expect(await statusOf(session)).to.equal('fetched');
    await first;
  });

  it('are written for the next reader if the first write skipped them, because their rows were locked', async () => {
    const session = await open(1);
    const noteFetched = sinon.stub(world.store, 'note').onFirstCall().resolves([]);
    noteFetched.callThrough();
    fetched.note(session);
    await fetched.flush();
    expect(await statusOf(session)).to.equal('active');
    await fetched.flushTenant(ACME);
    expect(await statusOf(session)).to.equal('fetched');
    expect(fetched.flushTenant(ACME)).to.equal(undefined);
  });

  it('are given up after three writes that skip them', async () => {
    const noteFetched = sinon.stub(world.store, 'note').resolves([]);
    fetched.note(await open(1));
    for (let write = 1; write <= 5; write++) await fetched.flushTenant(ACME);
    expect(noteFetched.callCount).to.equal(3);
  });

  it('are not marked as fetched if they change before the write', async () => {
    const noteFetched = sinon.spy(world.store, 'note');
    const [quick, slow] = [await open(1), await open(2)];
    for (const session of [quick, slow]) fetched.note(session);
    world.eventBus.publish({ type: 'session', tenantId: ACME, sessionId: quick.id });
    await fetched.flush();
    fetched.note(quick);
    world.eventBus.publish({ type: 'session', tenantId: ACME, sessionId: quick.id });
    expect(fetched.flushTenant(ACME)).to.equal(undefined);
    expect(noteFetched.args.map(([, ids]) => ids)).to.deep.equal([[slow.id]]);
  });

  it('are not marked as fetched if they changed before', async () => {
    const noteFetched = sinon.spy(world.store, 'note');
    fetched.note(await open(1, { status: 'completed' }));
    fetched.note(await open(2, { status: 'fetched' }));
    await fetched.flush();
    expect(noteFetched.callCount).to.equal(0);
  });

  it('are logged when they cannot be written, without other effects', async () => {
    const errorLog = sinon.spy(world.log, 'error');
    sinon.stub(world.store, 'note').rejects(new StoreUnavailableError('gone'));
    fetched.note({ ...aSession(world.clock, 1), id: 'lost' as SessionId });
    await fetched.flush();
    expect(errorLog.callCount).to.equal(1);
    expect((errorLog.args[0] as readonly unknown[] | undefined)?.[1]).to.deep.equal({ tenantId: ACME, sessions: 1 });
    expect(fetched.flushTenant(ACME)).to.equal(undefined);
  });
});
