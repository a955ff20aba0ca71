import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect } from 'chai';
import sinon from 'sinon';
import { Store } from '../../application/ports/store.ts';
import { currentRelease } from '../../bootstrap/wiring/release.ts';
import { freePort } from '../demo/process.ts';
import { Backend } from '../support/backend.ts';
import { httpDatabases } from '../support/databases.ts';
import { decode } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';

describe('service', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('describes itself at the root', async () => {
    const { status, body } = await service.call('GET', '/');
    expect(status).to.equal(200);
    expect(body).to.have.all.keys('name', 'version', 'commit', 'documentation', 'issuerUrlTemplate');
    expect(body).to.include({
      ...currentRelease(),
      documentation: `${service.address}/docs`,
      issuerUrlTemplate: `${service.address}/{tenant}`,
    });
  });

  it('reports the version of package.json and the commit of the clone', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(currentRelease().version).to.equal(version);
    expect(currentRelease().commit ?? '0'.repeat(40)).to.match(/^[0-9a-f]{40}$/);
  });

  it('reports its health without a login', async () => {
    const { status, body } = await service.call('GET', '/health');
    const up = {
      database: { status: 'up' },
      clock: { status: 'up' },
      history: { status: 'up' },
      'wallet-status-lists': { status: 'up' },
      'trust-lists': { status: 'up' },
    };
    expect([status, body]).to.deep.equal([200, { ...currentRelease(), status: 'ok', info: up, error: {}, details: up }]);
  });

  for (const { name, open } of httpDatabases()) {
    it(`reports failed components in the same format when ${name} is unavailable, and keeps running`, async function () {
      const database = await open();
      if (database === undefined) return this.skip();
      const other = await startTestService({ DATABASE_URL: database.url });
      const root = await other.rootToken();
      expect((await other.call('GET', '/health')).status).to.equal(200);
      // A file that is open cannot be taken away, so the fault is made where it would show.
      if (name === 'sqlite') sinon.stub(other.service.container.get(Store), 'ping').rejects(new Error('sqlite'));
      else await database.drop();
      for (let i = 0; i < 2; i++) {
        const { status, body, text, headers } = await other.call('GET', '/health');
        const down = { database: { status: 'down' } };
        const up = {
          clock: { status: 'up' },
          history: { status: 'up' },
          'wallet-status-lists': { status: 'up' },
          'trust-lists': { status: 'up' },
        };
        expect([status, body]).to.deep.equal([
          503,
          { ...currentRelease(), status: 'error', info: up, error: down, details: { ...down, ...up } },
        ]);
        expect(text, 'without internals').to.not.match(/postgres|sqlite|vidimus_test|Error/);
        expect(headers.get('cache-control')).to.equal('no-store');
      }
      if (name === 'sqlite') {
        await other.close();
        return database.drop();
      }
      const failing = await other.call('GET', '/tenant', { token: root });
      expect(failing.status).to.be.oneOf([500, 503]);
      expect(failing.headers.get('content-type')).to.equal('application/problem+json');
      expect(failing.text).to.not.match(/select|sqlite|vidimus_test|stack/);
      await other.close();
    });
  }

  describe('every answer', () => {
    const root = () => service.rootToken();

    it('has its own id, and the id of the caller as well', async () => {
      const ask = async (id: string) => {
        const { headers } = await service.call('GET', '/', { headers: { 'X-Request-Id': id } });
        return { own: headers.get('x-request-id'), caller: headers.get('x-caller-request-id') };
      };
      const asked = [await ask('trace-1.a_B'), await ask('trace-1.a_B'), await ask('<script>'), await ask('a b')];
      expect(asked.map(({ caller }) => caller)).to.deep.equal(['trace-1.a_B', 'trace-1.a_B', null, null]);
      expect((await ask('x'.repeat(65))).caller).to.equal(null);
      for (const { own } of asked) expect(own).to.match(/^[a-z0-9-]{5,64}$/);
      expect(new Set(asked.map(({ own }) => own)).size, 'nobody can give two requests one id').to.equal(4);
      const problem = await service.call('GET', '/nowhere', { headers: { 'X-Request-Id': 'mine' } });
      expect(problem.body.requestId).to.equal(problem.headers.get('x-request-id')).and.not.equal('mine');
    });

    it('has headers that protect browsers, and no name of the software', async () => {
      for (const path of ['/', '/health', '/nowhere', '/tenant', '/docs', '/acme/nonce']) {
        const { headers } = await service.call('GET', path);
        expect(headers.get('x-content-type-options'), path).to.equal('nosniff');
        expect(headers.get('x-frame-options'), path).to.equal('DENY');
        expect(headers.get('referrer-policy'), path).to.equal('no-referrer');
        expect(headers.get('content-security-policy'), path).to.include("frame-ancestors 'none'");
        expect(headers.get('x-powered-by'), path).to.equal(null);
        expect(headers.get('server'), path).to.equal(null);
      }
    });

    it('with an error is problem+json', async () => {
      const cases: [string, string, object, number, string][] = [
        ['GET', '/nowhere', {}, 404, 'not_found'],
        ['GET', '/tenant/x/y/z', {}, 404, 'not_found'],
        ['PUT', '/tenant', {}, 405, 'method_not_allowed'],
        ['DELETE', '/oauth2/nothing', {}, 404, 'not_found'],
        ['GET', '/tenant', {}, 401, 'unauthenticated'],
        ['GET', '/session', { token: await root() }, 403, 'forbidden'],
        ['POST', '/tenant', { token: await root(), json: [] }, 400, 'invalid_input'],
        ['POST', '/tenant', { token: await root(), form: { id: 'x' } }, 415, 'unsupported_media_type'],
        ['POST', '/tenant', { token: await root(), json: { id: 'x'.repeat(70_000) } }, 413, 'too_large'],
        ['GET', '/tenant/%E0%A4%A', {}, 404, 'not_found'],
      ];
      for (const [method, path, options, status, code] of cases) {
        const answer = await service.call(method, path, options);
        const what = `${method} ${path} ${answer.text}`;
        expect([answer.status, answer.body.code], what).to.deep.equal([status, code]);
        expect(answer.headers.get('content-type'), what).to.equal('application/problem+json');
        expect(answer.body).to.include.all.keys('type', 'title', 'status', 'detail', 'code', 'requestId');
        expect(answer.body.status).to.equal(status);
        expect(answer.body.requestId).to.equal(answer.headers.get('x-request-id'));
      }
    });

    it('to an unreadable body contains the reason', async () => {
      const token = await root();
      const detail = async (options: object) => (await service.call('POST', '/tenant', { token, ...options })).body.detail;
      const headers = { 'Content-Type': 'application/json' };
      expect(await detail({ text: '', headers })).to.include('the body is empty');
      expect(await detail({ text: '{"id":"a","id":"b","name":"x","roles":[]}', headers })).to.equal(
        'the body has the property "id" twice in one object (line 1, column 11)',
      );
      for (const text of ['[]', 'null', '1', '"x"', '[{"a":1,"a":2}]']) {
        expect(await detail({ text, headers }), text).to.equal('the body must be a JSON object');
      }
      expect(await detail({ json: { id: 'x'.repeat(70_000) } })).to.equal('this address takes at most 65536 bytes');
      const xml = { text: '<a/>', headers: { 'Content-Type': 'text/xml' } };
      const wanted = await service.call('POST', '/oauth2/token', xml);
      expect(wanted.body.error_description).to.include('application/json or application/x-www-form-urlencoded');
    });

    it('to another method of a fixed address is not that of a resource with this name', async () => {
      const token = await service.rootToken();
      for (const [method, path, allow] of [
        ['GET', '/key-chain/import', 'POST'],
        ['DELETE', '/key-chain/providers', 'GET'],
        ['GET', '/session/revoke', 'POST'],
      ] as const) {
        const answer = await service.call(method, path, { token });
        expect([answer.status, answer.headers.get('allow')], path).to.deep.equal([405, allow]);
      }
    });

    it('to an address with a trailing slash is 404', async () => {
      const token = await service.rootToken();
      for (const path of ['/tenant/', '/session/', '/client/', '/health/', '/oauth2/token/', '/acme/nonce/']) {
        for (const method of ['GET', 'POST']) {
          expect((await service.call(method, path, { token })).status, `${method} ${path}`).to.equal(404);
        }
      }
    });

    it('to an unsupported method of an address names the supported ones', async () => {
      const allow = async (method: string, path: string) => {
        const { status, headers } = await service.call(method, path);
        return [status, headers.get('allow')?.split(', ').sort().join(' ')];
      };
      expect(await allow('PUT', '/tenant')).to.deep.equal([405, 'GET POST']);
      expect(await allow('POST', '/tenant/acme')).to.deep.equal([405, 'DELETE GET PATCH']);
      expect(await allow('GET', '/oauth2/token')).to.deep.equal([405, 'POST']);
      expect(await allow('GET', '/acme/nonce')).to.deep.equal([405, 'POST']);
      expect(await allow('POST', '/client/token')).to.deep.equal([405, 'DELETE GET PATCH']);
      expect(await allow('PUT', '/issuer/nonce'), 'no tenant').to.deep.equal([404, undefined]);
    });
  });

  it('finishes open requests before it stops, accepts no new ones and does not wait for idle connections', async () => {
    const backend = await Backend.start();
    const other = await startTestService();
    const { token } = await createTenant(other, 'acme');
    const post = (path: string, json: object) => other.call('POST', path, { token, json });
    let release = () => {};
    const called = new Promise<void>((resolve) => {
      backend.on('/claims', (response) => {
        release = () => response.end(JSON.stringify({ card: { name: 'Ada' } }));
        resolve();
      });
    });
    await post('/issuer/credentials', {
      id: 'card',
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
      vct: 'urn:card:1',
      claimsWebhook: { url: `${backend.url}/claims` },
      statusManagement: true,
    });
    await post('/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    const ids = { credentialConfigurationIds: ['card'] };
    const offer = await post('/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', ...ids });
    const wallet = new RawWallet(other, 'acme');
    const running = wallet.request(await wallet.accessToken(offer.body.uri), 'card');
    await called;
    const began = performance.now();
    const closing = other.service.close();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const refused = await fetch(`${other.address}/health`).then(
      () => 'answered',
      () => 'refused',
    );
    expect(refused).to.equal('refused');
    release();
    expect((await running).status).to.equal(200);
    await closing;
    // A connection that is kept open would hold the stop up for 65 seconds.
    expect(performance.now() - began).to.be.lessThan(30_000);
    await backend.close();
  });

  for (const [environment, timeout] of [
    [{}, 65],
    [{ KEEP_ALIVE_SECONDS: '620' }, 620],
  ] as const)
    it(`announces ${timeout} seconds for idle connections with ${JSON.stringify(environment)}`, async () => {
      const other = await startTestService(environment);
      const { headers } = await other.call('GET', '/health/live');
      expect(headers.get('keep-alive')).to.equal(`timeout=${timeout}`);
      await other.close();
    });

  describe('behind a path prefix', () => {
    let behind: TestService;
    let token: string;

    before(async () => {
      const port = await freePort(createServer);
      behind = await startTestService({ PORT: String(port), PUBLIC_URL: `http://localhost:${port}/credentials/v1` });
      ({ token } = await createTenant(behind, 'acme'));
    });
    after(() => behind.close());

    it('publishes its addresses with the prefix and serves them there', async () => {
      const { body } = await behind.call('GET', '/');
      expect(body.documentation).to.equal(`${behind.address}/docs`);
      expect((await behind.call('GET', '/openapi.json')).body.servers[0].url).to.equal(behind.address);
      const page = (await behind.call('GET', '/docs')).text;
      expect(page).to.include('src="/credentials/v1/docs/start.js"');
      const { origin, pathname } = new URL(behind.address);
      for (const name of ['openid-credential-issuer', 'oauth-authorization-server']) {
        const inserted = await behind.call('GET', `${origin}/.well-known/${name}${pathname}/acme`);
        const suffixed = await behind.call('GET', `/acme/.well-known/${name}`);
        expect([inserted.status, suffixed.status], name).to.deep.equal([200, 200]);
        expect(inserted.text).to.equal(suffixed.text);
        const { credential_issuer: vci, issuer } = inserted.body;
        expect(vci ?? issuer).to.equal(`${behind.address}/acme`);
      }
    });

    it('is found by a wallet with only the link', async () => {
      const post = (path: string, json: object) => behind.call('POST', path, { token, json });
      await post('/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
      await post('/issuer/credentials', {
        id: 'card',
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
        vct: 'urn:card:1',
        claims: { name: 'Ada' },
        statusManagement: true,
      });
      const offer = await post('/issuer/offer', {
        response_type: 'uri',
        flow: 'pre_authorized_code',
        credentialConfigurationIds: ['card'],
      });
      const [credential] = await new Openid4vcWallet().accept(offer.body.uri);
      const { iss, status } = decode(credential?.text ?? '').payload;
      expect(iss).to.equal(`${behind.address}/acme`);
      expect(status.status_list.uri).to.include(`${behind.address}/acme/status-list/`);
      expect((await behind.call('GET', status.status_list.uri)).status).to.equal(200);
    });

    it('returns the same errors there', async () => {
      const long = await behind.call('POST', '/acme/token', { form: { grant_type: 'x'.repeat(70_000) } });
      expect([long.status, long.body.error], long.text).to.deep.equal([413, 'invalid_request']);
      const wrong = await behind.call('GET', '/acme/token');
      expect([wrong.status, wrong.headers.get('allow'), wrong.body.error]).to.deep.equal([405, 'POST', 'invalid_request']);
      expect((await behind.call('GET', '/nowhere')).body.code).to.equal('not_found');
    });
  });
});

