import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import sinon from 'sinon';
import { Log } from '../../application/ports/log.ts';
import { databases } from '../support/databases.ts';
import { requestPresentation, verifyWithLeaf } from '../support/present.ts';
import { newKey } from '../support/raw-wallet.ts';
import { REGISTRAR_PASSWORD, REGISTRAR_SECRET, type RegistrarAnswer, TestRegistrar } from '../support/registrar.ts';
import { expectInvalid, expectUnavailable, RegistrarWorld } from '../support/registrar-world.ts';
import { shortenTimeouts } from '../support/short-timeouts.ts';
import { createTenant } from '../support/test-service.ts';

const CONFIG = '/registrar/config';
/** Each of these operations calls the registrar. */
const ORDER = { provided_attestations: [{ format: 'dc+sd-jwt', meta: {} }] };
const obtain = (world: RegistrarWorld, token = world.token) =>
  world.call('POST', '/registrar/registration-certificate', { body: ORDER }, token);

describe('registrar login', () => {
  let world: RegistrarWorld;
  let registrar: TestRegistrar;

  before(async () => {
    world = await RegistrarWorld.open();
    registrar = world.registrar;
  });
  after(() => world.close());
  beforeEach(() => world.clearCaches());
  afterEach(() => {
    sinon.restore();
    return world.call('DELETE', CONFIG);
  });

  it('is stored, shown without secrets, changed and removed', async () => {
    expect((await world.call('GET', CONFIG)).status).to.equal(404);
    const secrets = { clientSecret: REGISTRAR_SECRET };
    const creation = await world.call('POST', CONFIG, registrar.login(secrets));
    expect(creation.status, creation.text).to.equal(201);
    const { createdAt, updatedAt, tenant, warnings, ...shown } = creation.body;
    expect(warnings).to.deep.equal([]);
    expect(tenant).to.include({ id: 'acme', name: 'Tenant acme', description: null, status: 'active' });
    const { password: _password, ...login } = registrar.login();
    expect(shown).to.deep.equal({
      ...login,
      hasPassword: true,
      hasClientSecret: true,
      registrationCertificateAnchors: null,
      tenantId: 'acme',
    });
    expect({ ...(await world.call('GET', CONFIG)).body, warnings }).to.deep.equal(creation.body);
    expect(registrar.logins).to.have.length(1);

    const change = await world.call('PATCH', CONFIG, { registrationCertificateDefaults: null });
    expect(change.status, change.text).to.equal(200);
    expect(change.body).to.include({ registrationCertificateDefaults: null, hasClientSecret: true, createdAt });
    expect(change.body.updatedAt > updatedAt).to.equal(true);
    const reset = await world.call('PATCH', CONFIG, { clientSecret: null });
    expect([reset.status, reset.body.hasClientSecret], reset.text).to.deep.equal([200, false]);
    const replacement = await world.call('POST', CONFIG, registrar.login({ username: 'other' }));
    expect(replacement.body).to.include({ username: 'other', createdAt });

    const deletion = await world.call('DELETE', CONFIG);
    expect([deletion.status, deletion.body]).to.deep.equal([200, { id: 'default' }]);
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const answer = await world.call(method, CONFIG, method === 'PATCH' ? {} : undefined);
      expect(answer.status, method).to.equal(404);
    }
  });

  it('authenticates the client by the method of the provider', async () => {
    await world.configure({ clientSecret: REGISTRAR_SECRET });
    expect(registrar.logins[0]?.authorization).to.match(/^Basic /);
    await world.configure();
    expect(registrar.logins[1]?.authorization).to.equal(undefined);
  });

  it('is rejected when the provider does not accept it, and the previous login stays', async () => {
    await world.configure();
    const before = await world.call('GET', CONFIG);
    const wrongLogin = { password: 'wrong-password-in-the-clear' };
    const rejectedCreation = await world.call('POST', CONFIG, registrar.login(wrongLogin));
    expectInvalid(rejectedCreation, 'password', 'does not accept this username and password');
    const rejectedChange = await world.call('PATCH', CONFIG, wrongLogin);
    expectInvalid(rejectedChange, 'password', 'does not accept this username and password');
    for (const { text } of [rejectedCreation, rejectedChange]) expect(text).to.not.include(wrongLogin.password);
    const client = await world.call('POST', CONFIG, registrar.login({ clientSecret: 'x' }));
    expectInvalid(client, 'password', 'does not accept this client');
    expect((await world.call('GET', CONFIG)).text).to.equal(before.text);
  });

  it('sends its password only to the intended server', async () => {
    await world.configure();
    const otherRegistrar = await TestRegistrar.start();
    expectInvalid(await world.call('PATCH', CONFIG, { oidcUrl: otherRegistrar.url }), 'password', 'send the');
    expect(otherRegistrar.logins).to.deep.equal([]);
    const otherLogin = { oidcUrl: otherRegistrar.url, password: REGISTRAR_PASSWORD };
    expect((await world.call('PATCH', CONFIG, otherLogin)).status).to.equal(200);
    expect(otherRegistrar.logins).to.have.length(1);
    await otherRegistrar.close();
  });

  it('is rejected if it cannot be tested', async () => {
    const configureWith = (changes: object) => world.call('POST', CONFIG, registrar.login({ ...changes }));
    expectUnavailable(await configureWith({ oidcUrl: 'http://127.0.0.1:9' }), 'could not be reached');
    expectInvalid(await configureWith({ oidcUrl: 'http://127.0.0.2' }), 'oidcUrl', 'OUTBOUND_ALLOW');
    expectInvalid(await configureWith({ oidcUrl: `${registrar.url}/` }), 'oidcUrl', 'another issuer');
    expectInvalid(await configureWith({ oidcUrl: `${registrar.url}/none` }), 'oidcUrl');
    for (const missing of ['registrarUrl', 'oidcUrl', 'clientId', 'username', 'password']) {
      expectInvalid(await configureWith({ [missing]: undefined }), missing);
    }
    expect((await world.call('GET', CONFIG)).status).to.equal(404);
  });

  const provider: [string, string, RegistrarAnswer, (answer: Awaited<ReturnType<typeof obtain>>) => void][] = [
    [
      'with a redirect',
      '/token',
      (response) => response.writeHead(302, { Location: 'https://evil.example' }).end(),
      (answer) => expectInvalid(answer, 'oidcUrl', 'redirect'),
    ],
    [
      'with a response of several megabytes',
      '/.well-known',
      (response) => response.writeHead(200).end('x'.repeat(2 ** 21)),
      (answer) => expectInvalid(answer, 'oidcUrl', 'too large'),
    ],
    [
      'with an invalid response',
      '/token',
      (response) => response.writeHead(200).end('<html>'),
      (answer) => expectInvalid(answer, 'oidcUrl', 'returned no bearer token'),
    ],
    [
      'with a token of another type',
      '/token',
      (response) => response.writeHead(200).end('{"access_token":"a","token_type":"DPoP"}'),
      (answer) => expectInvalid(answer, 'oidcUrl', 'returned no bearer token'),
    ],
    [
      'with a token that contains a line break',
      '/token',
      (response) => response.writeHead(200).end('{"access_token":"a\\r\\nX: y","token_type":"Bearer"}'),
      (answer) => expectInvalid(answer, 'oidcUrl', 'returned no bearer token'),
    ],
    ['with status 503', '/token', (response) => response.writeHead(503).end(), (answer) => expectUnavailable(answer, 'status 503')],
    [
      'with an error that contains the password',
      '/token',
      (response) => response.writeHead(400).end(JSON.stringify({ error: REGISTRAR_PASSWORD })),
      (answer) => expectInvalid(answer, 'password', 'answered the login with status 400'),
    ],
  ];
  for (const [description, path, answer, expected] of provider) {
    it(`is rejected when the provider responds ${description}`, async () => {
      registrar.answers.set(path, answer);
      const rejection = await world.call('POST', CONFIG, registrar.login());
      expected(rejection);
      expect(rejection.text).to.not.include(REGISTRAR_PASSWORD);
      expect((await world.call('GET', CONFIG)).status).to.equal(404);
    });
  }

  it('is aborted when the provider does not answer', async () => {
    shortenTimeouts(world.service);
    registrar.answers.set('/token', () => {});
    expectUnavailable(await world.call('POST', CONFIG, registrar.login()), 'did not answer in time');
  });

  it('is not tested for a PATCH that contains only defaults of certificates', async () => {
    await world.configure();
    registrar.answers.set('/token', (response) => response.writeHead(500).end());
    const change = await world.call('PATCH', CONFIG, { registrationCertificateDefaults: null });
    expect(change.status, change.text).to.equal(200);
    expect((await world.call('PATCH', CONFIG, { password: REGISTRAR_PASSWORD })).status).to.not.equal(200);
  });

  it('is shared by many calls, once for all concurrent requests', async () => {
    await world.configure();
    await obtain(world);
    expect(registrar.logins).to.have.length(1);
    registrar.tokenLifetime = 6;
    await world.call('PATCH', CONFIG, {});
    registrar.logins.length = 0;
    sinon.useFakeTimers({ now: Date.now() + 1_100, toFake: ['Date'] });
    registrar.tokenLifetime = 600;
    const responses = await Promise.all([1, 2, 3, 4, 5].map(() => obtain(world)));
    expect(responses.map(({ status }) => status)).to.deep.equal([201, 201, 201, 201, 201]);
    expect(registrar.logins, 'five seconds before the expiry').to.have.length(1);
  });

  it('is repeated once when its token is rejected', async () => {
    await world.configure();
    registrar.revokeTokens();
    expect((await obtain(world)).status).to.equal(201);
    expect(registrar.logins).to.have.length(2);
    registrar.answers.set('/api', (response) => response.writeHead(401).end());
    registrar.calls.length = 0;
    expectInvalid(await obtain(world), '', 'status 401');
    expect(registrar.calls, 'the cached token expires').to.have.length(2);
  });

  it('belongs to one tenant, even if another one has the same settings', async () => {
    const otherToken = (await createTenant(world.service, 'other')).token;
    await world.configure();
    await world.configure({}, otherToken);
    const [ownLoginToken, otherLoginToken] = registrar.logins.map(({ token }) => token);
    expect(ownLoginToken).to.not.equal(otherLoginToken);
    const used = async (token: string) => {
      registrar.calls.length = 0;
      expect((await obtain(world, token)).status).to.equal(201);
      return new Set(registrar.calls.map((call) => call.token));
    };
    expect(await used(world.token)).to.deep.equal(new Set([ownLoginToken]));
    expect(await used(otherToken)).to.deep.equal(new Set([otherLoginToken]));
    expect(await used(world.token)).to.deep.equal(new Set([ownLoginToken]));
    expect(registrar.logins).to.have.length(2);
    await world.call('DELETE', CONFIG, undefined, otherToken);
    expect((await obtain(world, otherToken)).status, 'after the configuration was removed').to.equal(409);
    expect(await used(world.token)).to.deep.equal(new Set([ownLoginToken]));
  });

  it('is not used after it was changed', async () => {
    await world.configure();
    await world.configure({ username: 'other' });
    registrar.calls.length = 0;
    await obtain(world);
    const [, latestLogin] = registrar.logins;
    expect(latestLogin?.username).to.equal('other');
    expect(new Set(registrar.calls.map(({ token }) => token))).to.deep.equal(new Set([latestLogin?.token]));
  });

  it('cannot be removed while a configuration obtains certificates with it', async () => {
    await world.configure();
    expect((await world.configurePresentation('needed', { body: {} })).status).to.equal(201);
    expect((await world.call('DELETE', CONFIG)).status).to.equal(409);
    expect((await world.call('DELETE', '/verifier/config/needed')).status).to.equal(200);
    expect((await world.call('DELETE', CONFIG)).status).to.equal(200);
  });
});

