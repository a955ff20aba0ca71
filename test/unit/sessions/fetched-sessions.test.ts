import { expect } from 'chai';
import sinon from 'sinon';
import type { EventBus, WakeUp } from '../../../application/ports/event-bus.ts';
import type { Log } from '../../../application/ports/log.ts';
import type { NotedSession, Store } from '../../../application/ports/store.ts';
import { FetchedSessions } from '../../../application/sessions/fetched-sessions.ts';
import type { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { ACME, aSession } from '../administrators.ts';

const COLLECTION_MS = 100;

describe('record of fetched sessions', () => {
  const session = aSession({ now: () => new Date(0) }, 1);
  let clock: sinon.SinonFakeTimers;
  let writes: (readonly SessionId[])[];
  let unlocked: boolean;
  let publish: (wakeUp: WakeUp) => void;
  let fetchedSessions: FetchedSessions;

  beforeEach(() => {
    clock = sinon.useFakeTimers();
    writes = [];
    unlocked = true;
    const store: Pick<Store, 'note'> = {
      async note(_tenantId, ids): Promise<readonly NotedSession[]> {
        writes.push(ids);
        return unlocked ? ids.map((id) => ({ id, version: 2 })) : [];
      },
    };
    const eventBus: Pick<EventBus, 'subscribe' | 'publish'> = {
      subscribe: (listener) => {
        publish = listener;
        return () => {};
      },
      publish: () => {},
    };
    fetchedSessions = new FetchedSessions({
      store: store as Store,
      clock: { now: () => new Date() },
      tenantConfigurations: { sessionCache: { updateStatus: () => {} } } as unknown as TenantConfigurations,
      eventBus: eventBus as EventBus,
      log: { error: () => {} } as unknown as Log,
    });
  });
  afterEach(() => clock.restore());

  it('is written in one batch after the collection time', async () => {
    const other = aSession({ now: () => new Date(0) }, 2);
    fetchedSessions.note(session);
    fetchedSessions.note(other);
    await clock.tickAsync(COLLECTION_MS);
    expect(writes).to.deep.equal([[session.id, other.id]]);
    await clock.tickAsync(10 * COLLECTION_MS);
    expect(writes).to.have.length(1);
  });

  it('is written for the next reader if the row was locked during the first write', async () => {
    unlocked = false;
    fetchedSessions.note(session);
    await clock.tickAsync(COLLECTION_MS);
    unlocked = true;
    await fetchedSessions.flushTenant(ACME);
    expect(writes).to.deep.equal([[session.id], [session.id]]);
    expect(fetchedSessions.flushTenant(ACME)).to.equal(undefined);
  });

  it('is given up after three writes that skip the session', async () => {
    unlocked = false;
    fetchedSessions.note(session);
    await clock.tickAsync(10 * COLLECTION_MS);
    expect(writes).to.have.length(3);
  });

  it('is not written for a session that moved on before', async () => {
    fetchedSessions.note(session);
    publish({ type: 'session', tenantId: ACME, sessionId: session.id });
    await clock.tickAsync(COLLECTION_MS);
    expect(writes).to.deep.equal([]);
  });
});
