import { expect } from 'chai';
import { Container } from 'inversify';
import sinon from 'sinon';
import { MemoryStore } from '../../../adapters/persistence/memory/memory-store.ts';
import { Clock } from '../../../application/ports/clock.ts';
import { EventBus } from '../../../application/ports/event-bus.ts';
import { Log } from '../../../application/ports/log.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { Store } from '../../../application/ports/store.ts';
import { startJobs } from '../../../bootstrap/jobs.ts';
import { aClient, addTenant, openOffer } from '../../contract/store/builders.ts';

const START = new Date('2031-01-01T00:00:00Z');

describe('jobs', () => {
  let timers: sinon.SinonFakeTimers;
  beforeEach(() => {
    timers = sinon.useFakeTimers({ now: START, toFake: ['setInterval', 'clearInterval', 'Date'] });
  });
  afterEach(() => timers.restore());

  it('clean up after tenants, say so, and erase secrets that nobody picked up', async () => {
    const store = new MemoryStore();
    const info = sinon.fake();
    const container = new Container();
    container.bind(Store).toConstantValue(store);
    container.bind(Clock).toConstantValue({ now: () => new Date() });
    container.bind(EventBus).toConstantValue({ publish: () => {} } as unknown as EventBus);
    container.bind(Log).toConstantValue({ info, warn: () => {}, error: () => {} } as unknown as Log);
    const settings = { sessionTtlSeconds: 60 } as ServiceSettings;
    container.bind(ServiceSettings).toConstantValue(settings);

    const tenantId = await addTenant(store);
    const { session } = await openOffer(store, tenantId, { session: { createdAt: START, expiresAt: START } });
    const pickUp = { sealedSecret: 'sealed', role: 'clients:manage', expiresAt: START } as const;
    const client = aClient(tenantId, { pickUp });
    await store.forTenant(tenantId, ({ clients }) => clients.add(client));

    const stop = startJobs(container);
    await timers.tickAsync(61_000);
    await stop();
    expect(await store.beats(tenantId).findSession(session.id)).to.equal(undefined);
    const kept = await store.forTenant(tenantId, ({ clients }) => clients.get(client.clientId));
    expect(kept.pickUp).to.equal(null);
    expect(info.args).to.deep.include(['sessions cleaned up', { removed: 1, anonymized: 0 }]);
  });
});
