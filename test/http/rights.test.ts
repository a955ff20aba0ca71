import { expect } from 'chai';
import type { Route } from '../../adapters/http/route.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import {
  addClient,
  createResource,
  credentialBody,
  offerBody,
  type PopulatedTenant,
  populate,
  presentationBody,
  type TenantIds,
} from '../support/populated.ts';
import { addressOf, freshId, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { type Answer, createTenant, startTestService, TENANT_ROLES, type TestService } from '../support/test-service.ts';

describe('client that is restricted to some configurations', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let routes: readonly Route[];
  let token: string;
  let own: TenantIds;

  before(async () => {
    service = await startTestService();
    routes = collectRoutes(service.service.container).filter((route) => rolesOf(route) !== undefined);
    world = await populate(service, 'acme');
    const post = (path: string, json: object) => createResource(service, world.token, path, json);
    await post('/issuer/credentials', credentialBody('mine', 'signing'));
    await post('/verifier/config', presentationBody('my-question', 'signing'));
    token = await addClient(world, 'restricted', {
      roles: TENANT_ROLES,
      allowedIssuanceConfigs: ['mine'],
      allowedPresentationConfigs: ['my-question'],
    });
    const issuance = await createResource(service, token, '/issuer/offer', offerBody('mine'));
    const question = { response_type: 'uri', requestId: 'my-question' };
    const verification = await createResource(service, token, '/verifier/offer', question);
    const sessions = { issuance: issuance.session, verification: verification.session };
    own = { ...world.ids, credential: 'mine', presentation: 'my-question', ...sessions };
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: object): Promise<Answer> =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const expectRefusal = (answer: Answer, status: number, code: string, message: string) =>
    expect([answer.status, answer.body?.code], `${message}: ${answer.text}`).to.deep.equal([status, code]);

  it('cannot create offers or requests for other configurations', async () => {
    const { credential, presentation } = world.ids;
    const question = { response_type: 'uri', requestId: presentation };
    expectRefusal(await call('POST', '/verifier/offer', question), 403, 'forbidden', 'question');
    expectRefusal(await call('POST', '/issuer/offer', offerBody(credential)), 403, 'forbidden', 'offer');
    const mixed = { ...offerBody('mine'), credentialConfigurationIds: ['mine', credential] };
    expectRefusal(await call('POST', '/issuer/offer', mixed), 403, 'forbidden', 'a mixed offer');
    const unknown = await call('POST', '/issuer/offer', offerBody('nowhere'));
    expectRefusal(unknown, 403, 'forbidden', 'one that does not exist');
  });

  it('cannot write other configurations', async () => {
    const { credential, presentation } = world.ids;
    const card = credentialBody(credential, 'signing');
    expectRefusal(await call('POST', '/issuer/credentials', card), 403, 'forbidden', 'credential');
    const question = presentationBody(presentation, 'signing');
    expectRefusal(await call('POST', '/verifier/config', question), 403, 'forbidden', 'presentation');
  });

  it('finds neither other configurations nor their sessions at any address', async () => {
    let hidden = 0;
    for (const route of routes) {
      for (const role of ['issuance:manage', 'presentation:manage']) {
        const { params } = recipeOf(route).request(world.ids, 'fresh', role);
        const { params: ownParams } = recipeOf(route).request(own, 'fresh', role);
        if (JSON.stringify(params) === JSON.stringify(ownParams)) continue;
        const { json } = recipeOf(route).request(world.ids, 'fresh', role);
        hidden++;
        const answer = await call(route.method.toUpperCase(), addressOf(route, params), json as object | undefined);
        expectRefusal(answer, 404, 'not_found', nameOf(route));
      }
    }
    expect(hidden).to.be.greaterThan(8);
    const revocation = { sessionId: world.ids.issuance, status: 1 };
    expectRefusal(await call('POST', '/session/revoke', revocation), 404, 'not_found', 'revocation');
  });

  it('cannot require other configurations before an issuance, and does not learn which exist', async () => {
    const asking = (presentationConfigId: string) => ({ iaeActions: [{ type: 'openid4vp_presentation', presentationConfigId }] });
    const change = (json: object) => call('PATCH', '/issuer/credentials/mine', json);
    const replace = (json: object) => call('POST', '/issuer/credentials', { ...credentialBody('mine', 'signing'), ...json });
    const hidden = world.ids.presentation;
    for (const write of [change, replace]) {
      const answers = [await write(asking(hidden)), await write(asking('nowhere'))];
      expect(answers.map(({ status }) => status)).to.deep.equal([400, 400]);
      const [ofHidden, ofNone] = answers.map(({ body: { detail, errors } }) => ({ detail, errors }));
      expect(ofHidden).to.deep.equal(ofNone);
      expect((await write(asking('my-question'))).status).to.be.oneOf([200, 201]);
    }
    // What somebody else had asked for stays, also where the client sends back what it read.
    const whole = { token: world.token, json: asking(hidden) };
    expect((await service.call('PATCH', '/issuer/credentials/mine', whole)).status).to.equal(200);
    expect((await change({ description: 'changed' })).status).to.equal(200);
    expect((await change((await call('GET', '/issuer/credentials/mine')).body)).status).to.equal(200);
    expect((await change({ iaeActions: null })).status).to.equal(200);
    expect((await change(asking(hidden))).status).to.equal(400);
  });

  it('does not learn the ids of other configurations from conflicts with them', async () => {
    const { credential } = world.ids;
    const scope = (id: string) => ({ config: { ...credentialBody(id, 'signing').config, scope: 'taken' } });
    const whole = (path: string, json: object) => service.call('PATCH', path, { token: world.token, json });
    const asks = [{ type: 'openid4vp_presentation', presentationConfigId: 'my-question' }];
    const other = await whole(`/issuer/credentials/${credential}`, { ...scope(credential), iaeActions: asks });
    expect(other.status, other.text).to.equal(200);
    const clash = await call('PATCH', '/issuer/credentials/mine', scope('mine'));
    expectRefusal(clash, 400, 'invalid_input', 'scope');
    const removal = await call('DELETE', '/verifier/config/my-question');
    expectRefusal(removal, 409, 'conflict', 'removal');
    for (const { text } of [clash, removal]) expect(text).to.not.include(credential);
    expect((await whole(`/issuer/credentials/${credential}`, { iaeActions: null })).status).to.equal(200);
  });

  it('sees only its own configurations in lists', async () => {
    const ids = async (path: string) => (await call('GET', path)).body.map((entry: { id: string }) => entry.id) as string[];
    expect(await ids('/issuer/credentials')).to.deep.equal(['mine']);
    expect(await ids('/verifier/config')).to.deep.equal(['my-question']);
    expect(await ids('/session')).to.have.members([own.issuance, own.verification]);
    expect(await ids('/session?limit=1')).to.have.length(1);
  });

  it('does not see a session that mixes its own configurations with others', async () => {
    const mixed = { ...offerBody('mine'), credentialConfigurationIds: ['mine', world.ids.credential] };
    const { session, uri } = await createResource(service, world.token, '/issuer/offer', mixed);
    expect((await call('GET', `/session/${session}`)).status).to.equal(404);
    expect((await call('DELETE', `/session/${session}`)).status).to.equal(404);
    // So far it has issued what the client may use, and nothing else.
    const accessToken = await world.wallet.accessToken(uri);
    expect((await world.wallet.request(accessToken, 'mine')).status).to.equal(200);
    const told = ({ status, body: { detail, code } }: Answer) => ({ status, detail, code });
    for (const some of [{}, { credentialConfigurationId: 'mine' }]) {
      const revoke = (sessionId: string) => call('POST', '/session/revoke', { sessionId, status: 1, ...some });
      const answer = await revoke(session);
      expectRefusal(answer, 404, 'not_found', 'revocation');
      expect(told(answer)).to.deep.equal(told(await revoke('nothing')));
    }
    const other = await world.wallet.request(accessToken, world.ids.credential);
    expect(other.status, `nothing was barred: ${other.text}`).to.equal(200);
  });

  it('does not see status lists of other configurations', async () => {
    const list = (json: object) => createResource(service, world.token, '/status-lists', json);
    const hidden = await list({ credentialConfigurationId: world.ids.credential });
    const visible = [await list({ credentialConfigurationId: 'mine' }), await list({})];
    const { body, text } = await call('GET', '/status-lists');
    const ids = body.map(({ id }: { id: string }) => id);
    expect(ids)
      .to.include.members(visible.map(({ id }) => id))
      .and.not.include(hidden.id);
    expect(text).to.not.include(world.ids.credential);
    for (const { id } of visible) expect((await call('GET', `/status-lists/${id}`)).status).to.equal(200);
    const told = ({ status, body: { detail, code } }: Answer) => ({ status, detail, code });
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const of = (id: string) => call(method, `/status-lists/${id}`, method === 'PATCH' ? { credentialConfigurationId: null } : undefined);
      expect(told(await of(hidden.id)), method).to.deep.equal(told(await of('nothing')));
    }
    expect((await service.call('GET', '/status-lists', { token: world.token })).text).to.include(hidden.id);
  });

  it('cannot remove its restriction or create a client without it', async () => {
    const roles = ['issuance:offer'];
    for (const allowed of [null, [], ['mine', world.ids.credential]]) {
      const wider = { roles, allowedIssuanceConfigs: allowed, allowedPresentationConfigs: ['my-question'] };
      const made = await call('POST', '/client', { clientId: 'freer', ...wider });
      expectRefusal(made, 403, 'forbidden', `create with ${allowed}`);
      expectRefusal(await call('PATCH', '/client/restricted', wider), 403, 'forbidden', `change to ${allowed}`);
    }
    const silent = await call('POST', '/client', { clientId: 'freer', roles });
    expectRefusal(silent, 403, 'forbidden', 'create without saying anything');
  });
});

