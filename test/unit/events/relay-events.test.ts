import { expect } from 'chai';
import { RelayEvents } from '../../../application/events/relay-events.ts';
import { EventPublisher, type SessionNotice } from '../../../application/ports/event-publisher.ts';
import { Log, type LogFields } from '../../../application/ports/log.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { addTenant, aSession, NOW } from '../../contract/store/builders.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { MemoryStore } from '../../support/memory-store.ts';

class Subscriber extends EventPublisher {
  override tellHeldList = async (): Promise<boolean> => true;
  isReady = true;
  readonly received: string[] = [];
  /** What becomes of the next messages; as many as are asked for when it is undefined. */
  takes: number | Error | undefined;

  override publish(notices: readonly SessionNotice[]): Promise<number> {
    if (this.takes instanceof Error) return Promise.reject(this.takes);
    this.received.push(...notices.map(({ sessionId, version }) => `${sessionId} ${version}`));
    return Promise.resolve(Math.min(this.takes ?? notices.length, notices.length));
  }

  override onReady(): () => void {
    return () => {};
  }
}

class KeptLog extends Log {
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

describe('Handing on the event log', () => {
  let store: MemoryStore;
  let subscriber: Subscriber;
  let log: KeptLog;
  let tenantId: TenantId;
  let relay: RelayEvents;
  beforeEach(async () => {
    store = new MemoryStore();
    subscriber = new Subscriber();
    log = new KeptLog();
    tenantId = await addTenant(store);
    relay = another();
    await relay.begin();
  });
  const another = () => new RelayEvents({ eventLog: store.maintenance, publisher: subscriber, log });
  const open = async () => {
    const session = aSession(tenantId, { request: null });
    await stepsOf(store, tenantId).openSession(session);
    return session;
  };
  const fetch = (session: Session) => stepsOf(store, tenantId).fetchSession(session.publicId, NOW);
  const failed = async () => {
    try {
      return await relay.execute();
    } catch (error) {
      relay.failed(error);
      return 'failed';
    }
  };

  it('sends what is new, once, and leaves it when there is nothing', async () => {
    const session = await open();
    await fetch(session);
    expect([await relay.execute(), await relay.execute()]).to.deep.equal(['all', 'all']);
    expect(subscriber.received).to.deep.equal([`${session.id} 1`, `${session.id} 2`]);
  });

  it('sends again what it does not know to have arrived, which the log says once', async () => {
    const session = await open();
    subscriber.takes = new Error('the connection ended');
    expect([await failed(), await failed()]).to.deep.equal(['failed', 'failed']);
    subscriber.takes = undefined;
    expect(await relay.execute()).to.equal('all');
    expect(subscriber.received).to.deep.equal([`${session.id} 1`]);
    expect(log.lines).to.deep.equal([
      'warning: events could not be handed on; they are sent again {"reason":"the connection ended"}',
      'events are handed on again',
    ]);
  });

  it('leaves it to another process while it has no broker, and when that one has the lease', async () => {
    await open();
    const other = another();
    expect(await relay.execute()).to.equal('all');
    expect(await other.execute()).to.equal('elsewhere');
    await relay.leave();
    expect(await other.execute()).to.equal('all');
    expect(await relay.execute()).to.equal('elsewhere');
    subscriber.isReady = false;
    expect(await other.execute()).to.equal('elsewhere');
    subscriber.isReady = true;
    expect(await relay.execute(), 'one without a broker keeps nobody from it').to.equal('all');
  });

  it('tells nothing of sessions whose tenant is being removed, and goes on behind them', async () => {
    const [gone, kept] = [await open(), await open()];
    const eventLog = {
      ...store.maintenance,
      async nextEvents(...asked: Parameters<typeof store.maintenance.nextEvents>) {
        const batch = await store.maintenance.nextEvents(...asked);
        const events = batch?.events.map((event) =>
          event.sessionId === gone.id ? { ...event, kind: undefined } : event,
        );
        return batch && events && { ...batch, events };
      },
    };
    const own = new RelayEvents({ eventLog, publisher: subscriber, log });
    expect([await own.execute(), await own.execute()]).to.deep.equal(['all', 'all']);
    expect(subscriber.received).to.deep.equal([`${kept.id} 1`]);
  });

  it('sends what was refused again, with all that follows, and gives it up after some attempts', async () => {
    const sessions = [await open(), await open(), await open()];
    const sent = (from: number) => sessions.slice(from).map(({ id }) => `${id} 1`);
    subscriber.takes = 1;
    expect(await relay.execute()).to.equal('refused');
    subscriber.takes = 0;
    const outcomes: string[] = [];
    for (let attempt = 0; attempt < 5; attempt++) outcomes.push(await relay.execute());
    expect(outcomes).to.deep.equal(['refused', 'refused', 'refused', 'refused', 'more']);
    expect(subscriber.received).to.deep.equal([
      ...sent(0),
      ...Array.from({ length: 5 }, () => sent(1)).flat(),
    ]);
    expect(log.lines.at(-1))
      .to.match(/^error: events are given up/)
      .and.to.include(sessions[1]?.id);
    const next = await open();
    subscriber.takes = undefined;
    expect(await relay.execute()).to.equal('all');
    expect(subscriber.received.at(-1)).to.equal(`${next.id} 1`);
  });

  it('sends nothing of what happened before it began', async () => {
    store = new MemoryStore();
    tenantId = await addTenant(store);
    await open();
    relay = another();
    expect(await relay.execute(), 'before it begins').to.equal('elsewhere');
    await relay.begin();
    expect(await relay.execute()).to.equal('all');
    expect(subscriber.received).to.deep.equal([]);
  });
});
