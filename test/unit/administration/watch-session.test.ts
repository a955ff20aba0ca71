import { expect } from 'chai';
import sinon from 'sinon';
import { SessionWatcher } from '../../../application/sessions/session-watcher.ts';
import { type StatusMessage, WatchSession } from '../../../application/sessions/watch-session.ts';
import type { PublicId, SessionId } from '../../../domain/shared/ids.ts';
import { ACME, aSession, aWorld, codeOf, type World } from './world.ts';

describe('A stream of session statuses', () => {
  let world: World;
  let watcher: SessionWatcher;
  let timers: sinon.SinonFakeTimers;
  let heard: string[];
  const id = 'session-0' as SessionId;
  const beats = () => world.store.beats(ACME);

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    timers = sinon.useFakeTimers({ now: world.clock.now(), toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    watcher = new SessionWatcher(world);
    heard = [];
    await beats().openSession(aSession(world.clock, 0));
  });

  afterEach(() => timers.restore());

  /** Lets time pass on the clock and for the timers alike. */
  async function pass(milliseconds: number): Promise<void> {
    world.clock.forward(milliseconds);
    await timers.tickAsync(milliseconds);
    await settle();
  }

  async function settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  async function listen(lastSequence?: number): Promise<{ leave: () => void; ended: Promise<void> }> {
    const leaving = new AbortController();
    const watch = new WatchSession({ ...world, sessionWatcher: watcher });
    const caller = world.caller(['presentation:request']);
    const stream = await watch.execute(caller, id, { lastSequence, closed: leaving.signal });
    const ended = (async () => {
      for await (const item of stream) heard.push(item === 'heartbeat' ? item : told(item));
      heard.push('end');
    })();
    await settle();
    return { leave: () => leaving.abort(), ended };
  }

  const told = ({ sequence, status }: StatusMessage) => `${sequence} ${status}`;
  const wakeUp = () => world.eventBus.publish({ type: 'session', tenantId: ACME, sessionId: id });
  const fetched = () => beats().fetchSession('public-0' as PublicId, world.clock.now());

  async function completed(): Promise<void> {
    const session = await beats().findSession(id);
    if (session === undefined) throw new Error('no session');
    await beats().recordOutcome(session, 'complete', {}, world.clock.now());
  }

  it('tells the present at once, each change when it is woken, and ends with the session', async () => {
    const { ended } = await listen();
    expect(heard).to.deep.equal(['1 active']);
    await fetched();
    wakeUp();
    await settle();
    expect(heard).to.deep.equal(['1 active', '2 fetched']);
    wakeUp();
    await settle();
    await completed();
    wakeUp();
    await ended;
    expect(heard).to.deep.equal(['1 active', '2 fetched', '3 completed', 'end']);
    expect(watcher.count).to.equal(0);
  });

  it('finds within two seconds what no message told it, and leaves out nothing', async () => {
    const { ended } = await listen();
    await fetched();
    await completed();
    await pass(2_000);
    await ended;
    expect(heard).to.deep.equal(['1 active', '2 fetched', '3 completed', 'end']);
  });

  it('keeps the connection alive and ends when the time of the session is over', async () => {
    const { ended } = await listen();
    await pass(15_000);
    expect(heard).to.deep.equal(['1 active', 'heartbeat']);
    for (let passed = 15_000; passed < 600_000; passed += 15_000) await pass(15_000);
    await ended;
    expect(heard.at(-2)).to.equal('1 expired');
    expect(heard.at(-1)).to.equal('end');
  });

  it('tells a listener that returns what it missed', async () => {
    await fetched();
    await completed();
    const { ended } = await listen(1);
    await ended;
    expect(heard).to.deep.equal(['2 fetched', '3 completed', 'end']);
  });

  it('tells a listener that returns, or makes a number up, at least the present', async () => {
    const first = await listen(1);
    const second = await listen(99);
    expect(heard).to.deep.equal(['1 active', '1 active']);
    first.leave();
    second.leave();
    await Promise.all([first.ended, second.ended]);
  });

  it('ends when the session is removed, and releases everything when the listener leaves', async () => {
    const one = await listen();
    const other = await listen();
    expect(watcher.count).to.equal(2);
    other.leave();
    await other.ended;
    expect(watcher.count).to.equal(1);
    await beats().removeSession(id);
    await pass(2_000);
    await one.ended;
    expect(watcher.count).to.equal(0);
    expect(timers.countTimers()).to.equal(0);
  });

  it('is refused for an unknown session, and when the process has enough of them', async () => {
    const watch = new WatchSession({ ...world, sessionWatcher: watcher });
    const closed = new AbortController().signal;
    const nobody = watch.execute(world.caller(['issuance:offer']), id, { closed });
    expect(await codeOf(nobody)).to.equal('not_found');
    expect(watcher.count).to.equal(0);
    const open = Array.from({ length: 2_000 }, () => watcher.open(ACME, id));
    const caller = world.caller(['presentation:request']);
    expect(await codeOf(watch.execute(caller, id, { closed }))).to.equal('unavailable');
    for (const one of open) one.close();
    expect(watcher.count).to.equal(0);
  });
});
