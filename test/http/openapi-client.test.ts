import { Validator } from '@seriousme/openapi-schema-validator';
import type { AxiosInstance, AxiosResponse } from 'axios';
import { expect } from 'chai';
import { OpenAPIClientAxios } from 'openapi-client-axios';
import type { Route } from '../../adapters/http/route.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { allOperations } from '../../tools/api-document.ts';
import { Browser, type ChainedWallet, ChainedWorld } from '../support/chained-world.ts';
import { NEXT_FINGERPRINT, type PopulatedTenant, populate, type TenantIds } from '../support/populated.ts';
import { sharedRegistrar } from '../support/registrar.ts';
import { addressOf, freshId, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { ROOT, startTestService, type TestService } from '../support/test-service.ts';
import OPERATIONS from './contract-operations.json' with { type: 'json' };

/** Operations of a client that was made from the document: parameters, then the body. */
// biome-ignore lint/suspicious/noExplicitAny: its answers are as the document says
type Operation = (parameters?: object | null, body?: object) => Promise<AxiosResponse<any>>;
type Client = AxiosInstance & Readonly<Record<string, Operation>>;

describe('OpenAPI document', () => {
  let service: TestService;
  // biome-ignore lint/suspicious/noExplicitAny: a document of every shape
  let document: any;
  let routes: readonly Route[];

  before(async () => {
    service = await startTestService();
    routes = collectRoutes(service.service.container);
    document = (await service.call('GET', '/openapi.json')).body;
  });
  after(() => service.close());

  it('is valid', async () => {
    const verdict = await new Validator().validate(structuredClone(document));
    expect(verdict.valid, JSON.stringify(verdict.errors)).to.equal(true);
  });

  it('names every operation once, by its purpose', async () => {
    const named = Object.entries<Record<string, { operationId?: string }>>(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => ({
        address: `${method.toUpperCase()} ${path.replaceAll(/\{([^}]+)\}/g, ':$1')}`,
        operationId,
      })),
    );
    expect(named.filter(({ operationId }) => operationId === undefined)).to.deep.equal([]);
    const names = named.map(({ operationId }) => operationId);
    expect(new Set(names).size).to.equal(names.length);
    expect(named.map(({ address }) => address)).to.have.members([...(await allOperations())]);
    for (const name of names) expect(name).to.match(/^[a-z]+(?:[A-Z][a-z]+)*$/);
    expect(names).to.include.members(['createAccessToken', 'createOffer', 'listSessions', 'getSession']);
  });

  it('begins with the most used operations', () => {
    const names = document.tags.map(({ name }: { name: string }) => name);
    expect(names.slice(0, 5)).to.deep.equal(['Authentication', 'Tenants', 'Issuer', 'Verifier', 'Sessions']);
    const wallets = names.findIndex((name: string) => name.startsWith('Wallet'));
    expect(names.slice(wallets).every((name: string) => name.startsWith('Wallet'))).to.equal(true);
    const [first] = Object.keys(document.paths);
    expect(first).to.equal('/oauth2/token');
    const { clientCredentials } = document.components.securitySchemes.clientCredentials.flows;
    expect(clientCredentials.tokenUrl).to.equal(`${service.address}/oauth2/token`);
  });

  it('has no properties that generators reject, no platform-dependent numbers, and one schema for any JSON', () => {
    const text = JSON.stringify(document);
    expect(text).to.not.include(String(Number.MAX_SAFE_INTEGER));
    expect(text).to.not.match(/__schema\d/);
    expect(document.components.schemas.Json).to.deep.equal({ description: 'Any JSON value' });
    const { batchSize } = document.components.schemas.IssuanceConfigurationInput.properties;
    expect(batchSize).to.not.have.property('default');
    expect(batchSize.description).to.match(/unless stated/i);
  });

  it('describes each operation with its purpose, input and errors, with an example', () => {
    for (const route of routes.filter(({ tag }) => tag !== 'Service')) {
      const path = route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}');
      const operation = document.paths[path][route.method];
      const name = nameOf(route);
      expect(operation.summary, name).to.be.a('string').and.not.equal('');
      const inPath = (operation.parameters ?? []).filter((one: { in: string }) => one.in === 'path');
      const named = [...path.matchAll(/\{([^}]+)\}/g)].map(([, parameter]) => parameter);
      expect(
        inPath.map((one: { name: string }) => one.name),
        name,
      ).to.have.members(named);
      expect(Object.keys(operation.responses), name).to.include.members(['400', '500']);
      if (route.body === undefined) continue;
      for (const content of Object.values<{ example?: object }>(operation.requestBody.content)) {
        if ('example' in content) expect(content.example, name).to.be.an('object');
      }
      expect(route.example, `${name} has an example`).to.be.an('object');
    }
  });

  describe('as the input of a client generator', () => {
    const clientOf = async (token?: string): Promise<Client> => {
      const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      const axiosConfigDefaults = { headers, adapter: 'fetch', validateStatus: () => true } as const;
      const api = new OpenAPIClientAxios({ definition: document, axiosConfigDefaults });
      return (await api.init()) as unknown as Client;
    };
    const call = async (client: Client, name: string, parameters: object | null, body?: object) => {
      const operation = client[name];
      if (operation === undefined) throw new Error(`no operation ${name}`);
      const { status, data } = await operation(parameters, body);
      expect(status, `${name} ${JSON.stringify(data)}`).to.be.oneOf([200, 201, 204]);
      return data;
    };

    it('yields a client that works from the first tenant to the last revocation', async () => {
      const operator = await clientOf(await service.rootToken());
      const roles = ['clients:manage', 'issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request'];
      const { clients } = await call(operator, 'createTenant', null, { id: 'made', name: 'Made', roles });
      const { access_token } = await call(await clientOf(), 'createAccessToken', null, {
        grant_type: 'client_credentials',
        client_id: clients[0].clientId,
        client_secret: clients[0].secret,
      });
      const client = await clientOf(access_token);
      await call(client, 'replaceCredentialConfiguration', null, {
        id: 'badge',
        config: { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] },
        vct: 'urn:made:badge:1',
        claims: { name: 'Ada' },
        statusManagement: true,
      });
      const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['badge'] };
      const { session } = await call(client, 'createOffer', null, offer);
      const credentials = [{ id: 'badge', format: 'dc+sd-jwt', meta: { vct_values: ['urn:made:badge:1'] } }];
      await call(client, 'replacePresentationConfiguration', null, { id: 'who', dcql_query: { credentials } });
      await call(client, 'createPresentationRequest', null, { response_type: 'uri', requestId: 'who' });
      expect((await call(client, 'getSession', { id: session })).status).to.equal('active');
      expect(await call(client, 'listSessions', { limit: 1 })).to.have.length(1);
      await call(client, 'updatePresentationConfiguration', { id: 'who' }, { lifeTime: 600 });
      expect((await call(client, 'getPresentationConfiguration', { id: 'who' })).lifeTime).to.equal(600);
      await call(client, 'deleteSession', { id: session });
      await call(client, 'deletePresentationConfiguration', { id: 'who' });
    });
  });

  describe('with examples', () => {
    let world: PopulatedTenant;
    /** Members of examples that name things of the example's author. */
    const own = (example: object, ids: TenantIds): object => {
      const text = JSON.stringify(example);
      const names: Readonly<Record<string, string>> = {
        '"sessionId":"<session>"': `"sessionId":"${ids.issuance}"`,
        '"keyChainId":"access"': `"keyChainId":"${ids.keyChain}"`,
        '"fingerprint":"<fingerprint>"': `"fingerprint":"${NEXT_FINGERPRINT}"`,
      };
      return JSON.parse(Object.entries(names).reduce((all, [from, to]) => all.replaceAll(from, to), text));
    };

    before(async () => {
      world = await populate(service, 'acme-corp');
      const registrar = await sharedRegistrar();
      await service.call('POST', '/registrar/config', { token: world.token, json: registrar.login() });
      // What the examples of other operations made.
      for (const path of ['/issuer/credentials', '/verifier/config']) {
        const json = routes.find((route) => nameOf(route) === `POST ${path}`)?.example;
        const made = await service.call('POST', path, { token: world.token, json });
        expect(made.status, made.text).to.equal(201);
      }
    });

    /** The registrar of these is made up, and the one that is there has another password. */
    const ELSEWHERE: Readonly<Record<string, number>> = { 'POST /registrar/config': 503, 'PATCH /registrar/config': 400 };

    it('has only examples that the service accepts', async () => {
      const withExample = routes.filter((route) => route.example !== undefined && rolesOf(route) !== undefined);
      expect(withExample).to.have.length.greaterThan(25);
      for (const route of withExample) {
        const { request, prepare } = recipeOf(route);
        const [role = ''] = rolesOf(route) ?? [];
        const fresh = freshId();
        const ids = { ...world.ids, ...(await prepare?.(world, fresh, role)) };
        const { params } = request(ids, fresh, role);
        const token = role === 'tenants:manage' ? await service.rootToken() : world.token;
        const answer = await service.call(route.method.toUpperCase(), addressOf(route, params), {
          token,
          json: own(route.example as object, ids),
        });
        const elsewhere = ELSEWHERE[nameOf(route)];
        const expected = elsewhere === undefined ? [200, 201, 204] : [elsewhere];
        expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.be.oneOf(expected);
      }
    });
  });
});

