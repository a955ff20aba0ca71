import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import sinon from 'sinon';
import { Store } from '../../application/ports/store.ts';
import { QUERY } from '../support/present.ts';
import { makeJwt, newKey, now } from '../support/raw-wallet.ts';
import { type EventStream, openStream } from '../support/sse.ts';
import { startTestService, TENANT_ROLES, type TestService } from '../support/test-service.ts';
import { CONFIDENTIAL_CLIENT, startUpstreamProvider, type UpstreamProvider } from '../support/upstream-provider.ts';

const AUDIENCE = 'platform-service';
const MANAGER = { tenant_id: 'operator', roles: ['tenants:manage'], client_id: 'operator' };
const CLIENTS = ['operator', 'backend', 'kiosk', 'somebody', 'x', 'folder import', 'system', 'till 3', 'till', 'booth', 'follower'];
const registered = (client_id: string) => ({
  client_id,
  client_secret: `secret-of-${client_id}-at-the-provider`,
  grant_types: ['client_credentials'],
  response_types: [],
  redirect_uris: [],
});
type Claims = { readonly client_id: string; readonly [claim: string]: unknown };
/** Whoever runs the provider decides what is in its tokens. */
const claimsOf = (tenant: string, roles: readonly string[] = TENANT_ROLES, client_id = 'backend') => ({
  tenant_id: tenant,
  roles: [...roles],
  client_id,
});

