import { expect } from 'chai';
import sinon from 'sinon';
import { nextPage } from '../../../adapters/http/output/next-page.ts';
import { maskOfferRequest, toSessionView } from '../../../adapters/http/sessions/session.view.ts';
import type { TenantCaller } from '../../../application/caller.ts';
import type { SessionQuery } from '../../../application/ports/store.ts';
import { Webhooks } from '../../../application/ports/webhooks.ts';
import { CancelSession } from '../../../application/sessions/cancel-session.ts';
import { RetryDelivery } from '../../../application/sessions/retry-delivery.ts';
import { DeleteSession, GetSession, ListSessions, SessionListQuery } from '../../../application/sessions/sessions.ts';
import { ShowSession } from '../../../application/sessions/show-session.ts';
import { TenantConfiguration } from '../../../application/tenant-cache/tenant-configuration.ts';
import { prepareRedelivery } from '../../../domain/sessions/redelivery.ts';
import type { Delivery, Session, SessionOutcome } from '../../../domain/sessions/session.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import type { VerificationRequest } from '../../../domain/verification/verification-request.ts';
import { maskWebhook } from '../../../domain/webhooks/mask-webhook.ts';
import { aClient, NOW } from '../../contract/store/builders.ts';
import { sessionOpening, sessionRemoval, stepsOf } from '../../contract/store/steps.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { ACME, aSession, aWorld, codeOf, type World } from '../administrators.ts';

const TENANT = { id: 'acme', name: 'Acme', description: null, status: 'active', createdAt: new Date(0) } as const;

