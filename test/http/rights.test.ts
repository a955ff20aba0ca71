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
  let ownIds: TenantIds;

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
    const ownRequest = { response_type: 'uri', requestId: 'my-question' };
    const verification = await createResource(service, token, '/verifier/offer', ownRequest);
    const sessions = { issuance: issuance.session, verification: verification.session };
    ownIds = { ...world.ids, credential: 'mine', presentation: 'my-question', ...sessions };
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: object): Promise<Answer> =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const expectRejected = (answer: Answer, status: number, code: string, message: string) =>
    expect([answer.status, answer.body?.code], `${message}: ${answer.text}`).to.deep.equal([status, code]);

  it('cannot create offers or requests for other configurations', async () => {
    const { credential, presentation } = world.ids;
    const foreignRequest = { response_type: 'uri', requestId: presentation };
    expectRejected(await call('POST', '/verifier/offer', foreignRequest), 403, 'forbidden', 'question');
    expectRejected(await call('POST', '/issuer/offer', offerBody(credential)), 403, 'forbidden', 'offer');
    const mixedOffer = { ...offerBody('mine'), credentialConfigurationIds: ['mine', credential] };
    expectRejected(await call('POST', '/issuer/offer', mixedOffer), 403, 'forbidden', 'a mixed offer');
    const unknownOffer = await call('POST', '/issuer/offer', offerBody('nowhere'));
    expectRejected(unknownOffer, 403, 'forbidden', 'one that does not exist');
  });

  it('cannot write other configurations', async () => {
    const { credential, presentation } = world.ids;
    const card = credentialBody(credential, 'signing');
    expectRejected(await call('POST', '/issuer/credentials', card), 403, 'forbidden', 'credential');
    const configurationBody = presentationBody(presentation, 'signing');
    expectRejected(await call('POST', '/verifier/config', configurationBody), 403, 'forbidden', 'presentation');
  });

  it('finds neither other configurations nor their sessions at any address', async () => {
    let hiddenCount = 0;
    for (const route of routes) {
      for (const role of ['issuance:manage', 'presentation:manage']) {
        const { params } = recipeOf(route).request(world.ids, 'fresh', role);
        const { params: ownParameters } = recipeOf(route).request(ownIds, 'fresh', role);
        if (JSON.stringify(params) === JSON.stringify(ownParameters)) continue;
        const { json } = recipeOf(route).request(world.ids, 'fresh', role);
        hiddenCount++;
        const answer = await call(route.method.toUpperCase(), addressOf(route, params), json as object | undefined);
        expectRejected(answer, 404, 'not_found', nameOf(route));
      }
    }
    expect(hiddenCount).to.be.greaterThan(8);
    const revocation = { sessionId: world.ids.issuance, status: 1 };
    expectRejected(await call('POST', '/session/revoke', revocation), 404, 'not_found', 'revocation');
  });

  it('cannot require other configurations before an issuance, and does not learn which exist', async () => {
    const withPresentation = (presentationConfigId: string) => ({ iaeActions: [{ type: 'openid4vp_presentation', presentationConfigId }] });
    const change = (json: object) => call('PATCH', '/issuer/credentials/mine', json);
    const replace = (json: object) => call('POST', '/issuer/credentials', { ...credentialBody('mine', 'signing'), ...json });
    const hiddenId = world.ids.presentation;
    for (const write of [change, replace]) {
      const responses = [await write(withPresentation(hiddenId)), await write(withPresentation('nowhere'))];
      expect(responses.map(({ status }) => status)).to.deep.equal([400, 400]);
      const [hiddenError, unknownError] = responses.map(({ body: { detail, errors } }) => ({ detail, errors }));
      expect(hiddenError).to.deep.equal(unknownError);
      expect((await write(withPresentation('my-question'))).status).to.be.oneOf([200, 201]);
    }
    // Actions that another client configured stay, also when the restricted client sends back the configuration.
    const fullOptions = { token: world.token, json: withPresentation(hiddenId) };
    expect((await service.call('PATCH', '/issuer/credentials/mine', fullOptions)).status).to.equal(200);
    expect((await change({ description: 'changed' })).status).to.equal(200);
    expect((await change((await call('GET', '/issuer/credentials/mine')).body)).status).to.equal(200);
    expect((await change({ iaeActions: null })).status).to.equal(200);
    expect((await change(withPresentation(hiddenId))).status).to.equal(400);
  });

  it('does not learn the ids of other configurations from conflicts with them', async () => {
    const { credential } = world.ids;
    const scope = (id: string) => ({ config: { ...credentialBody(id, 'signing').config, scope: 'taken' } });
    const patchAsAdmin = (path: string, json: object) => service.call('PATCH', path, { token: world.token, json });
    const presentationActions = [{ type: 'openid4vp_presentation', presentationConfigId: 'my-question' }];
    const otherChange = await patchAsAdmin(`/issuer/credentials/${credential}`, { ...scope(credential), iaeActions: presentationActions });
    expect(otherChange.status, otherChange.text).to.equal(200);
    const conflictingChange = await call('PATCH', '/issuer/credentials/mine', scope('mine'));
    expectRejected(conflictingChange, 400, 'invalid_input', 'scope');
    const deletion = await call('DELETE', '/verifier/config/my-question');
    expectRejected(deletion, 409, 'conflict', 'removal');
    for (const { text } of [conflictingChange, deletion]) expect(text).to.not.include(credential);
    expect((await patchAsAdmin(`/issuer/credentials/${credential}`, { iaeActions: null })).status).to.equal(200);
  });

  it('gets only its own configurations in lists', async () => {
    const ids = async (path: string) => (await call('GET', path)).body.map((entry: { id: string }) => entry.id) as string[];
    expect(await ids('/issuer/credentials')).to.deep.equal(['mine']);
    expect(await ids('/verifier/config')).to.deep.equal(['my-question']);
    expect(await ids('/session')).to.have.members([ownIds.issuance, ownIds.verification]);
    expect(await ids('/session?limit=1')).to.have.length(1);
  });

  it('gets no session that contains its own and other configurations', async () => {
    const mixedOffer = { ...offerBody('mine'), credentialConfigurationIds: ['mine', world.ids.credential] };
    const { session, uri } = await createResource(service, world.token, '/issuer/offer', mixedOffer);
    expect((await call('GET', `/session/${session}`)).status).to.equal(404);
    expect((await call('DELETE', `/session/${session}`)).status).to.equal(404);
    // So far the session has issued only credentials that the client may use.
    const accessToken = await world.wallet.accessToken(uri);
    expect((await world.wallet.request(accessToken, 'mine')).status).to.equal(200);
    const summary = ({ status, body: { detail, code } }: Answer) => ({ status, detail, code });
    for (const options of [{}, { credentialConfigurationId: 'mine' }]) {
      const revoke = (sessionId: string) => call('POST', '/session/revoke', { sessionId, status: 1, ...options });
      const answer = await revoke(session);
      expectRejected(answer, 404, 'not_found', 'revocation');
      expect(summary(answer)).to.deep.equal(summary(await revoke('nothing')));
    }
    const otherCredential = await world.wallet.request(accessToken, world.ids.credential);
    expect(otherCredential.status, `nothing was barred: ${otherCredential.text}`).to.equal(200);
  });

  it('does not see status lists of other configurations', async () => {
    const list = (json: object) => createResource(service, world.token, '/status-lists', json);
    const hiddenList = await list({ credentialConfigurationId: world.ids.credential });
    const visible = [await list({ credentialConfigurationId: 'mine' }), await list({})];
    const { body, text } = await call('GET', '/status-lists');
    const ids = body.map(({ id }: { id: string }) => id);
    expect(ids)
      .to.include.members(visible.map(({ id }) => id))
      .and.not.include(hiddenList.id);
    expect(text).to.not.include(world.ids.credential);
    for (const { id } of visible) expect((await call('GET', `/status-lists/${id}`)).status).to.equal(200);
    const summary = ({ status, body: { detail, code } }: Answer) => ({ status, detail, code });
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const callList = (id: string) =>
        call(method, `/status-lists/${id}`, method === 'PATCH' ? { credentialConfigurationId: null } : undefined);
      expect(summary(await callList(hiddenList.id)), method).to.deep.equal(summary(await callList('nothing')));
    }
    expect((await service.call('GET', '/status-lists', { token: world.token })).text).to.include(hiddenList.id);
  });

  it('cannot remove its restriction or create a client without it', async () => {
    const roles = ['issuance:offer'];
    for (const allowed of [null, [], ['mine', world.ids.credential]]) {
      const widerClient = { roles, allowedIssuanceConfigs: allowed, allowedPresentationConfigs: ['my-question'] };
      const rejectedClient = await call('POST', '/client', { clientId: 'freer', ...widerClient });
      expectRejected(rejectedClient, 403, 'forbidden', `create with ${allowed}`);
      expectRejected(await call('PATCH', '/client/restricted', widerClient), 403, 'forbidden', `change to ${allowed}`);
    }
    const withoutRestriction = await call('POST', '/client', { clientId: 'freer', roles });
    expectRejected(withoutRestriction, 403, 'forbidden', 'create without saying anything');
  });
});

