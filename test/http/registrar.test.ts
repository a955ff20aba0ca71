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
/** Each of these asks the registrar something. */
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
    const written = await world.call('POST', CONFIG, registrar.login(secrets));
    expect(written.status, written.text).to.equal(201);
    const { createdAt, updatedAt, tenant, warnings, ...shown } = written.body;
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
    expect({ ...(await world.call('GET', CONFIG)).body, warnings }).to.deep.equal(written.body);
    expect(registrar.logins).to.have.length(1);

    const changed = await world.call('PATCH', CONFIG, { registrationCertificateDefaults: null });
    expect(changed.status, changed.text).to.equal(200);
    expect(changed.body).to.include({ registrationCertificateDefaults: null, hasClientSecret: true, createdAt });
    expect(changed.body.updatedAt > updatedAt).to.equal(true);
    const reset = await world.call('PATCH', CONFIG, { clientSecret: null });
    expect([reset.status, reset.body.hasClientSecret], reset.text).to.deep.equal([200, false]);
    const replaced = await world.call('POST', CONFIG, registrar.login({ username: 'other' }));
    expect(replaced.body).to.include({ username: 'other', createdAt });

    const removed = await world.call('DELETE', CONFIG);
    expect([removed.status, removed.body]).to.deep.equal([200, { id: 'default' }]);
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
    const wrong = { password: 'wrong-password-in-the-clear' };
    const posted = await world.call('POST', CONFIG, registrar.login(wrong));
    expectInvalid(posted, 'password', 'does not accept this username and password');
    const patched = await world.call('PATCH', CONFIG, wrong);
    expectInvalid(patched, 'password', 'does not accept this username and password');
    for (const { text } of [posted, patched]) expect(text).to.not.include(wrong.password);
    const client = await world.call('POST', CONFIG, registrar.login({ clientSecret: 'x' }));
    expectInvalid(client, 'password', 'does not accept this client');
    expect((await world.call('GET', CONFIG)).text).to.equal(before.text);
  });

  it('sends its password only to the intended server', async () => {
    await world.configure();
    const other = await TestRegistrar.start();
    expectInvalid(await world.call('PATCH', CONFIG, { oidcUrl: other.url }), 'password', 'send the');
    expect(other.logins).to.deep.equal([]);
    const again = { oidcUrl: other.url, password: REGISTRAR_PASSWORD };
    expect((await world.call('PATCH', CONFIG, again)).status).to.equal(200);
    expect(other.logins).to.have.length(1);
    await other.close();
  });

  it('is rejected if it cannot be tested', async () => {
    const elsewhere = (changes: object) => world.call('POST', CONFIG, registrar.login({ ...changes }));
    expectUnavailable(await elsewhere({ oidcUrl: 'http://127.0.0.1:9' }), 'could not be reached');
    expectInvalid(await elsewhere({ oidcUrl: 'http://127.0.0.2' }), 'oidcUrl', 'OUTBOUND_ALLOW');
    expectInvalid(await elsewhere({ oidcUrl: `${registrar.url}/` }), 'oidcUrl', 'another issuer');
    expectInvalid(await elsewhere({ oidcUrl: `${registrar.url}/none` }), 'oidcUrl');
    for (const missing of ['registrarUrl', 'oidcUrl', 'clientId', 'username', 'password']) {
      expectInvalid(await elsewhere({ [missing]: undefined }), missing);
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
      'with megabytes',
      '/.well-known',
      (response) => response.writeHead(200).end('x'.repeat(2 ** 21)),
      (answer) => expectInvalid(answer, 'oidcUrl', 'too large'),
    ],
    [
      'with garbage',
      '/token',
      (response) => response.writeHead(200).end('<html>'),
      (answer) => expectInvalid(answer, 'oidcUrl', 'returned no bearer token'),
    ],
    [
      'with a token of another kind',
      '/token',
      (response) => response.writeHead(200).end('{"access_token":"a","token_type":"DPoP"}'),
      (answer) => expectInvalid(answer, 'oidcUrl', 'returned no bearer token'),
    ],
    [
      'with a token that would be a header of its own',
      '/token',
      (response) => response.writeHead(200).end('{"access_token":"a\\r\\nX: y","token_type":"Bearer"}'),
      (answer) => expectInvalid(answer, 'oidcUrl', 'returned no bearer token'),
    ],
    ['that it is out of order', '/token', (response) => response.writeHead(503).end(), (answer) => expectUnavailable(answer, 'status 503')],
    [
      'with an error that quotes the password',
      '/token',
      (response) => response.writeHead(400).end(JSON.stringify({ error: REGISTRAR_PASSWORD })),
      (answer) => expectInvalid(answer, 'password', 'answered the login with status 400'),
    ],
  ];
  for (const [what, path, answer, expected] of provider) {
    it(`is rejected when the provider answers ${what}`, async () => {
      registrar.answers.set(path, answer);
      const refused = await world.call('POST', CONFIG, registrar.login());
      expected(refused);
      expect(refused.text).to.not.include(REGISTRAR_PASSWORD);
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
    const changed = await world.call('PATCH', CONFIG, { registrationCertificateDefaults: null });
    expect(changed.status, changed.text).to.equal(200);
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
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => obtain(world)));
    expect(answers.map(({ status }) => status)).to.deep.equal([201, 201, 201, 201, 201]);
    expect(registrar.logins, 'five seconds before the end').to.have.length(1);
  });

  it('is repeated once when its token is rejected', async () => {
    await world.configure();
    registrar.revokeTokens();
    expect((await obtain(world)).status).to.equal(201);
    expect(registrar.logins).to.have.length(2);
    registrar.answers.set('/api', (response) => response.writeHead(401).end());
    registrar.calls.length = 0;
    expectInvalid(await obtain(world), '', 'status 401');
    expect(registrar.calls, 'not for ever').to.have.length(2);
  });

  it('belongs to one tenant, even if another one has the same settings', async () => {
    const other = (await createTenant(world.service, 'other')).token;
    await world.configure();
    await world.configure({}, other);
    const [mine, theirs] = registrar.logins.map(({ token }) => token);
    expect(mine).to.not.equal(theirs);
    const used = async (token: string) => {
      registrar.calls.length = 0;
      expect((await obtain(world, token)).status).to.equal(201);
      return new Set(registrar.calls.map((call) => call.token));
    };
    expect(await used(world.token)).to.deep.equal(new Set([mine]));
    expect(await used(other)).to.deep.equal(new Set([theirs]));
    expect(await used(world.token)).to.deep.equal(new Set([mine]));
    expect(registrar.logins).to.have.length(2);
    await world.call('DELETE', CONFIG, undefined, other);
    expect((await obtain(world, other)).status, 'no longer').to.equal(409);
    expect(await used(world.token)).to.deep.equal(new Set([mine]));
  });

  it('is not used after it was changed', async () => {
    await world.configure();
    await world.configure({ username: 'other' });
    registrar.calls.length = 0;
    await obtain(world);
    const [, latest] = registrar.logins;
    expect(latest?.username).to.equal('other');
    expect(new Set(registrar.calls.map(({ token }) => token))).to.deep.equal(new Set([latest?.token]));
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
    const seen: string[] = [];
    const keep = async (...request: Parameters<RegistrarWorld['call']>) => seen.push((await world.call(...request)).text);
    await keep('POST', CONFIG, registrar.login({ clientSecret: REGISTRAR_SECRET }));
    await keep('GET', CONFIG);
    await keep('PATCH', CONFIG, { password: REGISTRAR_PASSWORD });
    await keep('POST', CONFIG, registrar.login({ clientSecret: REGISTRAR_SECRET, username: 5 }));
    await keep('POST', '/registrar/access-certificate', { keyChainId: 'access' });
    await keep('POST', '/registrar/registration-certificate', { body: ORDER });
    registrar.answers.set('/token', (response, request) => response.destroy(new Error(String(request.headers))));
    await keep('POST', CONFIG, registrar.login({ clientSecret: REGISTRAR_SECRET }));
    registrar.answers.set('/api', (response) => response.writeHead(500).end(REGISTRAR_PASSWORD));
    await keep('POST', '/registrar/registration-certificate', { body: ORDER });

    const tokens = registrar.logins.map(({ token }) => token);
    expect(tokens).to.have.length.greaterThan(1);
    const secrets = [REGISTRAR_PASSWORD, REGISTRAR_SECRET, ...tokens];
    const file = database.url.slice('sqlite:'.length);
    const files = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)));
    const bytes = Buffer.concat(files.map((name) => readFileSync(join(dirname(file), name))));
    expect(bytes.includes('registrar_configurations'), 'this is the right file').to.equal(true);
    for (const secret of secrets) {
      expect(bytes.includes(secret), 'bytes').to.equal(false);
      expect(seen.join('\n'), 'answers').to.not.include(secret);
      expect(lines.join('\n'), 'log').to.not.include(secret);
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
    const [{ body: sent } = { body: undefined }] = registrar.callsTo('/access-certificates');
    expect(sent)
      .to.have.keys('publicKey', 'dns', 'rpId')
      .and.to.deep.include({ dns: ['localhost'], rpId: 'party-1' });
    const { kty, crv, x, y } = createPublicKey(sent?.['publicKey']).export({ format: 'jwk' });
    expect(before.activeKey).to.include({ kty, crv, x, y });

    const { id, relyingPartyId, keyChainId, certId, crt, keyChain: chain } = answer.body;
    expect(id).to.be.a('string').with.length.greaterThan(10);
    expect([relyingPartyId, keyChainId, certId]).to.deep.equal(['party-1', 'access', 'access']);
    expect(chain).to.deep.equal(await keyChain());
    expect(chain).to.deep.include({ rootCertificate: null, activeKey: before.activeKey });
    expect(chain.previousCertificate).to.equal(before.activeCertificate);
    expect(crt, 'without the CA, which wallets have').to.have.length(1);

    const asked = await requestPresentation(world.service, world.token, 'check');
    const leaf = verifyWithLeaf(asked.text);
    expect(asked.header['x5c']).to.have.length(1);
    expect(leaf.fingerprint256).to.equal(new X509Certificate(crt[0]).fingerprint256);
    expect(leaf.checkIssued(new X509Certificate(Buffer.from(registrar.ca.certificate, 'base64')))).to.equal(true);
    const hash = createHash('sha256').update(leaf.raw).digest('base64url');
    expect(asked.payload['client_id']).to.equal(`x509_hash:${hash}`);
  });

  it('does not affect requests that were created with the previous one', async () => {
    const asked = await requestPresentation(world.service, world.token, 'check');
    expect((await obtain()).status).to.equal(201);
    const again = await world.service.call('GET', asked.url);
    expect([again.status, again.text]).to.deep.equal([200, asked.text]);
    const posted = await world.service.call('POST', asked.url, { form: { wallet_nonce: 'of-the-wallet' } });
    expect(posted.status, posted.text).to.equal(200);
    expect(verifyWithLeaf(posted.text).fingerprint256).to.equal(verifyWithLeaf(asked.text).fingerprint256);
    const next = await requestPresentation(world.service, world.token, 'check');
    expect(next.payload['client_id']).to.not.equal(asked.payload['client_id']);
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
    expect(registrar.calls, 'the registrar has not been asked').to.deep.equal([]);
  });

  const bad: [string, () => unknown, string][] = [
    ['for another key', () => (registrar.otherKey = newKey().jwk), 'not for this key'],
    ['that has expired', () => (registrar.accessCertificateExpiry = '2026-01-01T00:00:00Z'), 'expired'],
  ];
  for (const [what, bend, message] of bad) {
    it(`is not accepted ${what}`, async () => {
      const before = await keyChain();
      bend();
      expectUnavailable(await obtain(), message);
      expect(await keyChain()).to.deep.equal(before);
    });
  }

  const crt = (text: string): RegistrarAnswer => {
    return (response) => response.writeHead(201).end(JSON.stringify({ id: 'x', crt: text }));
  };
  const answers: [string, RegistrarAnswer, string][] = [
    ['nothing', (response) => response.writeHead(201).end(), 'no registrar says'],
    ['garbage', (response) => response.writeHead(200).end('<html>'), 'no registrar says'],
    ['no certificate', crt('none'), 'as PEM'],
    ['a list of something', crt(`-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----`), 'not a cert'],
    ['the certificate of its CA', (r) => crt(caPem())(r, r.req), 'not for this key'],
    ['megabytes', (response) => response.writeHead(201).end(' '.repeat(2 ** 21)), 'too large'],
    ['a redirect', (response) => response.writeHead(307, { Location: '/api/x' }).end(), 'redirect'],
    ['that it is out of order', (response) => response.writeHead(502).end(), 'status 502'],
    ['never', (response) => response.destroy(), 'could not be reached'],
  ];
  const caPem = () => `-----BEGIN CERTIFICATE-----\n${registrar.ca.certificate}\n-----END CERTIFICATE-----`;
  for (const [what, answer, message] of answers) {
    it(`is not issued when the registrar answers ${what}`, async () => {
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