const CANARY = 'Canary-of-the-settings-0123456789-abcdef';

describe('settings of a running service', () => {
  let service: TestService;
  let root: string;

  before(async () => {
    service = await startTestService({
      MASTER_SECRET: `${CANARY} master`,
      METRICS_TOKEN: `${CANARY} metrics`,
      KMS_CONFIG: JSON.stringify({ default: 'local', providers: { local: { type: 'local' } } }),
      SESSION_TTL: '7200',
    });
    root = await service.rootToken();
  });
  after(() => service.close());

  const list = (query = '', token = root) => service.call('GET', `/settings${query}`, { token });
  const one = async (name: string) => (await list('?limit=500')).body.find((setting: { name: string }) => setting.name === name);

  it('are returned with their source and without secrets', async () => {
    const { status, text } = await list();
    expect(status).to.equal(200);
    expect(text).not.to.include(CANARY).and.not.include(ROOT.secret);
    expect(await one('SESSION_TTL')).to.include({ value: '7200', isSet: true, source: 'environment' });
    expect(await one('STATUS_TTL')).to.include({ value: '3600', isSet: false, source: 'default' });
    for (const name of ['MASTER_SECRET', 'METRICS_TOKEN', 'AUTH_CLIENT_SECRET'])
      expect(await one(name), name).to.include({ value: null, isSet: true, isSecret: true });
    expect(await one('KMS_CONFIG'), 'a text may hold secrets').to.include({ value: null, isSet: true });
    expect(await one('OIDC_CLIENT_SECRET')).to.include({ value: null, isSet: false, isSecret: true });
  });

  it('cannot be searched by the value of a secret', async () => {
    expect((await list(`?q=${encodeURIComponent(CANARY)}`)).body).to.deep.equal([]);
    expect((await list('?q=master_SECRET&source=environment')).body.map(({ name }: { name: string }) => name)).to.include('MASTER_SECRET');
  });

  it('are unavailable to clients of tenants, regardless of their roles', async () => {
    const { token } = await createTenant(service, 'acme');
    expect((await list('', token)).status).to.equal(403);
  });

  for (const query of ['?source=registry', '?q=', `?q=${'x'.repeat(201)}`])
    it(`are rejected with the query ${query.slice(0, 20)}`, async () => {
      expect((await list(query)).status).to.equal(400);
    });
});