/** Writes of clients, configurations, sessions and tenants, which apply the restriction themselves. */
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
    const bodyOptions = json === undefined ? {} : { json };
    return service.call(route.method.toUpperCase(), addressOf(route, params), { token, ...bodyOptions });
  };

  for (const [kind, restriction] of [
    ['issuance', { allowedIssuanceConfigs: ['mine'] }],
    ['presentation', { allowedPresentationConfigs: ['my-question'] }],
  ] as const) {
    it(`are read, but not written, by clients that are restricted to some ${kind} configurations`, async () => {
      const token = await addClient(world, `only-some-${kind}`, { roles: TENANT_ROLES, ...restriction });
      const commonRoutes = routes.filter((route) => !SINGLE.test(nameOf(route)));
      const writes = commonRoutes.filter(({ method }) => method !== 'get');
      expect(writes).to.have.length.greaterThan(25);
      for (const route of writes) {
        const { status, text, body } = await call(route, token);
        expect([status, body?.code], `${nameOf(route)}: ${text}`).to.deep.equal([403, 'forbidden']);
        expect(body.detail, nameOf(route)).to.include('restricted');
      }
      const paths = new Set(writes.map(({ path }) => path));
      const reads = commonRoutes.filter(({ method, path }) => method === 'get' && paths.has(path));
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
    expect(await get('/client', token), 'and after the role was restored').to.equal(200);
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
    const newToken = (await service.call('POST', '/oauth2/token', { json })).body.access_token;
    expect(await get('/client', token)).to.equal(401);
    expect(await get('/client', newToken)).to.equal(200);
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

  it('cannot take over a client with more roles than its own roles', async () => {
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
    const pickUp = await service.call('GET', '/client/strong/secret', { token: world.token });
    expect(pickUp.status, 'the secret can still be picked up').to.equal(200);
  });

  it('cannot take over a client with access to more configurations', async () => {
    const restrictedClient = { roles: ['clients:manage', 'issuance:offer'], allowedIssuanceConfigs: ['badge'] };
    const token = await addClient(world, 'narrow', restrictedClient);
    const json = { clientId: 'wide', roles: ['issuance:offer'] };
    expect((await service.call('POST', '/client', { token: world.token, json })).status).to.equal(201);
    expect((await service.call('POST', '/client/wide/rotate-secret', { token })).status).to.equal(403);
  });
});

describe('rights that a client may grant', () => {
  let service: TestService;
  let world: { service: TestService; token: string };
  let restrictedToken: string;
  let keeper: string;

  before(async () => {
    service = await startTestService();
    const { token } = await createTenant(service, 'acme');
    world = { service, token };
    const ownRestriction = { allowedIssuanceConfigs: ['mine'], allowedPresentationConfigs: ['mine'] };
    restrictedToken = await addClient(world, 'restricted', { roles: ['clients:manage', 'issuance:offer'], ...ownRestriction });
    keeper = await addClient(world, 'keeper', { roles: ['clients:manage'] });
  });
  after(() => service.close());

  const patch = (token: string, clientId: string, json: object) => service.call('PATCH', `/client/${clientId}`, { token, json });
  const expectForbidden = (answer: Answer) => expect([answer.status, answer.body.code], answer.text).to.deep.equal([403, 'forbidden']);
  const expectSuccess = (answer: Answer) => expect(answer.status, answer.text).to.equal(200);

  it('include no role for other configurations', async () => {
    await addClient(world, 'wide', { roles: ['clients:manage'] });
    const roles = ['clients:manage', 'issuance:offer'];
    expectForbidden(await patch(restrictedToken, 'wide', { roles }));
    expectForbidden(await patch(restrictedToken, 'wide', { roles, allowedIssuanceConfigs: ['mine'] }));
    // The administrator may not hold the secret of that client, so it cannot change the client.
    expectForbidden(await patch(restrictedToken, 'wide', { roles: ['clients:manage'], description: 'the same' }));
    const lists = { allowedIssuanceConfigs: ['mine'], allowedPresentationConfigs: ['mine'] };
    expectForbidden(await patch(restrictedToken, 'wide', { roles, ...lists }));
    await addClient(world, 'narrow', { roles: ['clients:manage'], ...lists });
    expectSuccess(await patch(restrictedToken, 'narrow', { roles, ...lists }));
  });

  it('exclude clients with roles that it lacks, and it cannot revoke those', async () => {
    const [both, lists] = [['issuance:offer', 'issuance:manage'], { allowedIssuanceConfigs: ['a', 'b'] }];
    await addClient(world, 'issuer', { roles: both, ...lists });
    for (const widerList of [null, [], ['a', 'b', 'c']])
      expectForbidden(await patch(keeper, 'issuer', { roles: both, allowedIssuanceConfigs: widerList }));
    expectForbidden(await patch(keeper, 'issuer', { roles: [...both, 'clients:manage'] }));
    // Both changes in one request are rejected, too.
    expectForbidden(await patch(keeper, 'issuer', { roles: ['clients:manage'], allowedIssuanceConfigs: null }));
    expectForbidden(await patch(keeper, 'issuer', { roles: both, allowedIssuanceConfigs: ['a'] }));
    expectForbidden(await patch(keeper, 'issuer', { roles: ['issuance:offer'], description: 'smaller' }));
    expectForbidden(await service.call('DELETE', '/client/issuer', { token: keeper }));
    expectSuccess(await service.call('DELETE', '/client/issuer', { token: world.token }));
  });

  it('exclude the name of an administrator of another tenant', async () => {
    const add = (clientId: string) =>
      service.call('POST', '/client', { token: world.token, json: { clientId, roles: ['issuance:offer'] } });
    const creation = await add('future-admin');
    expect([creation.status, creation.body.code], creation.text).to.deep.equal([400, 'invalid_input']);
    expect(creation.body.errors[0].path).to.equal('clientId');
    await createTenant(service, 'future');
    expectSuccess(await service.call('DELETE', '/client/acme-admin', { token: world.token }));
    const ownClient = { clientId: 'acme-admin', roles: ['clients:manage'] };
    expect((await service.call('POST', '/client', { token: keeper, json: ownClient })).status).to.equal(201);
  });
});