describe('sessions for administrators', () => {
  let world: World;
  const both = () => world.caller(['issuance:offer', 'presentation:request']);
  const id = (number: number) => `session-${number}` as SessionId;
  const asking = async (caller: TenantCaller) => {
    const head = await stepsOf(world.store, ACME).state();
    return cachedCaller({ ...caller, tenant: new TenantConfiguration(world, head ?? caller.tenant.state) });
  };

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    await world.store.prepare('a dozen sessions', async () => {
      const steps = stepsOf(world.store, ACME);
      for (let number = 0; number < 12; number++) {
        const kind = number % 2 === 0 ? 'verification' : 'issuance';
        const configurationIds = number % 3 === 0 ? ['age'] : ['age', 'pid'];
        await steps.commit(sessionOpening(aSession(world.clock, number, { kind, configurationIds })));
      }
    });
  });

  async function pages(caller: TenantCaller, query: object): Promise<string[][]> {
    const found: string[][] = [];
    let cursor: string | undefined;
    do {
      const wanted = SessionListQuery.parse({ ...query, ...(cursor !== undefined && { cursor }) });
      const page = await new ListSessions(world).execute(caller, wanted);
      found.push(page.sessions.map((session) => session.id));
      cursor = page.next;
    } while (cursor !== undefined && found.length < 20);
    return found;
  }

  it('are listed page by page, each once', async () => {
    const found = await pages(both(), { limit: 5, sort: 'asc' });
    expect(found.map((page) => page.length)).to.deep.equal([5, 5, 2]);
    expect(found.flat()).to.deep.equal(Array.from({ length: 12 }, (_, number) => id(number)));
    expect((await pages(both(), { limit: 12 })).flat()[0]).to.equal(id(11));
  });

  it('are limited by size: a page ends early, and the link continues after it', async () => {
    const steps = stepsOf(world.store, ACME);
    const outcome: SessionOutcome = { failure: { code: 'internal_error', message: 'x'.repeat(690_000) } };
    for (let number = 12; number < 38; number++) {
      await steps.commit(sessionOpening(aSession(world.clock, number, { outcome })));
    }
    const found = await pages(both(), { limit: 500, sort: 'asc' });
    expect(found.map((page) => page.length)).to.deep.equal([12 + 13, 13]);
    expect(found.flat()).to.deep.equal(Array.from({ length: 38 }, (_, number) => id(number)));
  });

  it('are read in batches, for any page size', async () => {
    const steps = stepsOf(world.store, ACME);
    for (let number = 12; number < 100; number++) await steps.commit(sessionOpening(aSession(world.clock, number)));
    const reads = world.store.read(ACME);
    const list = sinon.spy((query: SessionQuery) => reads.sessions(query));
    sinon.stub(world.store, 'read').returns({ ...reads, sessions: list });
    for (const limit of [1, 25, 99, 100, 500]) {
      expect((await pages(both(), { limit })).flat().length).to.equal(limit === 1 ? 20 : 100);
    }
    for (const { args, returnValue } of list.getCalls()) {
      expect(args[0].limit).to.be.at.most(26);
      expect(await returnValue).to.have.length.at.most(26);
    }
    list.resetHistory();
    await new ListSessions(world).execute(both(), { limit: 60, sort: 'desc' });
    const asked = list.getCalls().map(({ args }) => args[0].limit);
    expect(asked, 'no row that the page does not need').to.deep.equal([26, 26, 9]);
  });

  it('are visible only to roles of their kind', async () => {
    const issuer = world.caller(['issuance:manage']);
    expect((await pages(issuer, {})).flat()).to.have.length(6);
    expect(await codeOf(new GetSession(world).execute(await asking(issuer), id(0)))).to.equal('not_found');
    expect(await codeOf(new GetSession(world).execute(await asking(issuer), id(1)))).to.equal(undefined);
    expect(await codeOf(new DeleteSession(world).execute(issuer, id(0)))).to.equal('not_found');
  });

  it('are returned as they are stored, regardless of the cache of this process', async () => {
    const request = { kind: 'verification', offerRequest: { requestId: 'age' } } as unknown as VerificationRequest;
    const session = aSession(world.clock, 20, { request });
    await stepsOf(world.store, ACME).commit(sessionOpening(session));
    const { sessionCache: remembered } = world.tenantConfigurations;
    remembered.setSession(session);
    await stepsOf(world.store, ACME).recordOutcome(session, 'complete', { redirectUri: 'x:y' }, NOW);
    const get = async () => (await new GetSession(world).execute(await asking(both()), session.id)).session;
    const stored = { ...session, status: 'completed', version: 2, outcome: { redirectUri: 'x:y' } };
    expect(await get()).to.deep.equal({ ...stored, updatedAt: NOW });
    remembered.endSession(ACME, session.id);
    for (const time of ['once', 'again']) expect((await get()).request, time).to.deep.equal(request);
    await stepsOf(world.store, ACME).commit(sessionRemoval(session.id, 'system'));
    remembered.setSession(session);
    expect(await codeOf(get())).to.equal('not_found');
  });

  it('are visible to a restricted client when all their configurations are allowed', async () => {
    const restricted = world.caller(['presentation:request'], { allowedPresentationConfigs: ['age'] });
    expect(await pages(restricted, { limit: 1, sort: 'asc' })).to.deep.equal([[id(0)], [id(6)]]);
    expect(await codeOf(new GetSession(world).execute(await asking(restricted), id(2)))).to.equal('not_found');
  });

  it('that the caller may not read are not revealed by the links between pages', async () => {
    const restricted = world.caller(['presentation:request'], { allowedPresentationConfigs: ['age'] });
    for (const sort of ['asc', 'desc'] as const) {
      const query = SessionListQuery.parse({ limit: 1, sort });
      const { sessions, next } = await new ListSessions(world).execute(restricted, query);
      expect(next?.endsWith(`.${sessions[0]?.id}`), next).to.equal(true);
    }
    // So many that one page ends among them.
    const steps = stepsOf(world.store, ACME);
    for (let number = 12; number < 2_600; number++) await steps.commit(sessionOpening(aSession(world.clock, number, { kind: 'issuance' })));
    const issuer = world.caller(['issuance:offer'], { allowedIssuanceConfigs: ['none'] });
    for (const sort of ['asc', 'desc'] as const) {
      let cursor: string | undefined;
      let pagesRead = 0;
      do {
        const query = SessionListQuery.parse({ limit: 5, sort, ...(cursor !== undefined && { cursor }) });
        const { sessions, next } = await new ListSessions(world).execute(issuer, query);
        expect(sessions).to.deep.equal([]);
        if (next !== undefined) expect(next).to.match(/^\d+\.$/);
        cursor = next;
      } while (cursor !== undefined && ++pagesRead < 20);
      expect(pagesRead).to.be.within(1, 3);
      const own = await pages(restricted, { limit: 500, sort });
      const all = (await pages(both(), { limit: 500, sort })).flat();
      const expected = all.filter((known) => own.flat().includes(known));
      expect(own.flat()).to.deep.equal(expected);
    }
  });

  it('are not listed as open after their expiry', async () => {
    expect((await pages(both(), { status: 'active' })).flat()).to.have.length(12);
    world.clock.forward(600_005);
    expect((await pages(both(), { status: 'active' })).flat()).to.have.length(6);
  });

  it('are listed from a time on, and reject an invalid cursor', async () => {
    const since = new Date(world.clock.now().getTime() + 10).toISOString();
    expect((await pages(both(), { since })).flat()).to.deep.equal([id(11), id(10)]);
    expect(SessionListQuery.safeParse({ cursor: 'bm90aGluZw' }).success).to.equal(false);
  });

  it('are returned according to the current rights of the client, not the cached ones', async () => {
    const outdated = cachedCaller(both());
    expect(await codeOf(new GetSession(world).execute(outdated, id(0)))).to.equal(undefined);
    await world.store.forTenant(ACME, ({ clients }) => clients.add(aClient(ACME)), { by: 'system' });
    const again = async () => world.caller(['issuance:offer']);
    expect(await codeOf(new GetSession(world).execute({ ...outdated, reauthorize: again }, id(0)))).to.equal('not_found');
  });

  it('contain neither API keys of webhooks nor their own keys', () => {
    const auth = { type: 'apiKey' as const, config: { headerName: 'X-Key', value: 'hush' } };
    const webhook = { url: 'https://shop.example/hook', auth };
    const masked = { ...webhook, auth: { ...auth, config: { headerName: 'X-Key', value: '***' } } };
    expect(maskWebhook(webhook)).to.deep.equal(masked);
    const credentialClaims = { pid: { type: 'webhook', webhook }, age: { type: 'inline', claims: {} } };
    expect(maskOfferRequest({ webhook, notifyWebhook: webhook, credentialClaims, flow: 'x' })).to.deep.equal({
      webhook: masked,
      notifyWebhook: masked,
      credentialClaims: { ...credentialClaims, pid: { type: 'webhook', webhook: masked } },
      flow: 'x',
    });
    const session = aSession(world.clock, 1, {
      request: {
        kind: 'verification',
        offerRequest: { requestId: 'age', webhook },
        dcqlQuery: {},
        nonce: 'nonce',
        state: 'secret-state',
        clientId: 'x509_hash:abc',
        responseUri: 'https://id.example/acme/response/1',
        requestUrl: 'https://id.example/acme/request/1',
        responseMode: 'direct_post.jwt',
        requestObject: 'a.b.c',
        encryption: { publicJwk: {}, d: 'private-key' },
        webhook,
      },
    });
    const configured = toSessionView({ session, tenant: TENANT, now: world.clock.now() });
    expect(configured).to.deep.include({ vp_nonce: 'nonce', requestId: 'age', parsedWebhook: masked });
    expect(JSON.stringify(configured)).to.not.match(/hush|private-key|secret-state/);
  });

  it('are expired by the clock, at the time of their expiry', () => {
    const session = aSession(world.clock, 0);
    const configured = toSessionView({ session, tenant: TENANT, now: new Date(session.expiresAt.getTime() + 1) });
    expect(configured).to.include({ status: 'expired', updatedAt: session.expiresAt.toISOString() });
  });

  it('repeat the query in the link to the next page', () => {
    const query = SessionListQuery.parse({ limit: '2', status: 'active', since: '2026-01-01T00:00:00+01:00' });
    expect(nextPage('https://id.example/session', query, 'abc')['Link']).to.equal(
      '<https://id.example/session?status=active&since=2025-12-31T23%3A00%3A00.000Z&limit=2&sort=desc&cursor=abc>' + '; rel="next"',
    );
  });
});

