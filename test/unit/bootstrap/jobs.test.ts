import { expect } from 'chai';
import { Container } from 'inversify';
import sinon from 'sinon';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { Clock } from '../../../application/ports/clock.ts';
import { EventBus } from '../../../application/ports/event-bus.ts';
import { Kms } from '../../../application/ports/kms.ts';
import { Log } from '../../../application/ports/log.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { Store } from '../../../application/ports/store.ts';
import { RenewTrustLists } from '../../../application/trust-lists/renew-trust-lists.ts';
import { EndOverdueResponses } from '../../../application/verification/end-overdue-responses.ts';
import { startJobs } from '../../../bootstrap/jobs/jobs.ts';
import { aClient, addTenant, aUse, openOffer } from '../../contract/store/builders.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { stubFollowJobs } from '../../support/fakes.ts';
import { MemoryStore } from '../../support/memory-store.ts';

const START = new Date('2031-01-01T00:00:00Z');

describe('job runner', () => {
  let timers: sinon.SinonFakeTimers;
  beforeEach(() => {
    timers = sinon.useFakeTimers({ now: START, toFake: ['setInterval', 'clearInterval', 'Date'] });
  });
  afterEach(() => timers.restore());

  const containerOf = (store: Store, info: () => void = () => {}) => {
    const container = new Container();
    container.bind(Store).toConstantValue(store);
    container.bind(Clock).toConstantValue({ now: () => new Date() });
    container.bind(EventBus).toConstantValue({ publish: () => {} } as unknown as EventBus);
    const within = (_about: object, work: () => unknown) => work();
    container.bind(Log).toConstantValue({ info, warn: () => {}, error: () => {}, within } as unknown as Log);
    const keys = { execute: async () => ({ rotated: 0, renewed: 0, forgotten: 0, last: undefined }) };
    container.bind(RenewKeyChains).toConstantValue(keys as unknown as RenewKeyChains);
    const renewal = { execute: async () => ({ renewed: 0, last: undefined }) };
    container.bind(EndOverdueResponses).toConstantValue({ execute: async () => 0 } as unknown as EndOverdueResponses);
    stubFollowJobs(container);
    container.bind(RenewTrustLists).toConstantValue(renewal as unknown as RenewTrustLists);
    container.bind(Kms).toConstantValue({ remove: async () => {} } as unknown as Kms);
    const settings = { sessionTtlSeconds: 60 } as ServiceSettings;
    container.bind(ServiceSettings).toConstantValue(settings);
    return container;
  };

  it('cleans up after tenants, logs it, and erases secrets that were not retrieved', async () => {
    const store = new MemoryStore();
    const info = sinon.fake();
    const tenantId = await addTenant(store);
    const { session } = await openOffer(store, tenantId, { session: { createdAt: START, expiresAt: START } });
    const pickUp = { sealedSecret: 'sealed', role: 'clients:manage', expiresAt: START } as const;
    const client = aClient(tenantId, { pickUp });
    await store.forTenant(tenantId, ({ clients }) => clients.add(client), { by: 'system' });

    const stop = startJobs(containerOf(store, info));
    await timers.tickAsync(61_000);
    await stop();
    expect((await stepsOf(store, tenantId).session(session.id))?.session).to.equal(undefined);
    const kept = await store.forTenant(tenantId, ({ clients }) => clients.get(client.clientId));
    expect(kept.pickUp).to.equal(null);
    expect(info.args).to.deep.include(['sessions cleaned up', { removed: 1, anonymized: 0 }]);
  });

  it('deletes all expired single-use values in one run', async () => {
    const store = new MemoryStore();
    const steps = stepsOf(store, await addTenant(store));
    const left = Array.from({ length: 10_500 }, () => aUse('client_jti', { expiresAt: new Date(START.getTime() + 1000) }));
    expect(await steps.commit({ uses: left })).to.include({ done: true });
    const stop = startJobs(containerOf(store));
    const forgotten = sinon.spy(store.maintenance, 'forgetExpired');
    await timers.tickAsync(60_000);
    while ((await forgotten.lastCall.returnValue) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await stop();
    const gone = await Promise.all(forgotten.returnValues);
    expect(gone.reduce((sum, count) => sum + count, 0)).to.equal(10_500);
  });

  it('ends with the current batch when the service stops', async () => {
    const store = new MemoryStore();
    const endless = sinon.stub(store.maintenance, 'forgetExpired').resolves(500);
    const stop = startJobs(containerOf(store));
    await timers.tickAsync(60_000);
    await stop();
    const { callCount } = endless;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(endless.callCount).to.equal(callCount).and.within(1, 10);
  });
});