describe('registrar password', () => {
  it('is in no database row, no answer and no log', async () => {
    const database = await databases()[0]?.open();
    if (database === undefined) throw new Error('SQLite is always there');
    const world = await RegistrarWorld.open({ DATABASE_URL: database.url });
    const { registrar } = world;
    const log = world.service.service.container.get(Log);
    const lines: string[] = [];
    for (const level of ['info', 'warn', 'error'] as const) {
      log[level] = (...parts: unknown[]) => {
        lines.push(JSON.stringify(parts), ...parts.map((part) => String((part as Error)?.stack ?? part)));
      };
    }
    const responseTexts: string[] = [];
    const recordResponse = async (...request: Parameters<RegistrarWorld['call']>) =>
      responseTexts.push((await world.call(...request)).text);
    await recordResponse('POST', CONFIG, registrar.login({ clientSecret: REGISTRAR_SECRET }));
    await recordResponse('GET', CONFIG);
    await recordResponse('PATCH', CONFIG, { password: REGISTRAR_PASSWORD });
    await recordResponse('POST', CONFIG, registrar.login({ clientSecret: REGISTRAR_SECRET, username: 5 }));
    await recordResponse('POST', '/registrar/access-certificate', { keyChainId: 'access' });
    await recordResponse('POST', '/registrar/registration-certificate', { body: ORDER });
    registrar.answers.set('/token', (response, request) => response.destroy(new Error(String(request.headers))));
    await recordResponse('POST', CONFIG, registrar.login({ clientSecret: REGISTRAR_SECRET }));
    registrar.answers.set('/api', (response) => response.writeHead(500).end(REGISTRAR_PASSWORD));
    await recordResponse('POST', '/registrar/registration-certificate', { body: ORDER });

    const tokens = registrar.logins.map(({ token }) => token);
    expect(tokens).to.have.length.greaterThan(1);
    const secrets = [REGISTRAR_PASSWORD, REGISTRAR_SECRET, ...tokens];
    const file = database.url.slice('sqlite:'.length);
    const files = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)));
    const bytes = Buffer.concat(files.map((name) => readFileSync(join(dirname(file), name))));
    expect(bytes.includes('registrar_configurations'), 'the file contains the table').to.equal(true);
    for (const secret of secrets) {
      expect(bytes.includes(secret), 'the database file').to.equal(false);
      expect(responseTexts.join('\n'), 'the responses').to.not.include(secret);
      expect(lines.join('\n'), 'the log').to.not.include(secret);
    }
    await world.close();
    await database.drop();
  });
});

