import { expect } from 'chai';
import sinon from 'sinon';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { NodeRandom } from '../../../adapters/system/random.ts';
import { RelayEvents } from '../../../application/events/relay-events.ts';
import { CreateKeyChain } from '../../../application/keys/key-chains.ts';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { EventPublisher, type SessionNotice } from '../../../application/ports/event-publisher.ts';
import { Log, type LogFields } from '../../../application/ports/log.ts';
import type { BackgroundTask } from '../../../application/ports/work-queue.ts';
import { FetchedLists, keyOf } from '../../../application/trust-lists/fetched-lists.ts';
import { RenewTrustLists } from '../../../application/trust-lists/renew-trust-lists.ts';
import { TrustListPublisher } from '../../../application/trust-lists/trust-list-publisher.ts';
import { CreateTrustList, GetTrustList } from '../../../application/trust-lists/trust-lists.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { thumbprint } from '../../../domain/shared/jwk.ts';
import { addTenant, aSession, NOW } from '../../contract/store/builders.ts';
import { sessionOpening, stepsOf } from '../../contract/store/steps.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { ACME, aWorld, type World } from '../administrators.ts';
import { SetClock } from '../verification/kit.ts';

class TestPublisher extends EventPublisher {
  override publishHeldList = async (): Promise<boolean> => true;
  isReady = true;
  readonly received: string[] = [];
  /** The result of the next call: the number of accepted messages, an error, or undefined to accept all. */
  nextResult: number | Error | undefined;

  override publish(notices: readonly SessionNotice[]): Promise<number> {
    if (this.nextResult instanceof Error) return Promise.reject(this.nextResult);
    this.received.push(...notices.map(({ sessionId, version }) => `${sessionId} ${version}`));
    return Promise.resolve(Math.min(this.nextResult ?? notices.length, notices.length));
  }

  override publishRevocation(): Promise<boolean> {
    return Promise.reject(new Error('the broker is unavailable'));
  }
  override onReady(): () => void {
    return () => {};
  }
}

class RecordingLog extends Log {
  readonly lines: string[] = [];
  override info(message: string): void {
    this.lines.push(message);
  }
  override warn(message: string, fields: LogFields = {}): void {
    this.lines.push(`warning: ${message} ${JSON.stringify(fields)}`);
  }
  override error(message: string, fields: LogFields = {}): void {
    this.lines.push(`error: ${message} ${JSON.stringify(fields)}`);
  }
}

const random = new NodeRandom();

describe('event log relay', () => {
  let store: MemoryStore;
  let subscriber: TestPublisher;
  let log: RecordingLog;
  let tenantId: TenantId;
  let relay: RelayEvents;
  beforeEach(async () => {
    store = new MemoryStore();
    subscriber = new TestPublisher();
    log = new RecordingLog();
    tenantId = await addTenant(store);
    relay = createOtherRelay();
    await relay.begin();
  });
  const createOtherRelay = () => new RelayEvents({ eventLog: store.maintenance, publisher: subscriber, log, random });
  const openSession = async () => {
    const session = aSession(tenantId, { request: null });
    await stepsOf(store, tenantId).commit(sessionOpening(session));
    return session;
  };
  const fetch = (session: Session) => stepsOf(store, tenantId).fetchSession(session.publicId, NOW);
  const executeAndLog = async () => {
    try {
      return await relay.execute();
    } catch (error) {
      relay.logFailure(error);
      return 'failed';
    }
  };

  it('sends new events once, and does nothing without any', async () => {
    const session = await openSession();
    await fetch(session);
    expect([await relay.execute(), await relay.execute()]).to.deep.equal(['all', 'all']);
    expect(subscriber.received).to.deep.equal([`${session.id} 1`, `${session.id} 2`]);
  });

  it('repeats unconfirmed events, and logs the fault once', async () => {
    const session = await openSession();
    subscriber.nextResult = new Error('the connection ended');
    expect([await executeAndLog(), await executeAndLog()]).to.deep.equal(['failed', 'failed']);
    subscriber.nextResult = undefined;
    expect(await relay.execute()).to.equal('all');
    expect(subscriber.received).to.deep.equal([`${session.id} 1`]);
    expect(log.lines).to.deep.equal([
      'warning: events could not be published; they are sent again {"reason":"the connection ended"}',
      'events are published again',
    ]);
  });

  it('leaves the events to another process without a broker, or if that process has the lease', async () => {
    await openSession();
    const otherRelay = createOtherRelay();
    expect(await relay.execute()).to.equal('all');
    expect(await otherRelay.execute()).to.equal('elsewhere');
    await relay.release();
    expect(await otherRelay.execute()).to.equal('all');
    expect(await relay.execute()).to.equal('elsewhere');
    subscriber.isReady = false;
    expect(await otherRelay.execute()).to.equal('elsewhere');
    subscriber.isReady = true;
    expect(await relay.execute(), 'a process without a broker does not delay others').to.equal('all');
  });

  it('omits sessions of a tenant that is being removed, and continues after them', async () => {
    const [lostSession, otherSession] = [await openSession(), await openSession()];
    const eventLog = {
      ...store.maintenance,
      async nextEvents(...parameters: Parameters<typeof store.maintenance.nextEvents>) {
        const batch = await store.maintenance.nextEvents(...parameters);
        const events = batch?.events.map((event) => (event.sessionId === lostSession.id ? { ...event, kind: undefined } : event));
        return batch && events && { ...batch, events };
      },
    };
    const racingRelay = new RelayEvents({ eventLog, publisher: subscriber, log, random });
    expect([await racingRelay.execute(), await racingRelay.execute()]).to.deep.equal(['all', 'all']);
    expect(subscriber.received).to.deep.equal([`${otherSession.id} 1`]);
  });

  it('retries rejected events with all later ones, and skips them after some attempts', async () => {
    const sessions = [await openSession(), await openSession(), await openSession()];
    const messagesFrom = (from: number) => sessions.slice(from).map(({ id }) => `${id} 1`);
    subscriber.nextResult = 1;
    expect(await relay.execute()).to.equal('refused');
    subscriber.nextResult = 0;
    const outcomes: string[] = [];
    for (let attempt = 0; attempt < 5; attempt++) outcomes.push(await relay.execute());
    expect(outcomes).to.deep.equal(['refused', 'refused', 'refused', 'refused', 'more']);
    expect(subscriber.received).to.deep.equal([...messagesFrom(0), ...Array.from({ length: 5 }, () => messagesFrom(1)).flat()]);
    expect(log.lines.at(-1))
      .to.match(/^error: events are skipped/)
      .and.to.include(sessions[1]?.id);
    const next = await openSession();
    subscriber.nextResult = undefined;
    expect(await relay.execute()).to.equal('all');
    expect(subscriber.received.at(-1)).to.equal(`${next.id} 1`);
  });

  it('sends no events from before its start', async () => {
    store = new MemoryStore();
    tenantId = await addTenant(store);
    await openSession();
    relay = createOtherRelay();
    expect(await relay.execute(), 'before the relay starts').to.equal('elsewhere');
    await relay.begin();
    expect(await relay.execute()).to.equal('all');
    expect(subscriber.received).to.deep.equal([]);
  });
});