/** Writes about clients, configurations, sessions and tenants, which look at the restriction themselves. */
const SINGLE =
  /^\w+ \/(client|tenant|issuer\/(credentials|offer|deferred)|verifier|session|credentials|registrar\/registration-certificate)(\/|$)/;

describe('objects that all configurations depend on', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let routes: readonly Route[];

  before(async () => {
    service = await startTestService();
    routes = collectRoutes(service.service.container).filter((route) => rolesOf(route) !== undefined);
    world = await populate(service, 'acme');
  });
  after(() => service.close());

  const call = (route: Route, token: string) => {
    const { params, json } = recipeOf(route).request(world.ids, freshId(), 'issuance:manage');
    const sent = json === undefined ? {} : { json };
    return service.call(route.method.toUpperCase(), addressOf(route, params), { token, ...sent });
  };

  for (const [kind, restriction] of [
    ['issuance', { allowedIssuanceConfigs: ['mine'] }],
    ['presentation', { allowedPresentationConfigs: ['my-question'] }],
  ] as const) {
    it(`are read, but not written, by clients that are restricted to some ${kind} configurations`, async () => {
      const token = await addClient(world, `only-some-${kind}`, { roles: TENANT_ROLES, ...restriction });
      const common = routes.filter((route) => !SINGLE.test(nameOf(route)));
      const writes = common.filter(({ method }) => method !== 'get');
      expect(writes).to.have.length.greaterThan(25);
      for (const route of writes) {
        const { status, text, body } = await call(route, token);
        expect([status, body?.code], `${nameOf(route)}: ${text}`).to.deep.equal([403, 'forbidden']);
        expect(body.detail, nameOf(route)).to.include('restricted');
      }
      const paths = new Set(writes.map(({ path }) => path));
      const reads = common.filter(({ method, path }) => method === 'get' && paths.has(path));
      expect(reads).to.have.length.greaterThan(8);
      for (const route of reads) {
        expect((await call(route, token)).status, nameOf(route)).to.not.equal(403);
      }
    });
  }

  it('are written by clients with empty lists, which mean all configurations', async () => {
    const all = { allowedIssuanceConfigs: [], allowedPresentationConfigs: [] };
    const token = await addClient(world, 'all', { roles: TENANT_ROLES, ...all });
    expect((await service.call('DELETE', '/cache', { token })).status).to.equal(204);
  });
});

