import { createSecretKey, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { deriveKey } from '../../adapters/crypto/cipher.ts';
import type { Route } from '../../adapters/http/route.ts';
import { LocalAccessTokens } from '../../adapters/identity/local-access-tokens.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { ROLES, type Role } from '../../domain/clients/role.ts';
import { addClient, createResource, type PopulatedTenant, populate, type TenantIds, type WalletArtefacts } from '../support/populated.ts';
import { sharedRegistrar } from '../support/registrar.ts';
import { addressOf, freshId, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { type Answer, ROOT, startTestService, type TestService } from '../support/test-service.ts';
import { isListRoute, isTenantRoute, walletRecipeOf } from '../support/wallet-requests.ts';

const MASTER_SECRET = 'a master secret for the tests 0123456789';

/** Access tokens in the format of the service, with another time of issue or with claims that no client has. */
function forge(subject: string, clientId: string, roles: readonly Role[], issuedAt = new Date(), tenantClaim?: string): string {
  const [, payload = ''] = tenantClaim?.split('.') ?? [];
  const clientSince = payload === '' ? 0 : JSON.parse(Buffer.from(payload, 'base64url').toString()).client_since;
  const key = createSecretKey(deriveKey(MASTER_SECRET, 'vidimus/access-token'));
  const issuer = { key, issuer: 'platform-service', lifetimeSeconds: 3600 };
  const tokens = new LocalAccessTokens({ clock: { now: () => issuedAt }, random: new NodeRandom() }, issuer);
  return tokens.issue({ subject, clientId, roles, clientSince, secretRevision: 0 }).token;
}

const MANAGERS = ['issuance:manage', 'presentation:manage'];

/** The roles that open an address: the first pattern that matches a route gives its roles. */
const EXPECTED_ROLES: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^GET \/console\/identity$/, ROLES],
  [/ \/tenant/, ['tenants:manage']],
  [/ \/client\/:id\/(secret|rotate-secret)$/, ['clients:manage', 'tenants:manage']],
  [/ \/client/, ['clients:manage']],
  [/ \/settings$/, ['tenants:manage']],
  [/ \/audit-log(\/verification)?$/, ['clients:manage', 'tenants:manage']],
  [/^GET \/trust-list\b/, MANAGERS],
  [/ \/trust\//, MANAGERS],
  [/ \/trust-list\b/, ['issuance:manage']],
  [/ \/(certs|key-chain|key|session-config|cache|webhook-secret)\b/, MANAGERS],
  [/ \/issuer\/(offer|deferred)\b/, ['issuance:offer', 'issuance:manage']],
  [/ \/(issuer|status-lists|status-list-config)\b/, ['issuance:manage']],
  [/^GET \/verifier\/config/, ['presentation:manage', 'presentation:request']],
  [/ \/verifier\/config/, ['presentation:manage']],
  [/ \/verifier\/offer$/, ['presentation:request', 'presentation:manage']],
  [/ \/credentials\/revoke-by-subject$/, ['issuance:manage', 'issuance:offer']],
  [/ \/session\/:id\/statuses$/, ['issuance:manage', 'issuance:offer']],
  [/ \/session\/revoke$/, ['issuance:manage', 'issuance:offer']],
  [/ \/session\b/, [...MANAGERS, 'issuance:offer', 'presentation:request']],
  [/ \/registrar\b/, ['registrar:manage']],
];

/** Resources for both sides require both roles. */
const BOTH = [/^(PATCH|POST) \/webhook-secret/];

describe('Every route that needs a role', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let routes: readonly Route[];
  const tokens = new Map<Role, string>();
  const invalidTokens = new Map<string, string | undefined>();

  before(async () => {
    service = await startTestService({ MASTER_SECRET });
    routes = collectRoutes(service.service.container).filter((route) => rolesOf(route) !== undefined);
    world = await populate(service, 'acme');
    for (const role of ROLES) {
      const name = role.replace(':', '-');
      tokens.set(role, role === 'tenants:manage' ? await service.rootToken() : await addClient(world, `only-${name}`, { roles: [role] }));
    }
    const tokenOfDeleted = await addClient(world, 'soon-gone', { roles: ['clients:manage', 'issuance:manage'] });
    await service.call('DELETE', '/client/soon-gone', { token: world.token });
    const anHourAgo = new Date(Date.now() - 3601_000);
    invalidTokens.set('no token', undefined);
    invalidTokens.set('garbage', 'garbage');
    invalidTokens.set('a wrong signature', `${world.token.slice(0, -4)}AAAA`);
    invalidTokens.set('an expired token', forge('acme', 'acme-admin', [...ROLES], anHourAgo, world.token));
    invalidTokens.set('an expired token of the root client', forge('root', 'root', [...ROLES], anHourAgo));
    invalidTokens.set('the token of a deleted client', tokenOfDeleted);
    invalidTokens.set('a client of another tenant', forge('elsewhere', 'acme-admin', [...ROLES], new Date(), world.token));
    invalidTokens.set('the root client inside a tenant', forge('acme', ROOT.clientId, [...ROLES]));
  });
  after(() => service.close());

  const call = async (route: Route, token: string | undefined, role?: Role): Promise<Answer> => {
    const { request, prepare } = recipeOf(route);
    const newId = freshId();
    const allowed = role !== undefined && rolesOf(route)?.includes(role);
    const ids = allowed && prepare ? { ...world.ids, ...(await prepare(world, newId, role)) } : world.ids;
    const { params, json } = request(ids, newId, role);
    return service.call(route.method.toUpperCase(), addressOf(route, params), {
      ...(token === undefined ? {} : { token }),
      ...(json === undefined ? {} : { json }),
    });
  };

  const expectProblem = (answer: Answer, status: number, code: string, message: string) => {
    expect([answer.status, answer.body?.code], `${message}: ${answer.text}`).to.deep.equal([status, code]);
    expect(answer.headers.get('content-type')).to.equal('application/problem+json');
  };

  it('has a recipe in this test', () => {
    expect(routes.length).to.be.greaterThan(35);
    for (const route of routes) recipeOf(route);
  });

  it('requires the roles of the access matrix', () => {
    for (const route of routes) {
      const [, roles] = EXPECTED_ROLES.find(([pattern]) => pattern.test(nameOf(route))) ?? [];
      expect(rolesOf(route), nameOf(route)).to.have.members([...(roles ?? [])]);
    }
  });

  for (const role of ROLES) {
    it(`lets a client with only ${role} call exactly the routes of that role`, async () => {
      for (const route of routes) {
        const answer = await call(route, tokens.get(role), role);
        const allowed = rolesOf(route)?.includes(role);
        const both = BOTH.some((pattern) => pattern.test(nameOf(route)));
        if (!allowed || both) expectProblem(answer, 403, 'forbidden', nameOf(route));
        else expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.be.oneOf([200, 201, 204]);
      }
    });
  }

  it('returns 401 with a challenge without a valid token', async () => {
    for (const [kind, token] of invalidTokens) {
      for (const route of routes) {
        const answer = await call(route, token);
        expectProblem(answer, 401, 'unauthenticated', `${kind} at ${nameOf(route)}`);
        expect(answer.headers.get('www-authenticate'), kind).to.match(/^Bearer .*error="invalid_token"/);
      }
    }
  });

  it('takes the rights from the stored client, not from the token', async () => {
    const withAllRoles = (role: Role) => forge('acme', `only-${role.replace(':', '-')}`, [...ROLES], new Date(), tokens.get(role));
    // Routes that are open to any of several roles are open to the role that the client has.
    const closedRoutes = routes.filter((route) => ROLES.some((role) => rolesOf(route)?.includes(role) === false));
    expect(closedRoutes).to.have.length(routes.length - 1);
    for (const route of closedRoutes) {
      const role = rolesOf(route)?.includes('registrar:manage') ? 'issuance:offer' : 'registrar:manage';
      expectProblem(await call(route, withAllRoles(role)), 403, 'forbidden', nameOf(route));
    }
  });

  it('accepts the token in the query only at the event stream', async () => {
    const token = world.token;
    for (const route of routes.filter(({ method }) => method === 'get')) {
      const { params } = recipeOf(route).request(world.ids, freshId());
      const answer = await service.call('GET', `${addressOf(route, params)}?token=${token}`);
      const stream = typeof route.access === 'object' && 'stream' in route.access;
      expect(answer.status, nameOf(route)).to.equal(stream ? 200 : 401);
    }
  });

  it('accepts presentation:offer as the former name of presentation:request', async () => {
    const token = await addClient(world, 'old-name', { roles: ['presentation:offer'] });
    const route = routes.find((candidate) => nameOf(candidate) === 'POST /verifier/offer');
    if (route === undefined) throw new Error('no such route');
    expect((await call(route, token)).status).to.equal(201);
    const client = await service.call('GET', '/client/old-name', { token: world.token });
    expect(client.body.roles).to.deep.equal(['presentation:request']);
  });
});