describe('session with presented values', () => {
  let world: World;
  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    await stepsOf(world.store, ACME).commit(sessionOpening(aSession(world.clock, 1)));
  });

  const show = async (by: TenantCaller, id = 'session-1') => {
    const state = await stepsOf(world.store, ACME).state();
    const caller = { ...by, tenant: new TenantConfiguration(world, state ?? by.tenant.state) };
    return new ShowSession(world).execute(await cachedCaller(caller), id as SessionId);
  };
  const records = () => world.store.forTenant(ACME, ({ audit }) => audit.list({ action: 'shown', limit: 100 }));

  it('is recorded on each read, with the caller', async () => {
    const caller = world.caller(['presentation:request']);
    expect((await show(caller)).session.id).to.equal('session-1');
    await show(caller);
    expect((await records()).map(({ actor, kind, target }) => [actor, kind, target])).to.deep.equal(
      Array(2).fill(['acme-admin', 'session', 'session-1']),
    );
  });

  it('is hidden from a caller without the right, and records nothing', async () => {
    const REFUSED: readonly TenantCaller[] = [
      world.caller(['issuance:offer']),
      world.caller(['registrar:manage']),
      world.caller(['presentation:request'], { allowedPresentationConfigs: ['other'] }),
    ];
    for (const caller of REFUSED) expect(await codeOf(show(caller))).to.equal('not_found');
    expect(await codeOf(show(world.caller(['presentation:request']), 'nothing'))).to.equal('not_found');
    expect(await records()).to.deep.equal([]);
  });
});