const PATH = '/registrar/access-certificate';

describe('access certificate of the registrar', () => {
  let world: RegistrarWorld;
  let registrar: TestRegistrar;

  before(async () => {
    world = await RegistrarWorld.openRegistered();
    registrar = world.registrar;
  });
  after(() => world.close());
  beforeEach(() => world.clearCaches());
  afterEach(() => {
    registrar.otherKey = undefined;
    registrar.accessCertificateExpiry = undefined;
    registrar.parties = [{ id: 'party-1', name: 'Acme' }];
  });

  const obtain = (changes: object = {}) => world.call('POST', PATH, { keyChainId: 'access', ...changes });
  const keyChain = async (id = 'access') => (await world.call('GET', `/key-chain/${id}`)).body;

  it('is obtained for the key of a key chain, which then signs requests with it', async () => {
    const before = await keyChain();
    const answer = await obtain();
    expect(answer.status, answer.text).to.equal(201);
    const [{ body: requestBody } = { body: undefined }] = registrar.callsTo('/access-certificates');
    expect(requestBody)
      .to.have.keys('publicKey', 'dns', 'rpId')
      .and.to.deep.include({ dns: ['localhost'], rpId: 'party-1' });
    const { kty, crv, x, y } = createPublicKey(requestBody?.['publicKey']).export({ format: 'jwk' });
    expect(before.activeKey).to.include({ kty, crv, x, y });

    const { id, relyingPartyId, keyChainId, certId, crt, keyChain: chain } = answer.body;
    expect(id).to.be.a('string').with.length.greaterThan(10);
    expect([relyingPartyId, keyChainId, certId]).to.deep.equal(['party-1', 'access', 'access']);
    expect(chain).to.deep.equal(await keyChain());
    expect(chain).to.deep.include({ rootCertificate: null, activeKey: before.activeKey });
    expect(chain.previousCertificate).to.equal(before.activeCertificate);
    expect(crt, 'the CA certificate is not included').to.have.length(1);

    const request = await requestPresentation(world.service, world.token, 'check');
    const leaf = verifyWithLeaf(request.text);
    expect(request.header['x5c']).to.have.length(1);
    expect(leaf.fingerprint256).to.equal(new X509Certificate(crt[0]).fingerprint256);
    expect(leaf.checkIssued(new X509Certificate(Buffer.from(registrar.ca.certificate, 'base64')))).to.equal(true);
    const hash = createHash('sha256').update(leaf.raw).digest('base64url');
    expect(request.payload['client_id']).to.equal(`x509_hash:${hash}`);
  });

  it('does not affect requests that were created with the previous one', async () => {
    const request = await requestPresentation(world.service, world.token, 'check');
    expect((await obtain()).status).to.equal(201);
    const secondFetch = await world.service.call('GET', request.url);
    expect([secondFetch.status, secondFetch.text]).to.deep.equal([200, request.text]);
    const postResponse = await world.service.call('POST', request.url, { form: { wallet_nonce: 'of-the-wallet' } });
    expect(postResponse.status, postResponse.text).to.equal(200);
    expect(verifyWithLeaf(postResponse.text).fingerprint256).to.equal(verifyWithLeaf(request.text).fingerprint256);
    const next = await requestPresentation(world.service, world.token, 'check');
    expect(next.payload['client_id']).to.not.equal(request.payload['client_id']);
  });

  it('is issued for the named hosts and relying party', async () => {
    registrar.parties.push({ id: 'party-2', name: 'Acme Shops' });
    const order = { keyChainId: undefined, certId: 'access', dns: ['a.example', 'b.example'], rpId: 'party-2' };
    const answer = await obtain(order);
    expect([answer.status, answer.body.relyingPartyId], answer.text).to.deep.equal([201, 'party-2']);
    const names = new X509Certificate(answer.body.crt[0]).subjectAltName;
    expect(names).to.equal('DNS:a.example, DNS:b.example');
  });

  it('is rejected for invalid input, without a call', async () => {
    expectInvalid(await obtain({ keyChainId: 'signing' }), 'keyChainId', 'other usages');
    expectInvalid(await obtain({ dns: ['a_b.example'] }), 'dns.0', 'host name');
    expectInvalid(await obtain({ dns: [] }), 'dns');
    expect(registrar.calls, 'the registrar was not called').to.deep.equal([]);
  });

  const invalidCertificates: [string, () => unknown, string][] = [
    ['for another key', () => (registrar.otherKey = newKey().jwk), 'not for this key'],
    ['that has expired', () => (registrar.accessCertificateExpiry = '2026-01-01T00:00:00Z'), 'expired'],
  ];
  for (const [description, change, message] of invalidCertificates) {
    it(`is not accepted ${description}`, async () => {
      const before = await keyChain();
      change();
      expectUnavailable(await obtain(), message);
      expect(await keyChain()).to.deep.equal(before);
    });
  }

  const crt = (text: string): RegistrarAnswer => {
    return (response) => response.writeHead(201).end(JSON.stringify({ id: 'x', crt: text }));
  };
  const registrarResponses: [string, RegistrarAnswer, string][] = [
    ['nothing', (response) => response.writeHead(201).end(), 'no registrar says'],
    ['garbage', (response) => response.writeHead(200).end('<html>'), 'no registrar says'],
    ['no certificate', crt('none'), 'as PEM'],
    ['a list of something', crt(`-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----`), 'not a cert'],
    ['the certificate of its CA', (r) => crt(caPem())(r, r.req), 'not for this key'],
    ['megabytes', (response) => response.writeHead(201).end(' '.repeat(2 ** 21)), 'too large'],
    ['a redirect', (response) => response.writeHead(307, { Location: '/api/x' }).end(), 'redirect'],
    ['status 502', (response) => response.writeHead(502).end(), 'status 502'],
    ['never', (response) => response.destroy(), 'could not be reached'],
  ];
  const caPem = () => `-----BEGIN CERTIFICATE-----\n${registrar.ca.certificate}\n-----END CERTIFICATE-----`;
  for (const [description, answer, message] of registrarResponses) {
    it(`is not issued when the registrar responds with ${description}`, async () => {
      const before = await keyChain();
      registrar.answers.set('/api/access-certificates', answer);
      expectUnavailable(await obtain(), message);
      expect(await keyChain()).to.deep.equal(before);
    });
  }

  it('is not issued when the registrar rejects the order', async () => {
    registrar.answers.set('/api/access-certificates', (response) => response.writeHead(403).end());
    expectInvalid(await obtain(), 'keyChainId', 'status 403');
  });
});