const UNKNOWN_IDS: TenantIds = {
  tenant: 'no-such-id',
  client: 'no-such-id',
  keyChain: 'no-such-id',
  credential: 'no-such-id',
  presentation: 'no-such-id',
  trustList: 'no-such-id',
  trustListVersion: 'no-such-id',
  followedList: 'no-such-id',
  statusList: 'no-such-id',
  issuance: 'no-such-id',
  verification: 'no-such-id',
  deferred: 'no-such-id',
};

const random = (length: number) => randomBytes(length).toString('base64url');

/** The comparable content of a response: the requested identifiers are replaced by the same text. */
function comparableResponse(answer: Answer, requestedIds: TenantIds | WalletArtefacts): object {
  let text = answer.text;
  const ids = Object.values<string>(requestedIds).toSorted((one, two) => two.length - one.length);
  for (const id of ids) text = text.replaceAll(id, 'ID');
  text = text.replace(/"requestId":"[^"]*"|Reference: [^<]*/, '');
  const headers = Object.fromEntries(answer.headers);
  for (const name of ['date', 'x-request-id', 'content-length']) delete headers[name];
  return { status: answer.status, headers, text };
}

const withoutTimes = (text: string) => text.replace(/^\{"since":"[^"]*","until":"[^"]*"/, '{');

describe('Resources of one tenant', () => {
  let service: TestService;
  let acme: PopulatedTenant;
  let otherTenant: PopulatedTenant;
  let routes: readonly Route[];
  let walletRoutes: readonly Route[];

  before(async () => {
    service = await startTestService();
    const all = collectRoutes(service.service.container);
    routes = all.filter((route) => rolesOf(route) !== undefined);
    walletRoutes = all.filter(isTenantRoute);
    [acme, otherTenant] = [await populate(service, 'acme-corp'), await populate(service, 'bravo-corp')];
  });
  after(() => service.close());

  const call = (route: Route, token: string, ids: TenantIds, newId: string, role?: string): Promise<Answer> => {
    const { params, json } = recipeOf(route).request(ids, newId, role);
    return service.call(route.method.toUpperCase(), addressOf(route, params), { token, ...(json === undefined ? {} : { json }) });
  };
  const callWallet = (route: Route, { wallet }: PopulatedTenant, artefacts: WalletArtefacts): Promise<Answer> => {
    const { path, ...options } = walletRecipeOf(route)(wallet, artefacts);
    return service.call(route.method.toUpperCase(), path, options);
  };
  const reads = () => routes.filter(({ method, path }) => method === 'get' && !path.endsWith('/secret'));

  /** Everything that the tenant's administrator and the root client can read of a tenant. */
  const snapshot = async ({ token, ids }: PopulatedTenant): Promise<Map<string, string>> => {
    const texts = new Map<string, string>();
    for (const route of reads()) {
      const readerToken = rolesOf(route)?.includes('tenants:manage') ? await service.rootToken() : token;
      for (const role of ['issuance:manage', 'presentation:manage']) {
        if (route.path === '/tenant') continue;
        const answer = await call(route, readerToken, ids, '', role);
        expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.equal(200);
        // The end of the counted period differs in each response.
        const text = route.path === '/session/rates' ? withoutTimes(answer.text) : answer.text;
        texts.set(`${nameOf(route)} ${role}`, text);
      }
    }
    return texts;
  };

  it('return 404 to the administrator of another tenant and stay unchanged', async () => {
    const before = await snapshot(acme);
    let comparedRoutes = 0;
    for (const route of routes) {
      for (const role of ['issuance:manage', 'presentation:manage']) {
        const newId = freshId();
        const request = recipeOf(route).request(acme.ids, newId, role);
        const unknownRequest = recipeOf(route).request(UNKNOWN_IDS, newId, role);
        const answer = await call(route, otherTenant.token, acme.ids, newId, role);
        if (JSON.stringify(request) === JSON.stringify(unknownRequest)) continue;
        comparedRoutes++;
        const unknownResponse = await call(route, otherTenant.token, UNKNOWN_IDS, newId, role);
        expect(comparableResponse(answer, acme.ids), nameOf(route)).to.deep.equal(comparableResponse(unknownResponse, UNKNOWN_IDS));
        const isServiceRoute = rolesOf(route)?.every((neededRole) => neededRole === 'tenants:manage');
        if (isServiceRoute) expect(answer.status, nameOf(route)).to.equal(403);
        else if (route.path.includes(':')) expect(answer.status, nameOf(route)).to.equal(404);
        else expect(answer.status, nameOf(route)).to.be.oneOf([400, 404]);
      }
    }
    expect(comparedRoutes).to.be.greaterThan(30);
    expect(await snapshot(acme)).to.deep.equal(before);
    // Routes without an identifier changed the tenant's own resources; the last one removed the login at the registrar.
    await createResource(service, otherTenant.token, '/registrar/config', (await sharedRegistrar()).login());
  });

  it('cannot be overwritten by another tenant with the same ids', async () => {
    const before = await snapshot(acme);
    const { keyChain, credential, presentation, client } = acme.ids;
    const { token, ids } = otherTenant;
    const post = (path: string, json: object) => service.call('POST', path, { token, json });
    const display = [{ name: 'Other', locale: 'en' }];
    expect((await post('/key-chain', { id: keyChain, usageType: 'signing' })).status).to.equal(201);
    const config = { format: 'dc+sd-jwt', display };
    const otherCredential = { id: credential, config, vct: 'urn:other:1', keyChainId: ids.keyChain };
    expect((await post('/issuer/credentials', otherCredential)).status).to.equal(201);
    const dcql_query = { credentials: [{ id: 'x', format: 'dc+sd-jwt', meta: { vct_values: ['y'] } }] };
    expect((await post('/verifier/config', { id: presentation, dcql_query })).status).to.equal(201);
    // Clients log in by their identifier alone, so identifiers of clients are unique in the service.
    expect((await post('/client', { clientId: client, roles: ['issuance:offer'] })).status).to.equal(409);
    expect(await snapshot(acme)).to.deep.equal(before);
    for (const path of ['key-chain', 'issuer/credentials', 'verifier/config']) {
      const id = path === 'key-chain' ? keyChain : path === 'verifier/config' ? presentation : credential;
      expect((await service.call('DELETE', `/${path}/${id}`, { token })).status, path).to.equal(200);
    }
    expect(await snapshot(acme)).to.deep.equal(before);
  });

  it('appear in no list of another tenant', async () => {
    const foreignIds = [...Object.values(acme.ids), acme.artefacts.offerId, acme.artefacts.requestId];
    for (const route of routes.filter(({ method, path }) => method === 'get' && !path.includes(':'))) {
      // The log contains these identifiers, which the other tenant used in the previous test; the other routes are not for tenants.
      if (['/audit-log', '/tenant', '/tenant-removal', '/settings'].includes(route.path)) continue;
      const { status, text } = await call(route, otherTenant.token, otherTenant.ids, '');
      expect(status, nameOf(route)).to.equal(200);
      for (const id of foreignIds) expect(text, nameOf(route)).not.to.include(id);
    }
  });

  it('are unusable for wallets of another tenant: codes, nonces, tokens, offers, requests and lists', async () => {
    const { accessToken } = acme.artefacts;
    const unknownArtefacts: WalletArtefacts = {
      code: random(32),
      nonce: random(32),
      offerId: random(16),
      pageId: `${random(16)}.${random(16)}`,
      requestId: random(16),
      dcApiId: random(16),
      requestUri: `urn:ietf:params:oauth:request_uri:${random(16)}.${random(32)}`,
      accessToken: `${accessToken.slice(0, accessToken.lastIndexOf('.'))}.${random(64)}`,
      listId: random(16),
      vctId: 'no-such-id',
      trustListId: 'no-such-id',
      authorityId: '0'.repeat(40),
      chainedRequestUri: `urn:ietf:params:oauth:request_uri:${random(16)}.${random(32)}`,
      loginState: `${random(16)}.${random(32)}`,
      loginCookie: `vidimus-login-${random(16)}=${random(32)}`,
      confirmation: `${random(16)}.${random(32)}`,
      confirmationCookie: `vidimus-login-${random(16)}=${random(32)}`,
      transactionId: random(16),
      notificationId: random(16),
    };
    for (const route of walletRoutes) {
      const answer = await callWallet(route, otherTenant, acme.artefacts);
      for (const id of Object.values(acme.ids)) expect(answer.text, nameOf(route)).not.to.include(id);
      const requestText = JSON.stringify(recipeText(route, acme.artefacts));
      if (requestText === JSON.stringify(recipeText(route, unknownArtefacts))) continue;
      expect(answer.status, nameOf(route)).to.be.within(400, 404);
      const unknownResponse = await callWallet(route, otherTenant, unknownArtefacts);
      expect(comparableResponse(answer, acme.artefacts), nameOf(route)).to.deep.equal(
        comparableResponse(unknownResponse, unknownArtefacts),
      );
    }
    // Each artefact alone, in an otherwise valid request.
    const { wallet, ids, artefacts } = otherTenant;
    const nonceRejection = await wallet.request(artefacts.accessToken, ids.credential, { nonce: acme.artefacts.nonce });
    expect([nonceRejection.status, nonceRejection.body.error]).to.deep.equal([400, 'invalid_nonce']);
    const tokenRejection = await wallet.request(accessToken, ids.credential);
    expect([tokenRejection.status, tokenRejection.body.error]).to.deep.equal([401, 'invalid_token']);
    // No rejected request consumed an artefact.
    const token = await acme.wallet.redeem(acme.artefacts.code);
    expect(token.status, token.text).to.equal(200);
    const credential = await acme.wallet.request(token.body.access_token, acme.ids.credential, { nonce: acme.artefacts.nonce });
    expect(credential.status, credential.text).to.equal(200);
    const request = await service.call('GET', `/${acme.ids.tenant}/request/${acme.artefacts.requestId}`);
    expect(request.status).to.equal(200);
  });

  /** The parts of a request that contain artefacts other than proofs. */
  function recipeText(route: Route, artefacts: WalletArtefacts): object {
    const { path, form, headers } = walletRecipeOf(route)(otherTenant.wallet, artefacts);
    return { path, form, authorization: headers?.['Authorization'] };
  }

  it('are inaccessible to the root client', async () => {
    const token = await service.rootToken();
    for (const route of routes.filter(({ access }) => typeof access === 'object')) {
      if (rolesOf(route)?.includes('tenants:manage')) continue;
      const answer = await call(route, token, acme.ids, freshId());
      expect([answer.status, answer.body.code], nameOf(route)).to.deep.equal([403, 'forbidden']);
    }
  });

  it('are unavailable while the tenant is suspended, except its status lists and trust lists', async () => {
    const token = await service.rootToken();
    const setStatus = (status: string) => service.call('PATCH', `/tenant/${acme.ids.tenant}`, { token, json: { status } });
    const before = await snapshot(acme);
    expect((await setStatus('suspended')).status).to.equal(200);
    for (const route of routes) {
      const answer = await call(route, acme.token, acme.ids, freshId());
      expect([answer.status, answer.body?.code], nameOf(route)).to.deep.equal([403, 'forbidden']);
    }
    for (const route of walletRoutes) {
      const answer = await callWallet(route, acme, acme.artefacts);
      expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.equal(isListRoute(route) ? 200 : 404);
    }
    expect((await setStatus('active')).status).to.equal(200);
    const unchangedTexts = [...before].filter(([name]) => !name.includes('/tenant/') && !name.includes('/audit-log'));
    const textsAfter = await snapshot(acme);
    // Reading a status list signs it if it was not signed before.
    const withoutExpiry = (text = '') => text.replaceAll(/"expiresAt":(null|"[^"]*")/g, '');
    for (const [name, text] of unchangedTexts) expect(withoutExpiry(textsAfter.get(name)), name).to.equal(withoutExpiry(text));
  });

  it('do not exist for wallets of an unknown tenant', async () => {
    for (const route of walletRoutes) {
      const { path, ...options } = walletRecipeOf(route)(acme.wallet, acme.artefacts);
      const address = path.replace('acme-corp', 'no-such-tenant');
      const answer = await service.call(route.method.toUpperCase(), address, options);
      expect(answer.status, nameOf(route)).to.equal(404);
    }
  });
});