describe('session that is controlled by its caller', () => {
  let world: World;

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
  });

  const open = async (more: Partial<Session> = {}): Promise<Session> => {
    const session = { ...aSession(world.clock, 1), ...more };
    await stepsOf(world.store, ACME).commit(sessionOpening(session));
    return session;
  };
  const caller = () => world.caller(['issuance:offer', 'presentation:request']);
  const asking = async (by: TenantCaller) => {
    const state = await stepsOf(world.store, ACME).state();
    return cachedCaller({ ...by, tenant: new TenantConfiguration(world, state ?? by.tenant.state) });
  };
  const cancel = async ({ id }: Session, by = caller()) => new CancelSession(world).execute(await asking(by), id);

  it('is cancelled while it is open, and not afterwards', async () => {
    const session = await open();
    const { session: ended } = await cancel(session);
    expect([ended.status, ended.outcome?.failure?.code]).to.deep.equal(['failed', 'cancelled']);
    expect(await codeOf(cancel(session))).to.equal('conflict');
  });

  it('is not cancelled after its expiry, once it is answered, or without the right', async () => {
    const answered = await open({ claimedAt: world.clock.now() });
    expect(await codeOf(cancel(answered))).to.equal('conflict');
    world.clock.forward(10_000_000);
    expect(await codeOf(cancel(answered))).to.equal('conflict');
    const stranger = world.caller(['registrar:manage']);
    expect(await codeOf(cancel(answered, stranger))).to.equal('not_found');
  });

  const FAILED: Delivery = { id: 'd', webhook: 'presentation', at: new Date(0).toISOString(), result: 'failed', detail: 'why' };
  const withDelivery = (delivery: Partial<Delivery>, more: object = { credentials: [] }): Session => ({
    ...aSession(world.clock, 2),
    outcome: { deliveries: [{ ...FAILED, ...delivery }], ...more },
  });
  const CASES: Readonly<Record<string, readonly [Partial<Delivery>, object?, string?]>> = {
    'is repeated when it failed': [{}],
    'is repeated when its result was not recorded': [{ result: 'pending' }],
    'is not repeated when it was delivered': [{ result: 'delivered' }, {}, 'conflict'],
    'is not repeated for claims': [{ webhook: 'claims' }, {}, 'conflict'],
    'is not repeated when nothing is kept of it': [{}, {}, 'gone'],
    'is unknown under another id': [{ id: 'other' }, {}, 'not_found'],
  };
  for (const [name, [delivery, more, refused]] of Object.entries(CASES)) {
    it(`has a delivery that ${name}`, async () => {
      const session = withDelivery(delivery, more);
      const work = async () => prepareRedelivery(session, 'd', world.clock.now());
      expect(await codeOf(work())).to.equal(refused);
      if (refused !== undefined) return;
      const { intent, content } = await work();
      expect(intent).to.deep.include({ id: 'd', result: 'pending' });
      expect(intent).to.not.have.property('detail');
      expect(content).to.deep.equal({ credentials: [] });
    });
  }

  it('does not repeat a delivery while one is in progress', async () => {
    const session = withDelivery({ result: 'pending', at: world.clock.now().toISOString() });
    const work = async () => prepareRedelivery(session, 'd', world.clock.now());
    expect(await codeOf(work())).to.equal('conflict');
  });

  it('does not repeat a delivery without its webhook', async () => {
    class NoWebhooks extends Webhooks {
      override refuses(): boolean {
        return true;
      }
      override post(): Promise<never> {
        throw new Error('nothing is called');
      }
    }
    const session = await open({ outcome: withDelivery({}).outcome });
    const retry = new RetryDelivery({ ...world, webhooks: new NoWebhooks() });
    expect(await codeOf(retry.execute(caller(), session.id, 'd'))).to.equal('gone');
  });
});