describe('changed rights', () => {
  let service: TestService;
  let world: PopulatedTenant;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
  });
  after(() => service.close());

  const get = async (path: string, token: string) => (await service.call('GET', path, { token })).status;
  const change = async (clientId: string, json: object) => {
    const answer = await service.call('PATCH', `/client/${clientId}`, { token: world.token, json });
    expect(answer.status, answer.text).to.equal(200);
  };

  it('apply to an issued token: a removed role', async () => {
    const token = await addClient(world, 'demoted', { roles: ['issuance:manage', 'clients:manage'] });
    expect(await get('/client', token)).to.equal(200);
    await change('demoted', { roles: ['issuance:manage'] });
    expect(await get('/client', token)).to.equal(403);
    expect(await get('/issuer/config', token)).to.equal(200);
    await change('demoted', { roles: ['issuance:manage', 'clients:manage'] });
    expect(await get('/client', token), 'and given back').to.equal(200);
  });

  it('apply to an issued token: a restriction', async () => {
    const token = await addClient(world, 'narrowed', { roles: ['issuance:manage'] });
    const path = `/issuer/credentials/${world.ids.credential}`;
    expect(await get(path, token)).to.equal(200);
    await change('narrowed', { roles: ['issuance:manage'], allowedIssuanceConfigs: ['another'] });
    expect(await get(path, token)).to.equal(404);
  });

  it('end with the client', async () => {
    const token = await addClient(world, 'leaving', { roles: ['clients:manage'] });
    expect(await get('/client', token)).to.equal(200);
    expect((await service.call('DELETE', '/client/leaving', { token })).status).to.equal(200);
    expect(await get('/client', token)).to.equal(401);
  });

  it('are suspended with the tenant and end with its deletion', async () => {
    const { token } = await populate(service, 'short-lived');
    const root = await service.rootToken();
    const set = (status: string) => service.call('PATCH', '/tenant/short-lived', { token: root, json: { status } });
    expect(await get('/client', token)).to.equal(200);
    expect((await set('suspended')).status).to.equal(200);
    expect(await get('/client', token)).to.equal(403);
    const credentials = { client_id: 'short-lived-client', client_secret: 'whatever it is' };
    const login = await service.call('POST', '/oauth2/token', { json: { grant_type: 'client_credentials', ...credentials } });
    expect(login.status).to.equal(401);
    expect((await set('active')).status).to.equal(200);
    expect(await get('/client', token)).to.equal(200);
    expect((await service.call('DELETE', '/tenant/short-lived', { token: root })).status).to.equal(200);
    expect(await get('/client', token)).to.equal(401);
  });

  it('do not return with a new client of the same name', async () => {
    const token = await addClient(world, 'phoenix', { roles: ['clients:manage'] });
    expect((await service.call('DELETE', '/client/phoenix', { token: world.token })).status).to.equal(200);
    await addClient(world, 'phoenix', { roles: ['clients:manage'] });
    const credentials = { client_id: 'phoenix', client_secret: 'secret-of-phoenix-0123456789' };
    const json = { grant_type: 'client_credentials', ...credentials };
    const fresh = (await service.call('POST', '/oauth2/token', { json })).body.access_token;
    expect(await get('/client', token)).to.equal(401);
    expect(await get('/client', fresh)).to.equal(200);
  });
});