describe('access tokens of an external OpenID provider', () => {
  let provider: UpstreamProvider;
  let service: TestService;

  const settings = (changes: Record<string, string> = {}) => ({
    OIDC: provider.issuer,
    OIDC_CLIENT_ID: CONFIDENTIAL_CLIENT.clientId,
    OIDC_CLIENT_SECRET: CONFIDENTIAL_CLIENT.clientSecret,
    AUTH_CLIENT_ID: '',
    AUTH_CLIENT_SECRET: '',
    OUTBOUND_ALLOW: '',
    ...changes,
  });

  before(async () => {
    provider = await startUpstreamProvider({ clients: CLIENTS.map(registered) });
    service = await startTestService(settings());
    for (const id of ['acme', 'other']) {
      const made = await call(await tokenFor(MANAGER), 'POST', '/tenant', { id, name: id });
      expect(made.status, made.text).to.equal(201);
    }
  });
  after(async () => {
    await service.close();
    await provider.close();
  });

  const tokenFor = ({ client_id: clientId, ...claims }: Claims, more: object = {}, audience = AUDIENCE) =>
    provider.accessTokenFor(audience, { claims, clientId, ...more });
  const call = (token: string, method: string, path: string, json?: unknown, at = service) =>
    at.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const statusOf = async (claims: Claims, more: object = {}, audience?: string) =>
    (await call(await tokenFor(claims, more, audience), 'GET', '/verifier/config')).status;

  it('are accepted with the tenant and the roles that they name', async () => {
    const token = await tokenFor(claimsOf('acme'));
    const written = await call(token, 'POST', '/verifier/config', { id: 'check', dcql_query: QUERY });
    expect(written.status, written.text).to.equal(201);
    const list = await call(token, 'GET', '/verifier/config');
    expect(list.body.map(({ id }: { id: string }) => id)).to.deep.equal(['check']);
    const other = await call(await tokenFor(claimsOf('other')), 'GET', '/verifier/config');
    expect([other.status, other.body]).to.deep.equal([200, []]);
  });

  it('appear in the audit log as the user, with the client', async () => {
    const actors = async (query = '') => {
      const answer = await call(await tokenFor(claimsOf('acme')), 'GET', `/audit-log?target=seen${query}`);
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.map(({ actor }: { actor: string }) => actor).sort();
    };
    for (const person of ['anna', 'bert']) {
      const token = await tokenFor(claimsOf('acme'), { accountId: person });
      const put = await call(token, 'POST', '/verifier/config', { id: 'seen', dcql_query: QUERY });
      expect(put.status, put.text).to.equal(201);
      expect((await call(token, 'DELETE', '/verifier/config/seen')).status).to.be.oneOf([200, 204]);
    }
    expect(await actors()).to.deep.equal(['backend (anna)', 'backend (anna)', 'backend (bert)', 'backend (bert)']);
    expect(await actors('&actor=backend')).to.have.lengthOf(4);
    expect(await actors(`&actor=${encodeURIComponent('backend (bert)')}`)).to.have.lengthOf(2);
    expect(await actors('&actor=back')).to.deep.equal([]);
  });

  it('grant the roles that they name and no others', async () => {
    expect(await statusOf(claimsOf('acme', ['presentation:request']))).to.equal(200);
    expect(await statusOf(claimsOf('acme', ['presentation:offer', 'offline_access']))).to.equal(200);
    for (const roles of [['issuance:manage'], [], ['PRESENTATION:MANAGE'], 'presentation:manage', { 0: 'x' }]) {
      expect(await statusOf({ ...claimsOf('acme'), roles }), JSON.stringify(roles)).to.equal(403);
    }
    const nested = { tenant_id: 'acme', client_id: 'x', realm_access: { roles: ['presentation:manage'] } };
    expect(await statusOf(nested)).to.equal(200);
  });

  it('are rejected without a tenant, with an unknown one, and for another audience', async () => {
    const good = claimsOf('acme');
    expect(await statusOf({ ...good, tenant_id: undefined })).to.equal(401);
    for (const tenant_id of ['nobody', '', 7, null, ['acme'], 'Acme']) {
      expect(await statusOf({ ...good, tenant_id }), JSON.stringify(tenant_id)).to.equal(401);
    }
    for (const audience of ['other-service', `${provider.issuer}`, 'platform-service ']) {
      expect(await statusOf(good, {}, audience), audience).to.equal(401);
    }
    expect(await statusOf(good, { lifetimeSeconds: -120 })).to.equal(401);
  });

  it('are rejected with an invalid or missing signature', async () => {
    const stranger = await startUpstreamProvider();
    try {
      const foreign = await stranger.accessTokenFor(AUDIENCE, { claims: { tenant_id: 'acme', roles: TENANT_ROLES } });
      expect((await call(foreign, 'GET', '/verifier/config')).status).to.equal(401);
    } finally {
      await stranger.close();
    }
    const token = await tokenFor(claimsOf('acme'));
    const [header = '', payload = '', signature = ''] = token.split('.');
    const forged = Buffer.from(
      JSON.stringify({ ...JSON.parse(Buffer.from(payload, 'base64url').toString()), tenant_id: 'other' }),
    ).toString('base64url');
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
    for (const bad of [`${header}.${forged}.${signature}`, `${none}.${payload}.`, `${header}.${payload}.`, 'x']) {
      expect((await call(bad, 'GET', '/verifier/config')).status).to.equal(401);
    }
  });

  it('manage tenants only for an account whose token names an operator instead of a tenant', async () => {
    const list = async (claims: Claims) => (await call(await tokenFor(claims), 'GET', '/tenant')).status;
    expect(await list(MANAGER)).to.equal(200);
    expect(await list({ ...MANAGER, roles: ['clients:manage'] })).to.be.oneOf([401, 403]);
    expect(await list(claimsOf('acme', ['tenants:manage', ...TENANT_ROLES]))).to.equal(403);
    expect(await list({ ...MANAGER, client_id: 'somebody' })).to.equal(401);
    const own = await call(await tokenFor(MANAGER), 'GET', '/verifier/config');
    expect(own.status, 'nothing of a tenant').to.equal(403);
  });

  describe('of a registered client', () => {
    const manage = async (method: string, path: string, json?: object) => {
      const answer = await call(await tokenFor(claimsOf('acme')), method, path, json);
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    };
    before(() =>
      manage('POST', '/client', { clientId: 'kiosk', roles: ['presentation:request'], allowedPresentationConfigs: ['allowed'] }),
    );

    it('are limited by the restrictions and roles of both the client and the token', async () => {
      await manage('POST', '/verifier/config', { id: 'allowed', dcql_query: QUERY });
      await manage('POST', '/verifier/config', { id: 'forbidden', dcql_query: QUERY });
      const token = await tokenFor(claimsOf('acme', TENANT_ROLES, 'kiosk'));
      const offer = (requestId: string) => call(token, 'POST', '/verifier/offer', { response_type: 'uri', requestId });
      expect((await offer('allowed')).status).to.equal(201);
      expect((await offer('forbidden')).status).to.equal(403);
      expect((await call(token, 'GET', '/client')).status, 'a role of the token alone').to.equal(403);
      const narrow = await tokenFor(claimsOf('acme', ['issuance:offer'], 'kiosk'));
      expect((await call(narrow, 'GET', '/verifier/config')).status).to.equal(403);
    });
    it('cannot be blocked by another tenant that registers its id', async () => {
      const elsewhere = await tokenFor(claimsOf('other', TENANT_ROLES, 'booth'), { lifetimeSeconds: 600 });
      expect((await call(elsewhere, 'GET', '/client')).status).to.equal(200);
      await manage('POST', '/client', { clientId: 'booth', roles: ['presentation:request'] });
      expect((await call(elsewhere, 'GET', '/client')).status).to.equal(200);
      await manage('DELETE', '/client/booth');
      expect((await call(elsewhere, 'GET', '/client')).status).to.equal(200);
    });
    it('end with the client, and are valid again once it is created again', async () => {
      const restricted = { roles: ['presentation:request'], allowedPresentationConfigs: ['allowed'] };
      await manage('POST', '/client', { clientId: 'till', ...restricted });
      const token = await tokenFor(claimsOf('acme', TENANT_ROLES, 'till'));
      const statuses = async (by = token) => {
        const offer = { response_type: 'uri', requestId: 'forbidden' };
        return [
          (await call(by, 'GET', '/verifier/config')).status,
          (await call(by, 'POST', '/verifier/offer', offer)).status,
          (await call(by, 'POST', '/client', { clientId: 'evil', roles: ['issuance:offer'] })).status,
        ];
      };
      expect(await statuses()).to.deep.equal([200, 403, 403]);
      await manage('DELETE', '/client/till');
      expect(await statuses()).to.deep.equal([401, 401, 401]);
      const fresh = await tokenFor(claimsOf('acme', TENANT_ROLES, 'till'), { lifetimeSeconds: 300 });
      expect(await statuses(fresh)).to.deep.equal([401, 401, 401]);
      expect((await call(fresh, 'GET', '/client')).body.detail).to.include('was removed');
      await manage('POST', '/client', { clientId: 'till', ...restricted });
      expect(await statuses()).to.deep.equal([200, 403, 403]);
      await manage('DELETE', '/client/till');
    });
    it('are verified with one read, until the tenant changes', async () => {
      const store = service.service.container.get(Store);
      const looks = sinon.spy(store, 'forService');
      try {
        await manage('PATCH', '/client/kiosk', { roles: ['presentation:request'] });
        for (const client of ['somebody', 'kiosk']) {
          const token = await tokenFor(claimsOf('acme', TENANT_ROLES, client));
          for (let call_ = 0; call_ < 3; call_++) await call(token, 'GET', '/verifier/config');
        }
        // One for each of the two that are not registered: who manages here, and the other one.
        expect(looks.callCount).to.be.at.most(2);
      } finally {
        looks.restore();
      }
    });
    it('change with the client at once', async () => {
      const token = await tokenFor(claimsOf('acme', TENANT_ROLES, 'kiosk'));
      const configurations = () => call(token, 'GET', '/verifier/config');
      expect((await configurations()).body).to.have.length(1);
      await manage('PATCH', '/client/kiosk', { roles: ['issuance:offer'] });
      expect((await configurations()).status).to.equal(403);
    });
  });

  describe('of a client that follows a session', () => {
    const streams: EventStream[] = [];
    let session: string;
    let uri: string;
    const as = (client: string, roles: readonly string[] = TENANT_ROLES) => tokenFor(claimsOf('acme', roles, client));
    const done = async (method: string, path: string, json?: object, by = 'backend') => {
      const answer = await call(await as(by), method, path, json);
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      return answer.body;
    };
    const follow = async (token: string) => {
      const Authorization = `Bearer ${token}`;
      const stream = await openStream(`${service.address}/session/${session}/events`, { Authorization });
      streams.push(stream);
      expect((await stream.next())?.data.status).to.equal('active');
      return stream;
    };
    const fetchRequest = async (uri: string) => {
      const address = new URL(uri).searchParams.get('request_uri') ?? '';
      expect((await service.call('GET', address)).status).to.equal(200);
    };

    beforeEach(async () => {
      await call(await as('backend'), 'POST', '/verifier/config', { id: 'followed', dcql_query: QUERY });
      const offer = { response_type: 'uri', requestId: 'followed' };
      ({ session, uri } = await done('POST', '/verifier/offer', offer));
    });
    afterEach(() => {
      for (const stream of streams.splice(0)) stream.leave();
    });

    it('deliver changes, registered or not, after a change of the tenant', async () => {
      await done('POST', '/client', { clientId: 'follower', roles: ['presentation:request'] });
      const open = [await follow(await as('backend')), await follow(await as('follower'))];
      await done('PATCH', '/verifier/config/followed', { description: 'changed' });
      await fetchRequest(uri);
      for (const stream of open) expect((await stream.next())?.data.status).to.equal('fetched');
      await done('DELETE', '/client/follower');
    });

    it('end its stream once the client is removed', async () => {
      await done('POST', '/client', { clientId: 'follower', roles: ['presentation:request'] });
      const stream = await follow(await as('follower'));
      await done('DELETE', '/client/follower');
      await fetchRequest(uri);
      expect(await stream.next()).to.equal(undefined);
    });

    it('end its stream when they expire', async () => {
      const stream = await follow(await tokenFor(claimsOf('acme', TENANT_ROLES, 'backend'), { lifetimeSeconds: 2 }));
      expect(await stream.next(), 'an end, not an error').to.equal(undefined);
      const again = await follow(await as('backend'));
      await fetchRequest(uri);
      expect((await again.next())?.data.status).to.equal('fetched');
    });

    it('grant no role that only its registration has', async () => {
      const roles = ['presentation:request', 'presentation:manage'];
      await done('POST', '/client', { clientId: 'follower', roles });
      const narrow = await follow(await as('follower', ['presentation:request']));
      const wide = await follow(await as('follower', roles));
      await done('PATCH', '/client/follower', { roles: ['presentation:manage'] });
      await fetchRequest(uri);
      expect((await wide.next())?.data.status).to.equal('fetched');
      expect(await narrow.next()).to.equal(undefined);
      await done('DELETE', '/client/follower');
    });
  });

  it('cannot impersonate the service in the audit log', async () => {
    const make = async (client_id: string, clientId: string) =>
      call(await tokenFor(claimsOf('acme', TENANT_ROLES, client_id)), 'POST', '/client', { clientId, roles: ['issuance:offer'] });
    const importer = await make('folder import', 'by-importer');
    expect([importer.status, importer.body.code]).to.deep.equal([401, 'unauthenticated']);
    for (const [client_id, clientId, actor] of [
      ['system', 'by-system', 'client system (alice)'],
      ['till 3', 'by-till', 'till 3 (alice)'],
    ] as const) {
      expect((await make(client_id, clientId)).status, client_id).to.equal(201);
      const log = await call(await tokenFor(claimsOf('acme')), 'GET', '/audit-log?limit=1');
      expect(log.body[0], client_id).to.include({ actor, target: clientId });
    }
  });

  it('end with a suspended tenant', async () => {
    const manager = await tokenFor(MANAGER);
    await call(manager, 'POST', '/tenant', { id: 'brief', name: 'Brief' });
    expect(await statusOf(claimsOf('brief'))).to.equal(200);
    await call(manager, 'PATCH', '/tenant/brief', { status: 'suspended' });
    expect(await statusOf(claimsOf('brief'))).to.equal(403);
    await call(manager, 'DELETE', '/tenant/brief');
    expect(await statusOf(claimsOf('brief'))).to.equal(401);
  });

  it('are cached for a minute and not beyond their expiry', async () => {
    const token = await tokenFor(claimsOf('acme'), { lifetimeSeconds: 30 });
    expect((await call(token, 'GET', '/verifier/config')).status).to.equal(200);
    const clock = sinon.useFakeTimers({ now: Date.now() + 100_000, toFake: ['Date'] });
    try {
      expect((await call(token, 'GET', '/verifier/config')).status).to.equal(401);
    } finally {
      clock.restore();
    }
  });

  it('are not issued by this service', async () => {
    for (const client_id of ['root', 'kiosk', '']) {
      const json = { grant_type: 'client_credentials', client_id, client_secret: '' };
      const answer = await service.call('POST', '/oauth2/token', { json });
      expect([answer.status, answer.body.error]).to.deep.equal([400, 'unauthorized_client']);
      expect(answer.body.error_description).to.include(provider.issuer);
    }
  });

  it('use a provider that is part of the health check', async () => {
    const health = await service.call('GET', '/health');
    expect([health.status, health.body.details['identity-provider']?.status]).to.deep.equal([200, 'up']);
    const wrong = await startTestService(settings({ OIDC_CLIENT_SECRET: 'wrong' }));
    try {
      const sick = await wrong.call('GET', '/health');
      expect([sick.status, sick.body.error['identity-provider'].status]).to.deep.equal([503, 'down']);
      expect(sick.text).to.not.include('wrong');
    } finally {
      await wrong.close();
    }
  });

  it('cause no provider call for an anonymous health check', async () => {
    const logins = () => provider.hits('/token');
    for (const [secret, status] of [
      [CONFIDENTIAL_CLIENT.clientSecret, 200],
      ['wrong', 503],
    ] as const) {
      const asked = await startTestService(settings({ OIDC_CLIENT_SECRET: secret }));
      try {
        const before = logins();
        const crowd = await Promise.all(Array.from({ length: 24 }, () => asked.call('GET', '/health')));
        for (let again = 0; again < 5; again++) crowd.push(await asked.call('GET', '/health'));
        expect(new Set(crowd.map((answer) => answer.status))).to.deep.equal(new Set([status]));
        expect(logins() - before).to.equal(1);
      } finally {
        await asked.close();
      }
    }
  });

  it('cannot be verified while the provider is down', async () => {
    const gone = await startUpstreamProvider();
    const token = await gone.accessTokenFor(AUDIENCE, { claims: { tenant_id: 'acme' } });
    await gone.close();
    const lonely = await startTestService(settings({ OIDC: gone.issuer }));
    try {
      const answer = await call(token, 'GET', '/verifier/config', undefined, lonely);
      expect([answer.status, answer.body.code]).to.deep.equal([503, 'unavailable']);
    } finally {
      await lonely.close();
    }
  });

  it('are verified at a provider with another internal address', async () => {
    const OIDC = 'https://login.example/realm';
    const key = newKey();
    const documents: Record<string, object> = {
      '/inside/.well-known/openid-configuration': { issuer: OIDC, jwks_uri: `${OIDC}/keys` },
      '/inside/keys': { keys: [{ ...key.jwk, kid: 'k', use: 'sig', alg: 'ES256' }] },
    };
    const server = createServer((request, response) => {
      const document = documents[request.url ?? ''];
      response.writeHead(document === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(document ?? {}));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const inside = `http://127.0.0.1:${(server.address() as AddressInfo).port}/inside`;
    const settled = settings({ OIDC, OIDC_INTERNAL_ISSUER_URL: inside, OIDC_ALGORITHM: 'ES256' });
    const within = await startTestService(settled);
    try {
      const claims = { ...MANAGER, aud: AUDIENCE, exp: now() + 600, iat: now() };
      const tokenOf = (iss: string) => makeJwt(key, { alg: 'ES256', typ: 'at+jwt', kid: 'k' }, { ...claims, iss });
      expect((await call(tokenOf(OIDC), 'GET', '/tenant', undefined, within)).status).to.equal(200);
      expect((await call(tokenOf(inside), 'GET', '/tenant', undefined, within)).status).to.equal(401);
    } finally {
      await within.close();
      server.close();
    }
  });

  it('are verified as configured: another claim, other roles, another algorithm', async () => {
    const renamed = await startTestService(settings({ OIDC_SUB: 'organization', OIDC_ROLES: 'resource_access.vidimus.roles' }));
    try {
      const claims = {
        organization: 'operator',
        client_id: 'operator',
        roles: ['nothing'],
        resource_access: { vidimus: { roles: ['tenants:manage'] } },
      };
      const answer = await call(await tokenFor(claims), 'GET', '/tenant', undefined, renamed);
      expect(answer.status, answer.text).to.equal(200);
      const usual = await call(await tokenFor(MANAGER), 'GET', '/tenant', undefined, renamed);
      expect(usual.status).to.equal(401);
    } finally {
      await renamed.close();
    }
    const strict = await startTestService(settings({ OIDC_ALGORITHM: 'ES256' }));
    try {
      expect((await call(await tokenFor(MANAGER), 'GET', '/tenant', undefined, strict)).status).to.equal(401);
    } finally {
      await strict.close();
    }
  });
});
