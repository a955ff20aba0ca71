import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { makeJwt, newKey, now } from '../support/raw-wallet.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const PAGE = readFileSync(new URL('../../docs/reference/external-oidc.md', import.meta.url), 'utf8');

/** The issuer ends in a slash, as that of several products. */
describe('external OpenID provider', () => {
  const key = newKey();
  let server: Server;
  let issuer: string;
  let service: TestService;

  before(async () => {
    server = createServer((request, response) => {
      const documents: Record<string, object> = {
        '/realm/.well-known/openid-configuration': {
          issuer,
          jwks_uri: `${issuer}keys`,
          token_endpoint: `${issuer}token`,
          authorization_endpoint: `${issuer}authorize`,
        },
        '/realm/keys': { keys: [{ ...key.jwk, use: 'sig', alg: 'ES256', kid: '1' }] },
      };
      const document = documents[request.url ?? ''];
      response.writeHead(document === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(document ?? {}));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}/realm/`;
    service = await start(issuer);
    const creation = await call(token(manager()), 'POST', '/tenant', { id: 'acme', name: 'Acme' });
    expect(creation.status, creation.text).to.equal(201);
  });
  after(async () => {
    await service.close();
    await new Promise((resolve) => server.close(resolve));
  });

  const start = (OIDC: string) =>
    startTestService({
      OIDC,
      OIDC_CLIENT_ID: 'vidimus',
      OIDC_CLIENT_SECRET: 'a secret',
      OIDC_ALGORITHM: 'ES256',
      AUTH_CLIENT_ID: '',
      AUTH_CLIENT_SECRET: '',
    });
  const [tenantExample, managerExample] = [...PAGE.matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, text = '']) => JSON.parse(text) as Record<string, unknown>,
  );
  /** The claims with issuer and times of this provider. */
  const withProviderClaims = (claims: Record<string, unknown> = {}) => ({ ...claims, iss: issuer, iat: now(), exp: now() + 60 });
  const manager = () => withProviderClaims(managerExample);
  const tenant = () => withProviderClaims(tenantExample);
  const token = (claims: object, header: object = { typ: 'at+jwt', alg: 'ES256', kid: '1' }, by = key) => makeJwt(by, header, claims);
  const call = (bearer: string, method: string, path: string, json?: object, target = service) =>
    target.call(method, path, { token: bearer, ...(json && { json }) });

  it('accepts the tokens of its documented setup', async () => {
    expect((await call(token(tenant()), 'GET', '/issuer/credentials')).status).to.equal(200);
    const offer = await call(token(tenant()), 'GET', '/client');
    expect(offer.status, 'the role does not allow it').to.equal(403);
  });

  for (const [description, claims, header, expectedMessage] of [
    ['an ID token', { nonce: 'n' }, { typ: 'JWT' }, /is an ID token/],
    ['an ID token without nonce', { at_hash: 'h' }, {}, /is an ID token/],
    ['an ID token of the front channel', { c_hash: 'h' }, { typ: 'JWT' }, /is an ID token/],
    ['an ID token with the type in a claim', { typ: 'ID' }, { typ: 'JWT' }, /is an ID token/],
    ['a refresh token', { typ: 'Refresh' }, { typ: 'JWT' }, /ID token or another token/],
    ['a token bound to a DPoP key', { cnf: { jkt: 'k' } }, { typ: 'at+jwt' }, /bound to a key/],
    ['a token bound to a certificate', { cnf: { 'x5t#S256': 'c' } }, { typ: 'JWT' }, /bound to a key/],
    ['a token with an unknown confirmation', { cnf: null }, { typ: 'at+jwt' }, /bound to a key/],
  ] as const) {
    it(`grants no access by ${description}`, async () => {
      const invalidToken = token({ ...tenant(), ...claims }, { ...header, alg: 'ES256', kid: '1' });
      for (const scheme of ['Bearer', 'DPoP']) {
        const headers = { Authorization: `${scheme} ${invalidToken}` };
        const answer = await service.call('GET', '/issuer/credentials', { headers });
        expect([answer.status, answer.body.code], answer.text).to.deep.equal([401, 'unauthenticated']);
        if (scheme === 'Bearer') expect(answer.body.detail).to.match(expectedMessage);
      }
    });
  }

  it('accepts an access token of the right type, regardless of its other claims', async () => {
    const markedToken = token({ ...tenant(), nonce: 'n', typ: 'Bearer' });
    expect((await call(markedToken, 'GET', '/issuer/credentials')).status).to.equal(200);
  });

  it('has an issuer that is compared exactly, including a trailing slash', async () => {
    const otherService = await start(issuer.replace(/\/$/, ''));
    try {
      const rejection = await call(token(manager()), 'GET', '/tenant', undefined, otherService);
      expect(rejection.status).to.be.oneOf([401, 503]);
    } finally {
      await otherService.close();
    }
    const withoutSlash = token({ ...tenant(), iss: issuer.replace(/\/$/, '') });
    const answer = await call(withoutSlash, 'GET', '/issuer/credentials');
    expect([answer.status, answer.body.detail]).to.deep.equal([401, 'the access token comes from another issuer than OIDC names']);
  });

  it('gets an error that names the claims that its tokens lack', async () => {
    const { azp: _, ...withoutClient } = tenant() as Record<string, unknown>;
    const { tenant_id: _tenantId, ...withoutTenant } = tenant() as Record<string, unknown>;
    const needs = 'does not identify the client: it requires tenant_id (OIDC_SUB), and client_id or azp';
    for (const [claims, expectedDetail] of [
      [token(withoutClient), needs],
      [token(withoutTenant), needs],
      [token({ ...tenant(), aud: 'account' }), 'does not contain "platform-service" in its aud'],
      [token({ ...tenant(), exp: now() - 3600 }), 'has expired'],
      [token(tenant(), { typ: 'at+jwt', alg: 'ES256', kid: '2' }), 'is signed with a key that the provider does not publish'],
      [token(tenant(), undefined, newKey()), 'is not signed by the provider'],
      ['nonsense', 'cannot be read'],
    ] as const) {
      const answer = await call(claims, 'GET', '/issuer/credentials');
      expect([answer.status, answer.body.detail]).to.deep.equal([401, `the access token ${expectedDetail}`]);
    }
  });
});
