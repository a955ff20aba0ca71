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

/** Tokens as the service makes them, at another time or with claims that no client has. */
function forge(subject: string, clientId: string, roles: readonly Role[], at = new Date(), of?: string): string {
  const [, payload = ''] = of?.split('.') ?? [];
  const clientSince = payload === '' ? 0 : JSON.parse(Buffer.from(payload, 'base64url').toString()).client_since;
  const key = createSecretKey(deriveKey(MASTER_SECRET, 'vidimus/access-token'));
  const issuer = { key, issuer: 'platform-service', lifetimeSeconds: 3600 };
  const tokens = new LocalAccessTokens({ clock: { now: () => at }, random: new NodeRandom() }, issuer);
  return tokens.issue({ subject, clientId, roles, clientSince, secretRevision: 0 }).token;
}

const MANAGERS = ['issuance:manage', 'presentation:manage'];

/** Which roles open which addresses: the first line that fits a route names its roles. */
const DECIDED: readonly (readonly [RegExp, readonly string[]])[] = [
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

/** What belongs to both sides takes both roles. */
const BOTH = [/^(PATCH|POST) \/webhook-secret/];

describe('Every route that needs a role', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let routes: readonly Route[];
  const tokens = new Map<Role, string>();
  const bad = new Map<string, string | undefined>();

  before(async () => {
    service = await startTestService({ MASTER_SECRET });
    routes = collectRoutes(service.service.container).filter((route) => rolesOf(route) !== undefined);
    world = await populate(service, 'acme');
    for (const role of ROLES) {
      const name = role.replace(':', '-');
      tokens.set(role, role === 'tenants:manage' ? await service.rootToken() : await addClient(world, `only-${name}`, { roles: [role] }));
    }
    const deleted = await addClient(world, 'soon-gone', { roles: ['clients:manage', 'issuance:manage'] });
    await service.call('DELETE', '/client/soon-gone', { token: world.token });
    const anHourAgo = new Date(Date.now() - 3601_000);
    bad.set('no token', undefined);
    bad.set('garbage', 'garbage');
    bad.set('a signature of somebody else', `${world.token.slice(0, -4)}AAAA`);
    bad.set('an expired token', forge('acme', 'acme-admin', [...ROLES], anHourAgo, world.token));
    bad.set('an expired token of the root client', forge('root', 'root', [...ROLES], anHourAgo));
    bad.set('the token of a deleted client', deleted);
    bad.set('a client of another tenant', forge('elsewhere', 'acme-admin', [...ROLES], new Date(), world.token));
    bad.set('the root client inside a tenant', forge('acme', ROOT.clientId, [...ROLES]));
  });
  after(() => service.close());

  const call = async (route: Route, token: string | undefined, role?: Role): Promise<Answer> => {
    const { request, prepare } = recipeOf(route);
    const fresh = freshId();
    const allowed = role !== undefined && rolesOf(route)?.includes(role);
    const ids = allowed && prepare ? { ...world.ids, ...(await prepare(world, fresh, role)) } : world.ids;
    const { params, json } = request(ids, fresh, role);
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
      const [, roles] = DECIDED.find(([pattern]) => pattern.test(nameOf(route))) ?? [];
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
    for (const [kind, token] of bad) {
      for (const route of routes) {
        const answer = await call(route, token);
        expectProblem(answer, 401, 'unauthenticated', `${kind} at ${nameOf(route)}`);
        expect(answer.headers.get('www-authenticate'), kind).to.match(/^Bearer .*error="invalid_token"/);
      }
    }
  });

  it('takes the rights from the stored client, not from the token', async () => {
    const inflated = (role: Role) => forge('acme', `only-${role.replace(':', '-')}`, [...ROLES], new Date(), tokens.get(role));
    // What any role opens is opened by the one that the client has.
    const closed = routes.filter((route) => ROLES.some((role) => rolesOf(route)?.includes(role) === false));
    expect(closed).to.have.length(routes.length - 1);
    for (const route of closed) {
      const role = rolesOf(route)?.includes('registrar:manage') ? 'issuance:offer' : 'registrar:manage';
      expectProblem(await call(route, inflated(role)), 403, 'forbidden', nameOf(route));
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

const NOWHERE: TenantIds = {
  tenant: 'nowhere',
  client: 'nowhere',
  keyChain: 'nowhere',
  credential: 'nowhere',
  presentation: 'nowhere',
  trustList: 'nowhere',
  trustListVersion: 'nowhere',
  followedList: 'nowhere',
  statusList: 'nowhere',
  issuance: 'nowhere',
  verification: 'nowhere',
  deferred: 'nowhere',
};

const random = (length: number) => randomBytes(length).toString('base64url');

/** What an answer tells, with the ids that were asked for made alike. */
function told(answer: Answer, asked: TenantIds | WalletArtefacts): object {
  let text = answer.text;
  const ids = Object.values<string>(asked).toSorted((one, two) => two.length - one.length);
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
  let other: PopulatedTenant;
  let routes: readonly Route[];
  let walletRoutes: readonly Route[];

  before(async () => {
    service = await startTestService();
    const all = collectRoutes(service.service.container);
    routes = all.filter((route) => rolesOf(route) !== undefined);
    walletRoutes = all.filter(isTenantRoute);
    [acme, other] = [await populate(service, 'acme-corp'), await populate(service, 'bravo-corp')];
  });
  after(() => service.close());

  const call = (route: Route, token: string, ids: TenantIds, fresh: string, role?: string): Promise<Answer> => {
    const { params, json } = recipeOf(route).request(ids, fresh, role);
    return service.call(route.method.toUpperCase(), addressOf(route, params), { token, ...(json === undefined ? {} : { json }) });
  };
  const callWallet = (route: Route, { wallet }: PopulatedTenant, artefacts: WalletArtefacts): Promise<Answer> => {
    const { path, ...options } = walletRecipeOf(route)(wallet, artefacts);
    return service.call(route.method.toUpperCase(), path, options);
  };
  const reads = () => routes.filter(({ method, path }) => method === 'get' && !path.endsWith('/secret'));

  /** Everything that its own administrator, and the root client, can read of a tenant. */
  const snapshot = async ({ token, ids }: PopulatedTenant): Promise<Map<string, string>> => {
    const seen = new Map<string, string>();
    for (const route of reads()) {
      const own = rolesOf(route)?.includes('tenants:manage') ? await service.rootToken() : token;
      for (const role of ['issuance:manage', 'presentation:manage']) {
        if (route.path === '/tenant') continue;
        const answer = await call(route, own, ids, '', role);
        expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.equal(200);
        // What is counted until now is counted until another moment the next time.
        const text = route.path === '/session/rates' ? withoutTimes(answer.text) : answer.text;
        seen.set(`${nameOf(route)} ${role}`, text);
      }
    }
    return seen;
  };

  it('return 404 to the administrator of another tenant and stay unchanged', async () => {
    const before = await snapshot(acme);
    let compared = 0;
    for (const route of routes) {
      for (const role of ['issuance:manage', 'presentation:manage']) {
        const fresh = freshId();
        const request = recipeOf(route).request(acme.ids, fresh, role);
        const unknown = recipeOf(route).request(NOWHERE, fresh, role);
        const answer = await call(route, other.token, acme.ids, fresh, role);
        if (JSON.stringify(request) === JSON.stringify(unknown)) continue;
        compared++;
        const nowhere = await call(route, other.token, NOWHERE, fresh, role);
        expect(told(answer, acme.ids), nameOf(route)).to.deep.equal(told(nowhere, NOWHERE));
        const service = rolesOf(route)?.every((needed) => needed === 'tenants:manage');
        if (service) expect(answer.status, nameOf(route)).to.equal(403);
        else if (route.path.includes(':')) expect(answer.status, nameOf(route)).to.equal(404);
        else expect(answer.status, nameOf(route)).to.be.oneOf([400, 404]);
      }
    }
    expect(compared).to.be.greaterThan(30);
    expect(await snapshot(acme)).to.deep.equal(before);
    // What needs no id was done to its own things; the last of it was to remove the login at the registrar.
    await createResource(service, other.token, '/registrar/config', (await sharedRegistrar()).login());
  });

  it('cannot be overwritten by another tenant with the same ids', async () => {
    const before = await snapshot(acme);
    const { keyChain, credential, presentation, client } = acme.ids;
    const { token, ids } = other;
    const post = (path: string, json: object) => service.call('POST', path, { token, json });
    const display = [{ name: 'Other', locale: 'en' }];
    expect((await post('/key-chain', { id: keyChain, usageType: 'signing' })).status).to.equal(201);
    const config = { format: 'dc+sd-jwt', display };
    const mine = { id: credential, config, vct: 'urn:other:1', keyChainId: ids.keyChain };
    expect((await post('/issuer/credentials', mine)).status).to.equal(201);
    const dcql_query = { credentials: [{ id: 'x', format: 'dc+sd-jwt', meta: { vct_values: ['y'] } }] };
    expect((await post('/verifier/config', { id: presentation, dcql_query })).status).to.equal(201);
    // Clients log in by their id alone, so ids of clients are taken for the whole service.
    expect((await post('/client', { clientId: client, roles: ['issuance:offer'] })).status).to.equal(409);
    expect(await snapshot(acme)).to.deep.equal(before);
    for (const path of ['key-chain', 'issuer/credentials', 'verifier/config']) {
      const id = path === 'key-chain' ? keyChain : path === 'verifier/config' ? presentation : credential;
      expect((await service.call('DELETE', `/${path}/${id}`, { token })).status, path).to.equal(200);
    }
    expect(await snapshot(acme)).to.deep.equal(before);
  });

  it('appear in no list of another tenant', async () => {
    const foreign = [...Object.values(acme.ids), acme.artefacts.offerId, acme.artefacts.requestId];
    for (const route of routes.filter(({ method, path }) => method === 'get' && !path.includes(':'))) {
      // The log names what the other tenant had under these ids itself, in the test before; the rest is for nobody of a tenant.
      if (['/audit-log', '/tenant', '/tenant-removal', '/settings'].includes(route.path)) continue;
      const { status, text } = await call(route, other.token, other.ids, '');
      expect(status, nameOf(route)).to.equal(200);
      for (const id of foreign) expect(text, nameOf(route)).not.to.include(id);
    }
  });

  it('are unusable for wallets of another tenant: codes, nonces, tokens, offers, requests and lists', async () => {
    const { accessToken } = acme.artefacts;
    const unknown: WalletArtefacts = {
      code: random(32),
      nonce: random(32),
      offerId: random(16),
      pageId: `${random(16)}.${random(16)}`,
      requestId: random(16),
      dcApiId: random(16),
      requestUri: `urn:ietf:params:oauth:request_uri:${random(16)}.${random(32)}`,
      accessToken: `${accessToken.slice(0, accessToken.lastIndexOf('.'))}.${random(64)}`,
      listId: random(16),
      vctId: 'nowhere',
      trustListId: 'nowhere',
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
      const answer = await callWallet(route, other, acme.artefacts);
      for (const id of Object.values(acme.ids)) expect(answer.text, nameOf(route)).not.to.include(id);
      const named = JSON.stringify(recipeText(route, acme.artefacts));
      if (named === JSON.stringify(recipeText(route, unknown))) continue;
      expect(answer.status, nameOf(route)).to.be.within(400, 404);
      const nowhere = await callWallet(route, other, unknown);
      expect(told(answer, acme.artefacts), nameOf(route)).to.deep.equal(told(nowhere, unknown));
    }
    // Each artefact by itself, with everything else right.
    const { wallet, ids, artefacts } = other;
    const refused = await wallet.request(artefacts.accessToken, ids.credential, { nonce: acme.artefacts.nonce });
    expect([refused.status, refused.body.error]).to.deep.equal([400, 'invalid_nonce']);
    const foreign = await wallet.request(accessToken, ids.credential);
    expect([foreign.status, foreign.body.error]).to.deep.equal([401, 'invalid_token']);
    // Nothing of this used anything up.
    const token = await acme.wallet.redeem(acme.artefacts.code);
    expect(token.status, token.text).to.equal(200);
    const credential = await acme.wallet.request(token.body.access_token, acme.ids.credential, { nonce: acme.artefacts.nonce });
    expect(credential.status, credential.text).to.equal(200);
    const request = await service.call('GET', `/${acme.ids.tenant}/request/${acme.artefacts.requestId}`);
    expect(request.status).to.equal(200);
  });

  /** Path and form of a call, which is where artefacts stand that are no proofs. */
  function recipeText(route: Route, artefacts: WalletArtefacts): object {
    const { path, form, headers } = walletRecipeOf(route)(other.wallet, artefacts);
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
    const suspend = (status: string) => service.call('PATCH', `/tenant/${acme.ids.tenant}`, { token, json: { status } });
    const before = await snapshot(acme);
    expect((await suspend('suspended')).status).to.equal(200);
    for (const route of routes) {
      const answer = await call(route, acme.token, acme.ids, freshId());
      expect([answer.status, answer.body?.code], nameOf(route)).to.deep.equal([403, 'forbidden']);
    }
    for (const route of walletRoutes) {
      const answer = await callWallet(route, acme, acme.artefacts);
      expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.equal(isListRoute(route) ? 200 : 404);
    }
    expect((await suspend('active')).status).to.equal(200);
    const unchanged = [...before].filter(([name]) => !name.includes('/tenant/') && !name.includes('/audit-log'));
    const after = await snapshot(acme);
    // Whoever reads a status list has it signed, if nobody did before.
    const unsigned = (text = '') => text.replaceAll(/"expiresAt":(null|"[^"]*")/g, '');
    for (const [name, text] of unchanged) expect(unsigned(after.get(name)), name).to.equal(unsigned(text));
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