const DAYS = 24 * 60 * 60 * 1000;

class SilentLog extends Log {
  override info(): void {}
  override warn(): void {}
  override error(): void {}
}

describe('shared work of all processes', () => {
  let world: World;
  let tasks: BackgroundTask[];
  let isAccepted: boolean;
  const offer = async (task: BackgroundTask) => {
    tasks.push(task);
    return isAccepted;
  };
  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    tasks = [];
    isAccepted = true;
  });

  describe('on trust lists', () => {
    let renewal: RenewTrustLists;
    const caller = () => world.caller(['issuance:manage']);
    const number = async (id: string) => (await new GetTrustList(world).execute(caller(), id)).sequenceNumber;
    const run = () => renewal.execute(world.clock.now(), 100, undefined, offer);

    beforeEach(async () => {
      const trustListPublisher = new TrustListPublisher(world);
      renewal = new RenewTrustLists({ ...world, log: new SilentLog(), trustListPublisher });
      const entities = [
        { type: 'internal' as const, issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } },
      ];
      await new CreateTrustList({ ...world, trustListPublisher }).execute(caller(), { id: 'list', entities });
    });

    it('is offered for each list that is due, and for no other', async () => {
      expect((await run()).renewed).to.equal(0);
      expect(tasks).to.deep.equal([]);
      world.clock.forward(21 * DAYS);
      expect((await run()).renewed).to.equal(0);
      expect(tasks.map(({ type, tenantId }) => [type, tenantId])).to.deep.equal([['trust-list', ACME]]);
      expect(await number('list'), 'not yet renewed').to.equal(1);
    });

    it('is done by this process if the broker does not accept it', async () => {
      world.clock.forward(21 * DAYS);
      isAccepted = false;
      expect((await run()).renewed).to.equal(1);
      expect(await number('list')).to.equal(2);
    });

    it('is done once, even if the task is repeated', async () => {
      world.clock.forward(21 * DAYS);
      await run();
      const [task] = tasks;
      if (task?.type !== 'trust-list') throw new Error('another task');
      expect([await renewal.renew(task), await renewal.renew(task)]).to.deep.equal([true, false]);
      expect(await number('list')).to.equal(2);
      expect(await renewal.renew({ ...task, id: 'gone' }), 'of a deleted list').to.equal(false);
    });
  });

  describe('on key chains', () => {
    let renewal: RenewKeyChains;
    let log: SilentLog;
    const run = () => renewal.execute(world.clock.now(), 100, undefined, offer);

    beforeEach(async () => {
      log = new SilentLog();
      renewal = new RenewKeyChains({ ...world, log });
      const chain = { id: 'turning', usageType: 'signing' as const, rotationEnabled: true, rotationIntervalDays: 30 };
      await new CreateKeyChain(world).execute(world.caller(['issuance:manage']), chain);
    });

    describe('that were read before', () => {
      let read: sinon.SinonSpy;
      beforeEach(async () => {
        isAccepted = false;
        await run();
        read = sinon.spy(world.store, 'forTenant');
      });
      afterEach(() => read.restore());
      const tenantsRead = async () => {
        read.resetHistory();
        const result = await run();
        return { due: result, tenants: new Set(read.args.map(([tenantId]) => tenantId)) };
      };

      it('are not read again while nothing is due or changed', async () => {
        expect((await tenantsRead()).tenants.size).to.equal(0);
        world.clock.forward(29 * DAYS);
        expect((await tenantsRead()).tenants.size, 'a day before').to.equal(0);
      });

      it('are read and renewed when they become due, once', async () => {
        world.clock.forward(30 * DAYS);
        const { due: result, tenants } = await tenantsRead();
        expect([...tenants]).to.deep.equal([ACME]);
        expect(result.rotated).to.equal(1);
        expect((await tenantsRead()).due.rotated, 'again').to.equal(0);
        expect((await tenantsRead()).tenants.size, 'after the change was read').to.equal(0);
      });

      it('are read when their configuration changed, also to a value that is due', async () => {
        await world.store.forTenant(
          ACME,
          async ({ keyChains }) => {
            const chain = await keyChains.get('turning');
            await keyChains.put({ ...chain, rotationIntervalDays: 1, createdAt: new Date(0) });
          },
          { by: 'system' },
        );
        expect((await tenantsRead()).due.rotated).to.equal(1);
      });

      it('are reported in each run while another tenant marked their key as compromised', async () => {
        const chain = await world.store.forTenant(ACME, ({ keyChains }) => keyChains.get('turning'));
        const reported = [{ tenantId: 'other' as TenantId, thumbprint: thumbprint(chain.active.key.publicJwk) }];
        const forService = sinon.stub(world.store, 'forService').resolves(reported);
        const warn = sinon.stub<[string?, object?], void>();
        log.warn = warn;
        try {
          for (const times of [1, 2]) {
            expect((await tenantsRead()).tenants.size).to.equal(0);
            expect(warn.callCount).to.equal(times);
            expect(warn.lastCall.args[1]).to.include({ tenantId: ACME, keyChainId: 'turning' });
          }
        } finally {
          forService.restore();
        }
      });
    });

    it('is offered for each tenant with due key chains, and for no other', async () => {
      await run();
      expect(tasks).to.deep.equal([]);
      world.clock.forward(31 * DAYS);
      expect(await run()).to.include({ rotated: 0, renewed: 0 });
      expect(tasks).to.deep.equal([{ type: 'key-chains', tenantId: ACME }]);
    });

    it('is done by this process if the broker does not accept it, and once, even if the task is repeated', async () => {
      world.clock.forward(31 * DAYS);
      isAccepted = false;
      expect((await run()).rotated).to.equal(1);
      expect(await renewal.renew(ACME, world.clock.now())).to.include({ rotated: 0, renewed: 0 });
      world.clock.forward(31 * DAYS);
      const results = [await renewal.renew(ACME, world.clock.now()), await renewal.renew(ACME, world.clock.now())];
      expect(results.map(({ rotated }) => rotated)).to.deep.equal([1, 0]);
    });
  });
});

