import { expect } from 'chai';
import { Container } from 'inversify';
import sinon from 'sinon';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { Clock } from '../../../application/ports/clock.ts';
import { EventBus } from '../../../application/ports/event-bus.ts';
import { EventPublisher } from '../../../application/ports/event-publisher.ts';
import { Kms } from '../../../application/ports/kms.ts';
import { Log } from '../../../application/ports/log.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { Store } from '../../../application/ports/store.ts';
import { type Task, WorkQueue } from '../../../application/ports/work-queue.ts';
import { RenewTrustLists } from '../../../application/trust-lists/renew-trust-lists.ts';
import { EndOverdueAnswers } from '../../../application/verification/end-overdue-answers.ts';
import { startJobs } from '../../../bootstrap/jobs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { addTenant, openOffer } from '../../contract/store/builders.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { nothingFollowed } from '../../support/nothing-followed.ts';

const START = new Date('2031-01-01T00:00:00Z');
const tenantId = 'acme' as TenantId;

/** As with a broker that is not there at present. */
class Away extends EventPublisher {
  override tellHeldList = async (): Promise<boolean> => true;
  override readonly isReady = false;
  override publish(): Promise<number> {
    return Promise.reject(new Error('nobody is there'));
  }
  override publishRevocation(): Promise<boolean> {
    return Promise.reject(new Error('nobody is there'));
  }
  override onReady(): () => void {
    return () => {};
  }
}

class Queue extends WorkQueue {
  work: ((task: Task) => Promise<void>) | undefined;
  override readonly offer = () => Promise.resolve(true);
  override serve(work: (task: Task) => Promise<void>): () => Promise<void> {
    this.work = work;
    return async () => {
      this.work = undefined;
    };
  }
}

describe('jobs of a process with a broker', () => {
  let timers: sinon.SinonFakeTimers;
  let store: MemoryStore;
  let queue: Queue;
  let log: { info: sinon.SinonSpy; warn: sinon.SinonSpy; error: sinon.SinonSpy };
  let keys: { execute: sinon.SinonSpy; renew: sinon.SinonSpy };
  let lists: { execute: sinon.SinonSpy; renew: sinon.SinonSpy };
  let stop: () => Promise<void>;

  beforeEach(() => {
    timers = sinon.useFakeTimers({ now: START, toFake: ['setInterval', 'clearInterval', 'Date'] });
    store = new MemoryStore();
    queue = new Queue();
    log = { info: sinon.spy(), warn: sinon.spy(), error: sinon.spy() };
    keys = {
      execute: sinon.fake.resolves({ rotated: 0, renewed: 0, forgotten: 0, last: undefined }),
      renew: sinon.fake.resolves({ rotated: 1, renewed: 0, forgotten: 0 }),
    };
    lists = {
      execute: sinon.fake.resolves({ renewed: 0, last: undefined }),
      renew: sinon.fake.resolves(true),
    };
    const container = new Container();
    container.bind(Store).toConstantValue(store);
    container.bind(Clock).toConstantValue({ now: () => new Date() });
    const eventBus = { publish: () => {}, subscribe: () => () => {} };
    container.bind(EventBus).toConstantValue(eventBus as unknown as EventBus);
    const within = (_about: object, work: () => unknown) => work();
    container.bind(Log).toConstantValue({ ...log, within } as unknown as Log);
    container.bind(Kms).toConstantValue({ remove: async () => {} } as unknown as Kms);
    container.bind(RenewKeyChains).toConstantValue(keys as unknown as RenewKeyChains);
    container
      .bind(EndOverdueAnswers)
      .toConstantValue({ execute: async () => 0 } as unknown as EndOverdueAnswers);
    nothingFollowed(container);
    container.bind(RenewTrustLists).toConstantValue(lists as unknown as RenewTrustLists);
    container.bind(ServiceSettings).toConstantValue({ sessionTtlSeconds: 60 } as ServiceSettings);
    container.bind(WorkQueue).toConstantValue(queue);
    container.bind(EventPublisher).toConstantValue(new Away());
    stop = startJobs(container);
  });
  afterEach(async () => {
    await stop();
    timers.restore();
  });

  it('offer what is due to all processes, and do what any of them offers', async () => {
    await timers.tickAsync(1_801_000);
    const { work } = queue;
    // What is under way comes to its end first.
    await stop();
    expect(queue.work, 'nothing more is taken').to.equal(undefined);
    expect(lists.execute.firstCall.args[3]).to.equal(queue.offer);
    expect(keys.execute.firstCall.args[3]).to.equal(queue.offer);
    await work?.({ type: 'trust-list', tenantId, id: 'list', nextUpdate: START });
    expect(lists.renew.firstCall.args[0]).to.include({ tenantId, id: 'list' });
    await work?.({ type: 'key-chains', tenantId });
    expect(keys.renew.firstCall.args[0]).to.equal(tenantId);
    const said = log.info.args.map(([message]) => message);
    expect(said).to.include.members(['trust lists signed anew', 'key chains renewed']);
  });

  it('warn of events that go before the broker had them', async () => {
    const own = await addTenant(store);
    await store.maintenance.beginHandingOn();
    await openOffer(store, own, { session: { createdAt: START, expiresAt: START } });
    await timers.tickAsync(61_000);
    await stop();
    expect(log.info.args).to.deep.include(['sessions cleaned up', { removed: 1, anonymized: 0 }]);
    expect(log.warn.args).to.deep.equal([
      // Its beginning, and its expiry half a minute before.
      ['events were removed with their sessions before the broker had them', { count: 2 }],
    ]);
  });
});
