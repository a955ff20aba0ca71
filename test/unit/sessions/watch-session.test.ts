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
  let heard: string[];
  let since: number;
  /** Of the access token, in milliseconds. */
  let lifetime: number;
  const id = 'session-0' as SessionId;
  const steps = () => stepsOf(world.store, ACME);

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    timers = sinon.useFakeTimers({ now: world.clock.now(), toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    watcher = new SessionWatcher(world);
    heard = [];
    lifetime = 3_600_000;
    since = world.clock.now().getTime();
    await world.store.prepare('a listener and a session', async () => {
      await addClient(new Date(since));
      await steps().commit(sessionOpening(aSession(world.clock, 0)));
    });
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

  async function listener(): Promise<Listener> {
    const head = await steps().state();
    if (head === undefined) throw new Error('no tenant');
    const configured = new TenantConfiguration(world, head);
    return {
      ...world.caller(['presentation:request'], { clientId: 'listener', tenant: configured }),
      access: {
        subject: ACME,
        clientId: 'listener',
        roles: ['presentation:request'],
        clientSince: since,
        secretRevision: 0,
        expiresAt: new Date(since + lifetime),
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
        const changed = change(client);
        await (changed === undefined ? clients.remove('listener') : clients.save(changed));
      },
      { by: 'system' },
    );

  async function listen(lastSequence?: number): Promise<{ leave: () => void; ended: Promise<void> }> {
    const leaving = new AbortController();
    const watch = new WatchSession({ ...world, sessionWatcher: watcher, tenantConfigurations: new TenantConfigurations(world) });
    const caller = await listener();
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
  const fetched = () => steps().fetchSession('public-0' as PublicId, world.clock.now());

  async function completed(): Promise<void> {
    const session = (await steps().session(id))?.session;
    if (session === undefined) throw new Error('no session');
    await steps().recordOutcome(session, 'complete', {}, world.clock.now());
  }

  const endTenant = (endsAt: Date | null) =>
    world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), endsAt }), { by: 'system' });

  it('continues if the expiry of the tenant is postponed at the last moment', async () => {
    await endTenant(new Date(since + 20_000));
    const { ended } = await listen();
    await pass(15_000);
    await endTenant(null);
    await pass(5_000);
    expect(heard).to.deep.equal(['1 active', 'heartbeat', 'heartbeat']);
    await endTenant(new Date(since + 30_000));
    await pass(15_000);
    await ended;
    expect(heard.at(-1)).to.equal('end');
  });

  it('ends with the expiry of the tenant, before the tenant is removed', async () => {
    const endsAt = new Date(since + 20_000);
    await endTenant(endsAt);
    const { ended } = await listen();
    await pass(15_000);
    expect(heard).to.deep.equal(['1 active', 'heartbeat']);
    await pass(5_000);
    await ended;
    expect(heard.at(-1)).to.equal('end');
    expect(world.clock.now().getTime()).to.equal(endsAt.getTime());
  });

  it('sends the current status at once, each change when it is notified, and ends with the session', async () => {
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

  it('finds changes without a notification within two seconds, and omits none', async () => {
    const { ended } = await listen();
    await fetched();
    await completed();
    await pass(2_000);
    await ended;
    expect(heard).to.deep.equal(['1 active', '2 fetched', '3 completed', 'end']);
  });

  it('keeps the connection alive and ends when the session expires', async () => {
    const { ended } = await listen();
    await pass(15_000);
    expect(heard).to.deep.equal(['1 active', 'heartbeat']);
    for (let passed = 15_000; passed < 600_000; passed += 15_000) await pass(15_000);
    await ended;
    expect(heard.at(-2)).to.equal('1 expired');
    expect(heard.at(-1)).to.equal('end');
  });

  it('sends the missed changes to a reconnecting listener', async () => {
    await fetched();
    await completed();
    const { ended } = await listen(1);
    await ended;
    expect(heard).to.deep.equal(['2 fetched', '3 completed', 'end']);
  });

  it('sends at least the current status to a listener that reconnects with any id', async () => {
    const first = await listen(1);
    const second = await listen(99);
    expect(heard).to.deep.equal(['1 active', '1 active']);
    first.leave();
    second.leave();
    await Promise.all([first.ended, second.ended]);
  });

  it('ends when the session is removed, and releases everything when the listener disconnects', async () => {
    const one = await listen();
    const other = await listen();
    expect(watcher.count).to.equal(2);
    other.leave();
    await other.ended;
    expect(watcher.count).to.equal(1);
    await steps().commit(sessionRemoval(id, 'system'));
    await pass(2_000);
    await one.ended;
    expect(watcher.count).to.equal(0);
    expect(timers.countTimers()).to.equal(0);
  });

  it('is rejected for an unknown session, and when the process has too many streams', async () => {
    const watch = new WatchSession({ ...world, sessionWatcher: watcher, tenantConfigurations: new TenantConfigurations(world) });
    const closed = new AbortController().signal;
    const nobody = watch.execute({ ...(await listener()), roles: ['issuance:offer'] }, id, { closed });
    expect(await codeOf(nobody)).to.equal('not_found');
    expect(watcher.count).to.equal(0);
    const fill = (tenant: string, client: (i: number) => string, session: (i: number) => string) => {
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
    for (const [most, client, session] of shares) {
      const open = fill(ACME, client, session);
      expect(open).to.have.length(most);
      expect(await codeOf(watch.execute(await listener(), id, { closed }))).to.equal('unavailable');
      for (const one of open) one.close();
      expect(watcher.count).to.equal(0);
    }
    const all = [1, 2, 3, 4, 5].flatMap((n) => fill(`tenant-${n}`, String, String));
    expect(all).to.have.length(4_000);
    expect(await codeOf(watch.execute(await listener(), id, { closed }))).to.equal('unavailable');
    for (const one of all) one.close();
    expect(watcher.count).to.equal(0);
  });

  const losses: Record<string, () => Promise<unknown>> = {
    'the role': () => changeClient((client) => ({ ...client, roles: ['issuance:offer'] })),
    'the configuration': () => changeClient((client) => ({ ...client, allowedPresentationConfigs: ['another'] })),
    'the client': () => changeClient(() => undefined),
    'the client, though another has its name': async () => {
      await changeClient(() => undefined);
      await addClient(new Date(world.clock.now().getTime() + 1));
    },
    'the tenant, which is suspended': () =>
      world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), status: 'suspended' }), { by: 'system' }),
  };
  for (const [what, lose] of Object.entries(losses)) {
    it(`sends nothing more to a listener that lost ${what}`, async () => {
      const { ended } = await listen();
      await lose();
      await fetched();
      wakeUp();
      await ended;
      expect(heard).to.deep.equal(['1 active', 'end']);
      expect(watcher.count).to.equal(0);
    });

    it(`ends with the next heartbeat for a listener that lost ${what}`, async () => {
      const { ended } = await listen();
      await lose();
      await pass(15_000);
      await ended;
      expect(heard).to.deep.equal(['1 active', 'end']);
    });
  }

  it('ends with the access token, between two heartbeats as well', async () => {
    lifetime = 20_000;
    const { ended } = await listen();
    await pass(15_000);
    await pass(4_999);
    expect(heard).to.deep.equal(['1 active', 'heartbeat']);
    await pass(1);
    await ended;
    expect(heard).to.deep.equal(['1 active', 'heartbeat', 'end']);
    expect([watcher.count, timers.countTimers()]).to.deep.equal([0, 0]);
  });

  it('sends no change to a listener whose access token has expired', async () => {
    lifetime = 1_000;
    const { ended } = await listen();
    await fetched();
    world.clock.forward(1_000);
    wakeUp();
    await ended;
    expect(heard).to.deep.equal(['1 active', 'end']);
  });

  it('continues for a client that was changed and still has the right', async () => {
    const { ended } = await listen();
    await changeClient((client) => ({ ...client, allowedPresentationConfigs: ['age'] }));
    await pass(15_000);
    await completed();
    wakeUp();
    await ended;
    expect(heard).to.deep.equal(['1 active', 'heartbeat', '2 completed', 'end']);
  });
});
