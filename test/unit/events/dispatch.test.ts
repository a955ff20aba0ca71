import { expect } from 'chai';
import type { Request, RequestHandler, Response } from 'express';
import { Container } from 'inversify';
import sinon from 'sinon';
import { dispatcher, type Endpoint } from '../../../adapters/http/server/dispatch.ts';
import { NodeRandom } from '../../../adapters/system/random.ts';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { Clock } from '../../../application/ports/clock.ts';
import { EventBus } from '../../../application/ports/event-bus.ts';
import { EventPublisher } from '../../../application/ports/event-publisher.ts';
import { Kms } from '../../../application/ports/kms.ts';
import { Log } from '../../../application/ports/log.ts';
import { Random } from '../../../application/ports/random.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { Store } from '../../../application/ports/store.ts';
import { type BackgroundTask, WorkQueue } from '../../../application/ports/work-queue.ts';
import { RenewTrustLists } from '../../../application/trust-lists/renew-trust-lists.ts';
import { EndOverdueResponses } from '../../../application/verification/end-overdue-responses.ts';
import { startJobs } from '../../../bootstrap/jobs/jobs.ts';
import { readSettings } from '../../../config/settings.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { addTenant, openOffer } from '../../contract/store/builders.ts';
import { stubFollowJobs } from '../../support/fakes.ts';
import { MemoryStore } from '../../support/memory-store.ts';

type Said = { readonly answer?: string; readonly params?: unknown; readonly error?: unknown };

describe('request routing', () => {
  /** What the routes, each known by its place, say to a request. */
  function ask(routes: readonly (readonly [string, string, ...RequestHandler[]])[], method: string, path: string) {
    return new Promise<Said>((resolve) => {
      const all = routes.map(([wanted, pattern, ...before], place): Endpoint => {
        const answer: RequestHandler = ({ params }) => resolve({ answer: `${place} ${pattern}`, params: { ...params } });
        return { method: wanted, path: pattern, handlers: [...before, answer] };
      });
      const request = { method, path } as Request;
      const run = dispatcher(all)(request);
      if (run === undefined) resolve({ error: undefined });
      else run(request, {} as Response, (error) => resolve({ error }));
    });
  }

  it('selects the route by method and form, with the names of the segments', async () => {
    const routes = [
      ['get', '/session'],
      ['get', '/session/:id'],
      ['delete', '/session/:id'],
      ['get', '/:tenant/offer/:id'],
      ['get', '/'],
    ] as const;
    expect(await ask(routes, 'GET', '/session')).to.deep.equal({ answer: '0 /session', params: {} });
    expect(await ask(routes, 'GET', '/session/a%20b')).to.deep.equal({ answer: '1 /session/:id', params: { id: 'a b' } });
    expect(await ask(routes, 'DELETE', '/session/1')).to.deep.include({ answer: '2 /session/:id' });
    expect(await ask(routes, 'GET', '/acme/offer/__proto__')).to.deep.equal({
      answer: '3 /:tenant/offer/:id',
      params: { tenant: 'acme', id: '__proto__' },
    });
    expect(await ask(routes, 'GET', '/')).to.deep.include({ answer: '4 /' });
  });

  it('ignores addresses without a route', async () => {
    const routes = [
      ['get', '/session/:id'],
      ['get', '/Session'],
    ] as const;
    for (const path of ['/session', '/session/', '/session//', '/session/1/', '//session/1', '/SESSION/1', '/'])
      expect(await ask(routes, 'GET', path), path).to.deep.equal({ error: undefined });
    expect(await ask(routes, 'POST', '/session/1')).to.deep.equal({ error: undefined });
  });

  it('uses the first of several matching routes, and the next one if it passes', async () => {
    const pass: RequestHandler = (_request, _response, next) => next('route');
    const both = [
      ['get', '/:tenant/:name'],
      ['get', '/session/:id'],
    ] as const;
    expect(await ask(both, 'GET', '/session/1')).to.deep.include({ answer: '0 /:tenant/:name' });
    const passing = [['get', '/:tenant/:name', pass], ['get', '/session/:id'] as const] as const;
    expect(await ask(passing, 'GET', '/session/1')).to.deep.equal({ answer: '1 /session/:id', params: { id: '1' } });
    expect(await ask(passing, 'GET', '/acme/1')).to.deep.equal({ error: undefined });
  });

  it('answers HEAD like GET', async () => {
    expect(await ask([['get', '/list']], 'HEAD', '/list')).to.deep.include({ answer: '0 /list' });
    expect(await ask([['post', '/list']], 'HEAD', '/list')).to.deep.equal({ error: undefined });
  });

  it('reports an error for segments that are not valid text, and for errors of a handler, synchronous or asynchronous', async () => {
    const unreadable = await ask([['get', '/session/:id']], 'GET', '/session/%ff');
    expect(unreadable.error).to.be.instanceOf(URIError);
    const fault = new Error('broken');
    const thrown: RequestHandler = () => {
      throw fault;
    };
    const rejected = (async () => Promise.reject(fault)) as unknown as RequestHandler;
    // The one before it goes on within a promise of its own.
    const later = (async (_request: Request, _response: Response, next: () => void) => {
      await Promise.resolve();
      next();
    }) as unknown as RequestHandler;
    for (const handlers of [[thrown], [rejected], [later, thrown]])
      expect(await ask([['get', '/a', ...handlers]], 'GET', '/a')).to.deep.equal({ error: fault });
  });

  it('fills parameters from complete segments', () => {
    const handlers: readonly RequestHandler[] = [];
    expect(() => dispatcher([{ method: 'get', path: '/list-:id', handlers }])).to.throw('whole segment');
  });
});