/** What an operation answered, as far as the published table speaks of it. */
type Told = { readonly status: number; readonly text: string; readonly location?: string | undefined };

describe('published operations', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let chained: ChainedWorld;
  let routes: ReadonlyMap<string, Route>;
  const told = new Map<string, Told>();

  before(async () => {
    service = await startTestService();
    routes = new Map(collectRoutes(service.service.container).map((route) => [nameOf(route), route]));
    world = await populate(service, 'acme');
    chained = await ChainedWorld.start(['acme']);
    await logInByTheChainedServer();
    for (const [operation, call] of Object.entries(PUBLIC)) told.set(operation, await call());
  });
  after(async () => {
    await chained.close();
    await service.close();
  });

  const PUBLIC: Readonly<Record<string, () => Promise<Told>>> = {
    'GET /': () => service.call('GET', '/'),
    'GET /health': () => service.call('GET', '/health'),
    'POST /oauth2/token': () => {
      const form = { grant_type: 'client_credentials', client_id: ROOT.clientId, client_secret: ROOT.secret };
      return service.call('POST', '/oauth2/token', { form });
    },
    'GET /:tenant/trust-list/:id': () => service.call('GET', `/acme/trust-list/${world.ids.trustList}`),
  };

  async function logInByTheChainedServer(): Promise<void> {
    const { token, wallet } = await chained.createIssuingTenant('acme');
    const at = (end: string) => `/:tenant/chained-as/${end}`;
    const pushed = await wallet.par({ scope: 'badge' });
    told.set(`POST ${at('par')}`, pushed);
    const query = new URLSearchParams({ client_id: 'https://wallet.example', request_uri: pushed.body.request_uri });
    const browser = new Browser();
    const opened = await browser.visit(`${wallet.server}/authorize?${query}`);
    told.set(`GET ${at('authorize')}`, { ...opened, location: opened.location?.href });
    const back = await chained.provider.login(String(opened.location?.href), {});
    const returned = await browser.visit(back.href);
    told.set(`GET ${at('callback')}`, { ...returned, location: returned.location?.href });
    const code = returned.location?.searchParams.get('code') ?? '';
    const redeemed = await wallet.redeemCode(code);
    told.set(`POST ${at('token')}`, redeemed);
    told.set('GET /deferred_credential', await collectLater(token, wallet, redeemed.body.access_token));
    for (const document of ['.well-known/jwks.json', '.well-known/oauth-authorization-server']) {
      told.set(`GET ${at(document)}`, await chained.service.call('GET', `/acme/chained-as/${document}`));
    }
  }

  /** The backend takes its time, and the wallet comes back as wallets did before OpenID4VCI 1.0. */
  async function collectLater(token: string, wallet: ChainedWallet, accessToken: string): Promise<Told> {
    const { service, backend } = chained;
    backend.on('/claims', { json: { deferred: true } });
    const { transaction_id: id } = (await wallet.request(accessToken, 'badge')).body;
    const json = { credential: 'ready.made.one~' };
    const done = await service.call('POST', `/issuer/deferred/${id}/complete`, { token, json });
    expect(done.status, done.text).to.equal(200);
    const url = `${service.address}/deferred_credential`;
    const headers = wallet.authorization(accessToken, { method: 'GET', url });
    return service.call('GET', `/deferred_credential?transaction_id=${id}`, { headers });
  }

  /** With the first role that opens it. */
  async function callByRole(route: Route): Promise<Told> {
    const { request, prepare } = recipeOf(route);
    const [role = ''] = rolesOf(route) ?? [];
    const fresh = freshId();
    const ids = { ...world.ids, ...(await prepare?.(world, fresh, role)) };
    const { params, json } = request(ids, fresh, role);
    const token = role === 'tenants:manage' ? await service.rootToken() : world.token;
    const answer = await service.call(route.method.toUpperCase(), addressOf(route, params), {
      token,
      ...(json === undefined ? {} : { json }),
    });
    return answer;
  }

  it('are 63', () => {
    expect(new Set(OPERATIONS.map(({ operation }) => operation)).size).to.equal(63);
  });

  for (const { operation, status, answer: kind, members = [] } of OPERATIONS) {
    it(`return documented answers: ${operation}`, async () => {
      const route = routes.get(operation);
      if (route === undefined) throw new Error('no such route');
      const answer = told.get(operation) ?? (await callByRole(route));
      expect(answer.status, answer.text).to.equal(status);
      if (kind === 'any') return;
      if (kind === 'empty') expect(answer.text).to.equal('');
      else if (kind === 'text') expect(answer.text).to.match(/^[\w-]+\.[\w-]+\.[\w-]+$/);
      else if (kind === 'redirect') expect(answer.location).to.be.a('string');
      else {
        const body = JSON.parse(answer.text);
        const [one] = kind === 'array' ? body : [body];
        expect(one).to.be.an('object');
        if (members.length > 0) expect(one).to.include.all.keys(...members);
      }
    });
  }
});
