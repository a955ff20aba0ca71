import { expect } from 'chai';
import type { Route } from '../../adapters/http/route.ts';
import { collectRoutes } from '../../bootstrap/routes.ts';
import { Browser, type ChainedWallet } from '../support/chained-wallet.ts';
import { ChainedWorld } from '../support/chained-world.ts';
import { type Populated, populate } from '../support/populated.ts';
import { addressOf, freshId, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { ROOT, startTestService, type TestService } from '../support/test-service.ts';
import OPERATIONS from './contract-operations.json' with { type: 'json' };

/** What an operation answered, as far as the published table speaks of it. */
type Told = { readonly status: number; readonly text: string; readonly location?: string | undefined };

describe('Every published operation', () => {
  let service: TestService;
  let world: Populated;
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
    const { token, wallet } = await chained.openTenant('acme');
    const at = (end: string) => `/:tenant/chained-as/${end}`;
    const pushed = await wallet.par({ scope: 'badge' });
    told.set(`POST ${at('par')}`, pushed);
    const query = new URLSearchParams({
      client_id: 'https://wallet.example',
      request_uri: pushed.body.request_uri,
    });
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

  it('is one of 63', () => {
    expect(new Set(OPERATIONS.map(({ operation }) => operation)).size).to.equal(63);
  });

  for (const { operation, status, answer: kind, members = [] } of OPERATIONS) {
    it(`answers as published: ${operation}`, async () => {
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
