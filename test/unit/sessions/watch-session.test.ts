import { expect } from 'chai';
import sinon from 'sinon';
import type { Listener } from '../../../application/caller.ts';
import { SessionWatcher } from '../../../application/sessions/session-watcher.ts';
import { type StatusMessage, WatchSession } from '../../../application/sessions/watch-session.ts';
import { TenantConfiguration } from '../../../application/tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import type { Client } from '../../../domain/clients/client.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { sessionOpening, sessionRemoval, stepsOf } from '../../contract/store/steps.ts';
import { ACME, aSession, aWorld, codeOf, type World } from '../administrators.ts';

describe('session status stream', () => {
  let world: World;
  let watcher: SessionWatcher;
  let timers: sinon.SinonFakeTimers;
  let messages: string[];
  let startMs: number;
  /** Lifetime of the access token in milliseconds. */
  let lifetime: number;
  const id = 'session-0' as SessionId;
  const steps = () => stepsOf(world.store, ACME);

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    timers = sinon.useFakeTimers({ now: world.clock.now(), toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    watcher = new SessionWatcher(world);
    messages = [];
    lifetime = 3_600_000;
    startMs = world.clock.now().getTime();
    await world.store.prepare('a listener and a session', async () => {
      await addClient(new Date(startMs));
      await steps().commit(sessionOpening(aSession(world.clock, 0)));
    });
  });

  afterEach(() => timers.restore());

  /** Advances the clock and the timers. */
  async function advance(milliseconds: number): Promise<void> {
    world.clock.forward(milliseconds);
    await timers.tickAsync(milliseconds);
    await flush();
  }

  async function flush(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  async function createListener(): Promise<Listener> {
    const head = await steps().state();
    if (head === undefined) throw new Error('no tenant');
    const tenant = new TenantConfiguration(world, head);
    return {
      ...world.caller(['presentation:request'], { clientId: 'listener', tenant: tenant }),
      access: {
        subject: ACME,
        clientId: 'listener',
        roles: ['presentation:request'],
        clientSince: startMs,
        secretRevision: 0,
        expiresAt: new Date(startMs + lifetime),
      },
    };
  }

  const addClient = (createdAt: Date) =>
    world.store.forTenant(
      ACME,
      ({ clients }) =>
        clients.add({
          clientId: 'listener',
          tenantId: ACME,
          roles: ['presentation:request'],
          description: null,
          allowedPresentationConfigs: null,
          allowedIssuanceConfigs: null,
          secretHash: '',
          secretRevision: 0,
          formerSecretUntil: null,
          pickUp: null,
          version: 1,
          createdAt,
          updatedAt: createdAt,
        }),
      { by: 'system' },
    );

  const changeClient = (change: (client: Client) => Client | undefined) =>
    world.store.forTenant(
      ACME,
      async ({ clients }) => {
        const client = await clients.get('listener');
        const newClient = change(client);
        await (newClient === undefined ? clients.remove('listener') : clients.save(newClient));
      },
      { by: 'system' },
    );

  async function listen(lastSequence?: number): Promise<{ leave: () => void; finished: Promise<void> }> {
    const abort = new AbortController();
    const watch = new WatchSession({ ...world, sessionWatcher: watcher, tenantConfigurations: new TenantConfigurations(world) });
    const caller = await createListener();
    const stream = await watch.execute(caller, id, { lastSequence, closed: abort.signal });
    const finished = (async () => {
      for await (const item of stream) messages.push(item === 'heartbeat' ? item : formatStatus(item));
      messages.push('end');
    })();
    await flush();
    return { leave: () => abort.abort(), finished };
  }

  const formatStatus = ({ sequence, status }: StatusMessage) => `${sequence} ${status}`;
  const wakeUp = () => world.eventBus.publish({ type: 'session', tenantId: ACME, sessionId: id });
  const fetchSession = () => steps().fetchSession('public-0' as PublicId, world.clock.now());

  async function completeSession(): Promise<void> {
    const session = (await steps().session(id))?.session;
    if (session === undefined) throw new Error('no session');
    await steps().recordOutcome(session, 'complete', {}, world.clock.now());
  }

  const endTenant = (endsAt: Date | null) =>
    world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), endsAt }), { by: 'system' });

  it('continues if the expiry of the tenant is postponed at the last moment', async () => {
    await endTenant(new Date(startMs + 20_000));
    const { finished } = await listen();
    await advance(15_000);
    await endTenant(null);
    await advance(5_000);
    expect(messages).to.deep.equal(['1 active', 'heartbeat', 'heartbeat']);
    await endTenant(new Date(startMs + 30_000));
    await advance(15_000);
    await finished;
    expect(messages.at(-1)).to.equal('end');
  });

  it('ends with the expiry of the tenant, before the tenant is removed', async () => {
    const endsAt = new Date(startMs + 20_000);
    await endTenant(endsAt);
    const { finished } = await listen();
    await advance(15_000);
    expect(messages).to.deep.equal(['1 active', 'heartbeat']);
    await advance(5_000);
    await finished;
    expect(messages.at(-1)).to.equal('end');
    expect(world.clock.now().getTime()).to.equal(endsAt.getTime());
  });

  it('sends the current status at once, each change when it is notified, and ends with the session', async () => {
    const { finished } = await listen();
    expect(messages).to.deep.equal(['1 active']);
    await fetchSession();
    wakeUp();
    await flush();
    expect(messages).to.deep.equal(['1 active', '2 fetched']);
    wakeUp();
    await flush();
    await completeSession();
    wakeUp();
    await finished;
    expect(messages).to.deep.equal(['1 active', '2 fetched', '3 completed', 'end']);
    expect(watcher.count).to.equal(0);
  });

  it('sends the changes in their order if the session changes between the reads of its status and of its events', async () => {
    const { finished } = await listen();
    await fetchSession();
    const read = world.store.read.bind(world.store);
    let isChanged = false;
    const stub = sinon.stub(world.store, 'read').callsFake((tenantId) => {
      const reads = read(tenantId);
      const sessionEvents: typeof reads.sessionEvents = async (...parameters) => {
        if (!isChanged) await completeSession();
        isChanged = true;
        return reads.sessionEvents(...parameters);
      };
      return { ...reads, sessionEvents };
    });
    wakeUp();
    await flush();
    wakeUp();
    await advance(2_000);
    await finished;
    stub.restore();
    expect(messages).to.deep.equal(['1 active', '2 fetched', '3 completed', 'end']);
  });

  it('finds changes without a notification within two seconds, and omits none', async () => {
    const { finished } = await listen();
    await fetchSession();
    await completeSession();
    await advance(2_000);
    await finished;
    expect(messages).to.deep.equal(['1 active', '2 fetched', '3 completed', 'end']);
  });

  it('keeps the connection alive and ends when the session expires', async () => {
    const { finished } = await listen();
    await advance(15_000);
    expect(messages).to.deep.equal(['1 active', 'heartbeat']);
    for (let elapsedMs = 15_000; elapsedMs < 600_000; elapsedMs += 15_000) await advance(15_000);
    await finished;
    expect(messages.at(-2)).to.equal('1 expired');
    expect(messages.at(-1)).to.equal('end');
  });

  it('sends the missed changes to a reconnecting listener', async () => {
    await fetchSession();
    await completeSession();
    const { finished } = await listen(1);
    await finished;
    expect(messages).to.deep.equal(['2 fetched', '3 completed', 'end']);
  });

  it('sends at least the current status to a listener that reconnects with any id', async () => {
    const first = await listen(1);
    const second = await listen(99);
    expect(messages).to.deep.equal(['1 active', '1 active']);
    first.leave();
    second.leave();
    await Promise.all([first.finished, second.finished]);
  });

  it('ends when the session is removed, and releases everything when the listener disconnects', async () => {
    const first = await listen();
    const second = await listen();
    expect(watcher.count).to.equal(2);
    second.leave();
    await second.finished;
    expect(watcher.count).to.equal(1);
    await steps().commit(sessionRemoval(id, 'system'));
    await advance(2_000);
    await first.finished;
    expect(watcher.count).to.equal(0);
    expect(timers.countTimers()).to.equal(0);
  });

  it('is rejected for an unknown session, and when the process has too many streams', async () => {
    const watch = new WatchSession({ ...world, sessionWatcher: watcher, tenantConfigurations: new TenantConfigurations(world) });
    const signal = new AbortController().signal;
    const unauthorized = watch.execute({ ...(await createListener()), roles: ['issuance:offer'] }, id, { closed: signal });
    expect(await codeOf(unauthorized)).to.equal('not_found');
    expect(watcher.count).to.equal(0);
    const openUntilRejected = (tenant: string, client: (i: number) => string, session: (i: number) => string) => {
      const open: { close(): void }[] = [];
      try {
        for (let i = 0; i < 3_000; i++) open.push(watcher.open(tenant as TenantId, client(i), session(i) as SessionId));
      } catch (error) {
        expect(error).to.deep.include({ code: 'unavailable' });
        expect(error).to.have.nested.property('details.retryAfterSeconds', 30);
      }
      return open;
    };
    const shares: [number, (i: number) => string, (i: number) => string][] = [
      [20, (i) => `client-${i}`, () => id],
      [1_000, () => 'listener', (i) => `other-${i}`],
      [2_000, (i) => `client-${i}`, (i) => `other-${i}`],
    ];
    for (const [limit, client, session] of shares) {
      const open = openUntilRejected(ACME, client, session);
      expect(open).to.have.length(limit);
      expect(await codeOf(watch.execute(await createListener(), id, { closed: signal }))).to.equal('unavailable');
      for (const first of open) first.close();
      expect(watcher.count).to.equal(0);
    }
    const all = [1, 2, 3, 4, 5].flatMap((n) => openUntilRejected(`tenant-${n}`, String, String));
    expect(all).to.have.length(4_000);
    expect(await codeOf(watch.execute(await createListener(), id, { closed: signal }))).to.equal('unavailable');
    for (const first of all) first.close();
    expect(watcher.count).to.equal(0);
  });

  const losses: Record<string, () => Promise<unknown>> = {
    'the role': () => changeClient((client) => ({ ...client, roles: ['issuance:offer'] })),
    'the configuration': () => changeClient((client) => ({ ...client, allowedPresentationConfigs: ['another'] })),
    'the client': () => changeClient(() => undefined),
    'the client, although a new one has its name': async () => {
      await changeClient(() => undefined);
      await addClient(new Date(world.clock.now().getTime() + 1));
    },
    'the tenant, which is suspended': () =>
      world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), status: 'suspended' }), { by: 'system' }),
  };
  for (const [description, removeRight] of Object.entries(losses)) {
    it(`sends nothing more to a listener that lost ${description}`, async () => {
      const { finished } = await listen();
      await removeRight();
      await fetchSession();
      wakeUp();
      await finished;
      expect(messages).to.deep.equal(['1 active', 'end']);
      expect(watcher.count).to.equal(0);
    });

    it(`ends with the next heartbeat for a listener that lost ${description}`, async () => {
      const { finished } = await listen();
      await removeRight();
      await advance(15_000);
      await finished;
      expect(messages).to.deep.equal(['1 active', 'end']);
    });
  }

  it('ends with the access token, between two heartbeats as well', async () => {
    lifetime = 20_000;
    const { finished } = await listen();
    await advance(15_000);
    await advance(4_999);
    expect(messages).to.deep.equal(['1 active', 'heartbeat']);
    await advance(1);
    await finished;
    expect(messages).to.deep.equal(['1 active', 'heartbeat', 'end']);
    expect([watcher.count, timers.countTimers()]).to.deep.equal([0, 0]);
  });

  it('sends no change to a listener whose access token has expired', async () => {
    lifetime = 1_000;
    const { finished } = await listen();
    await fetchSession();
    world.clock.forward(1_000);
    wakeUp();
    await finished;
    expect(messages).to.deep.equal(['1 active', 'end']);
  });

  it('continues for a client that was changed and still has the right', async () => {
    const { finished } = await listen();
    await changeClient((client) => ({ ...client, allowedPresentationConfigs: ['age'] }));
    await advance(15_000);
    await completeSession();
    wakeUp();
    await finished;
    expect(messages).to.deep.equal(['1 active', 'heartbeat', '2 completed', 'end']);
  });
});