describe('client that administers clients', () => {
  let service: TestService;
  let world: PopulatedTenant;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
  });
  after(() => service.close());

  it('cannot take over a client with more roles than its own', async () => {
    const token = await addClient(world, 'keeper', { roles: ['clients:manage'] });
    const json = { clientId: 'strong', roles: ['issuance:manage'] };
    expect((await service.call('POST', '/client', { token: world.token, json })).status).to.equal(201);
    for (const [method, path] of [
      ['POST', '/client/acme-admin/rotate-secret'],
      ['POST', '/client/strong/rotate-secret'],
      ['GET', '/client/strong/secret'],
    ] as const) {
      expect((await service.call(method, path, { token })).status, path).to.equal(403);
    }
    const picked = await service.call('GET', '/client/strong/secret', { token: world.token });
    expect(picked.status, 'and the secret still waits for whoever may have it').to.equal(200);
  });

  it('cannot take over a client with wider restrictions than its own', async () => {
    const restricted = { roles: ['clients:manage', 'issuance:offer'], allowedIssuanceConfigs: ['badge'] };
    const token = await addClient(world, 'narrow', restricted);
    const json = { clientId: 'wide', roles: ['issuance:offer'] };
    expect((await service.call('POST', '/client', { token: world.token, json })).status).to.equal(201);
    expect((await service.call('POST', '/client/wide/rotate-secret', { token })).status).to.equal(403);
  });
});