type Copy = { readonly uri: string; readonly fetchedAt: Date; readonly text: string };

const KINDS = ['trust-lists', 'status-lists'] as const;

describe('lost wake-ups', () => {
  it('clear the cached list copies of all tenants, of every kind, and discard fetches in progress', async () => {
    const clock = new SetClock();
    const eventBus = new InProcessEventBus();
    const lists = KINDS.map(
      (kind) =>
        new FetchedLists<Copy>({
          clock,
          eventBus,
          kind,
          sizeOf: () => 100,
          freshUntil: () => clock.now(),
          isRefusal: (error): error is Error => error instanceof Error,
          failureMs: 60_000,
        }),
    );
    const copy = (text: string): Copy => ({ uri: 'https://x.example', fetchedAt: clock.now(), text });
    for (const each of lists) {
      for (const tenant of ['acme', 'other']) await each.fetch(keyOf(tenant, 'one'), async () => copy('before'));
      await each.fetch(keyOf('acme', 'away'), () => Promise.reject(new Error('away'))).catch(() => {});
    }
    const [first] = lists;
    let arrive = (_copy: Copy) => {};
    const underWay = first?.fetch(keyOf('acme', 'slow'), () => new Promise((resolve) => (arrive = resolve)));
    eventBus.publish({ type: 'missed' });
    arrive(copy('before'));
    await underWay;
    for (const each of lists) {
      for (const tenant of ['acme', 'other']) {
        expect(each.peek(keyOf(tenant, 'one'))).to.equal(undefined);
        expect(each.stats(tenant).size).to.equal(0);
      }
      const refetched = await each.fetch(keyOf('acme', 'away'), async () => copy('after'));
      expect(refetched.text, 'a failure is forgotten, too').to.equal('after');
    }
    expect(first?.peek(keyOf('acme', 'slow')), 'the value from before').to.equal(undefined);
  });
});