const START = new Date('2031-01-01T00:00:00Z');
const tenantId = 'acme' as TenantId;

/** As with a broker that is not there at present. */
class Away extends EventPublisher {
  override publishHeldList = async (): Promise<boolean> => true;
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
  work: ((task: BackgroundTask) => Promise<void>) | undefined;
  override readonly offer = () => Promise.resolve(true);
  override serve(work: (task: BackgroundTask) => Promise<void>): () => Promise<void> {
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
    lists = { execute: sinon.fake.resolves({ renewed: 0, last: undefined }), renew: sinon.fake.resolves(true) };
    const container = new Container();
    container.bind(Store).toConstantValue(store);
    container.bind(Clock).toConstantValue({ now: () => new Date() });
    container.bind(Random).toConstantValue(new NodeRandom());
    const eventBus = { publish: () => {}, subscribe: () => () => {} };
    container.bind(EventBus).toConstantValue(eventBus as unknown as EventBus);
    const within = (_about: object, work: () => unknown) => work();
    container.bind(Log).toConstantValue({ ...log, within } as unknown as Log);
    container.bind(Kms).toConstantValue({ remove: async () => {} } as unknown as Kms);
    container.bind(RenewKeyChains).toConstantValue(keys as unknown as RenewKeyChains);
    container.bind(EndOverdueResponses).toConstantValue({ execute: async () => 0 } as unknown as EndOverdueResponses);
    stubFollowJobs(container);
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

  it('offer due work to all processes, and do offered work', async () => {
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
    expect(said).to.include.members(['trust lists signed again', 'key chains renewed']);
  });

  it('warn when events are removed before the broker received them', async () => {
    const own = await addTenant(store);
    await store.maintenance.startRelay();
    await openOffer(store, own, { session: { createdAt: START, expiresAt: START } });
    await timers.tickAsync(61_000);
    await stop();
    expect(log.info.args).to.deep.include(['sessions cleaned up', { removed: 1, anonymized: 0 }]);
    expect(log.warn.args).to.deep.equal([
      // Its beginning, and its expiry half a minute before.
      ['events were removed with their sessions before the broker received them', { count: 2 }],
    ]);
  });
});

const GOOD = {
  MASTER_SECRET: 'a master secret for the tests 0123456789',
  AUTH_CLIENT_ID: 'root',
  AUTH_CLIENT_SECRET: 'root-secret-for-the-tests',
};

describe('broker settings', () => {
  it('accept a separate authority for TLS', () => {
    const settings = readSettings({ ...GOOD, AMQP_URL: 'amqps://u:p@mq.example', AMQP_CA: 'ca.pem' });
    expect(settings).to.include({ AMQP_CA: 'ca.pem' });
  });

  for (const url of [undefined, 'amqp://u:s3cret@mq.example']) {
    it(`reject an authority without TLS: ${url === undefined ? 'no broker' : 'plain text'}`, () => {
      const given = { ...GOOD, ...(url === undefined ? {} : { AMQP_URL: url }), AMQP_CA: 'ca.pem' };
      expect(() => readSettings(given))
        .to.throw(/AMQP_CA: has no effect without an AMQP_URL that begins with amqps:/)
        .and.have.property('message')
        .that.does.not.include('s3cret');
    });
  }
});