describe('rights that a client may grant', () => {
  let service: TestService;
  let world: { service: TestService; token: string };
  let restricted: string;
  let keeper: string;

  before(async () => {
    service = await startTestService();
    const { token } = await createTenant(service, 'acme');
    world = { service, token };
    const mine = { allowedIssuanceConfigs: ['mine'], allowedPresentationConfigs: ['mine'] };
    restricted = await addClient(world, 'restricted', { roles: ['clients:manage', 'issuance:offer'], ...mine });
    keeper = await addClient(world, 'keeper', { roles: ['clients:manage'] });
  });
  after(() => service.close());

  const patch = (token: string, clientId: string, json: object) => service.call('PATCH', `/client/${clientId}`, { token, json });
  const expectRefusal = (answer: Answer) => expect([answer.status, answer.body.code], answer.text).to.deep.equal([403, 'forbidden']);
  const expectDone = (answer: Answer) => expect(answer.status, answer.text).to.equal(200);

  it('include no role for configurations beyond its own', async () => {
    await addClient(world, 'wide', { roles: ['clients:manage'] });
    const roles = ['clients:manage', 'issuance:offer'];
    expectRefusal(await patch(restricted, 'wide', { roles }));
    expectRefusal(await patch(restricted, 'wide', { roles, allowedIssuanceConfigs: ['mine'] }));
    // It may not hold the secret of that client, so it changes nothing of it.
    expectRefusal(await patch(restricted, 'wide', { roles: ['clients:manage'], description: 'the same' }));
    const lists = { allowedIssuanceConfigs: ['mine'], allowedPresentationConfigs: ['mine'] };
    expectRefusal(await patch(restricted, 'wide', { roles, ...lists }));
    await addClient(world, 'narrow', { roles: ['clients:manage'], ...lists });
    expectDone(await patch(restricted, 'narrow', { roles, ...lists }));
  });

  it('exclude clients with roles that it lacks, and it cannot revoke those', async () => {
    const [both, lists] = [['issuance:offer', 'issuance:manage'], { allowedIssuanceConfigs: ['a', 'b'] }];
    await addClient(world, 'issuer', { roles: both, ...lists });
    for (const wider of [null, [], ['a', 'b', 'c']])
      expectRefusal(await patch(keeper, 'issuer', { roles: both, allowedIssuanceConfigs: wider }));
    expectRefusal(await patch(keeper, 'issuer', { roles: [...both, 'clients:manage'] }));
    // Both steps at once are no way round either.
    expectRefusal(await patch(keeper, 'issuer', { roles: ['clients:manage'], allowedIssuanceConfigs: null }));
    expectRefusal(await patch(keeper, 'issuer', { roles: both, allowedIssuanceConfigs: ['a'] }));
    expectRefusal(await patch(keeper, 'issuer', { roles: ['issuance:offer'], description: 'smaller' }));
    expectRefusal(await service.call('DELETE', '/client/issuer', { token: keeper }));
    expectDone(await service.call('DELETE', '/client/issuer', { token: world.token }));
  });

  it('exclude the name of an administrator of another tenant', async () => {
    const add = (clientId: string) =>
      service.call('POST', '/client', { token: world.token, json: { clientId, roles: ['issuance:offer'] } });
    const taken = await add('future-admin');
    expect([taken.status, taken.body.code], taken.text).to.deep.equal([400, 'invalid_input']);
    expect(taken.body.errors[0].path).to.equal('clientId');
    await createTenant(service, 'future');
    expectDone(await service.call('DELETE', '/client/acme-admin', { token: world.token }));
    const own = { clientId: 'acme-admin', roles: ['clients:manage'] };
    expect((await service.call('POST', '/client', { token: keeper, json: own })).status).to.equal(201);
  });
});
