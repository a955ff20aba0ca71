import { expect } from 'chai';
import sinon from 'sinon';
import { StoreUnavailable } from '../../../application/ports/store.ts';
import { FetchedSessions } from '../../../application/sessions/fetched-sessions.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { ACME, aSession, aWorld } from '../administration/world.ts';

const OTHER = 'other' as TenantId;

describe('Sessions that wallets fetched', () => {
  let world: ReturnType<typeof aWorld>;
  let fetched: FetchedSessions;
  let woken: string[];

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    await world.hasStranger(OTHER);
    fetched = new FetchedSessions(world);
    woken = [];
    world.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'session') woken.push(wakeUp.sessionId);
    });
  });
  afterEach(() => sinon.restore());

  const open = async (number: number, changes: Partial<Session> = {}) => {
    const session = aSession(world.clock, number, changes);
    await stepsOf(world.store, session.tenantId).openSession(session);
    return session;
  };
  const statusOf = async ({ tenantId, id }: Session) =>
    (await stepsOf(world.store, tenantId).findSession(id))?.status;

  it('are written together, and those who watch them are woken', async () => {
    const sessions = [await open(1), await open(2), await open(3)];
    const note = sinon.spy(world.store, 'note');
    for (const session of [...sessions, ...sessions]) fetched.note(session);
    expect(note.callCount).to.equal(0);
    await fetched.flush();
    expect(note.callCount).to.equal(1);
    expect(await Promise.all(sessions.map(statusOf))).to.deep.equal(['fetched', 'fetched', 'fetched']);
    expect(woken.sort()).to.deep.equal(sessions.map(({ id }) => id).sort());
  });

  it('are written after a moment by themselves', async () => {
    const session = await open(1);
    fetched.note(session);
    while ((await statusOf(session)) !== 'fetched') await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await statusOf(session)).to.equal('fetched');
  });

  it('are written at once when many wait', async () => {
    const note = sinon.stub(world.store, 'note').resolves([]);
    for (let number = 0; number < 450; number++) fetched.note(aSession(world.clock, number));
    await fetched.settled(ACME);
    expect(note.args.map(([, ids]) => ids.length)).to.deep.equal([200, 200, 50]);
  });

  it('are seen by who reads the tenant afterwards, who waits for no other tenant', async () => {
    const [own, others] = [await open(1), await open(2, { tenantId: OTHER })];
    fetched.note(own);
    fetched.note(others);
    await fetched.settled(ACME);
    expect([await statusOf(own), await statusOf(others)]).to.deep.equal(['fetched', 'active']);
    expect(fetched.settled(ACME)).to.equal(undefined);
    await fetched.flush();
    expect(await statusOf(others)).to.equal('fetched');
  });

  it('wait for what is being written of them', async () => {
    const session = await open(1);
    let release = () => {};
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const write = world.store.note.bind(world.store);
    sinon.stub(world.store, 'note').callsFake(async (...asked) => {
      await blocked;
      return write(...asked);
    });
    fetched.note(session);
    const [first, second] = [fetched.settled(ACME), fetched.settled(ACME)];
    release();
    await second;
    expect(await statusOf(session)).to.equal('fetched');
    await first;
  });

  it('are not noted when they move on before that is written', async () => {
    const note = sinon.spy(world.store, 'note');
    const [quick, slow] = [await open(1), await open(2)];
    for (const session of [quick, slow]) fetched.note(session);
    world.eventBus.publish({ type: 'session', tenantId: ACME, sessionId: quick.id });
    await fetched.flush();
    fetched.note(quick);
    world.eventBus.publish({ type: 'session', tenantId: ACME, sessionId: quick.id });
    expect(fetched.settled(ACME)).to.equal(undefined);
    expect(note.args.map(([, ids]) => ids)).to.deep.equal([[slow.id]]);
  });

  it('are not noted when they moved on before', async () => {
    const note = sinon.spy(world.store, 'note');
    fetched.note(await open(1, { status: 'completed' }));
    fetched.note(await open(2, { status: 'fetched' }));
    await fetched.flush();
    expect(note.callCount).to.equal(0);
  });

  it('are told of in the log when they cannot be written, and nothing else happens', async () => {
    const told = sinon.spy(world.log, 'error');
    sinon.stub(world.store, 'note').rejects(new StoreUnavailable('gone'));
    fetched.note({ ...aSession(world.clock, 1), id: 'lost' as SessionId });
    await fetched.flush();
    expect(told.callCount).to.equal(1);
    expect((told.args[0] as readonly unknown[] | undefined)?.[1]).to.deep.equal({
      tenantId: ACME,
      sessions: 1,
    });
    expect(fetched.settled(ACME)).to.equal(undefined);
  });
});
