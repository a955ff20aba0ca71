import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { processDisclosures } from '../../domain/formats/sd-jwt/disclosures.ts';
import { parseSdJwt } from '../../domain/formats/sd-jwt/parse.ts';
import { freePort } from '../demo/process.ts';
import { Backend } from '../support/backend.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { issue } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { readableClaims } from '../wallets/openid4vc/credentials.ts';

const KEY = 'the-secret-key-of-the-backend';
const auth = { type: 'apiKey', config: { headerName: 'X-Backend-Key', value: KEY } };

describe('the claims webhook', () => {
  let service: TestService;
  let backend: Backend;
  let tenant: { id: string; token: string };
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));

  before(async () => {
    backend = await Backend.start();
    const kept = { DATA_FOLDER: folder, PORT: String(await freePort(createServer)) };
    service = await startTestService({ ...kept, OUTBOUND_ALLOW: '127.0.0.1/32,10.0.0.1' });
    tenant = await createTenant(service, 'acme');
    const base = {
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
      vct: 'urn:card:1',
      disclosureFrame: { _sd: ['name'] },
      schema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
    };
    const webhook = { url: `${backend.url}/configured`, auth };
    await write({ ...base, id: 'static', claims: { name: 'static' } });
    await write({ ...base, id: 'hooked', claims: { name: 'static' }, claimsWebhook: webhook });
    await write({ ...base, id: 'inside', claimsWebhook: { url: 'http://10.0.0.1/claims' } });
    await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    // The operator takes an address back that was allowed when it was configured.
    await service.close();
    service = await startTestService(kept);
  });
  after(async () => {
    await service.close();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    backend.clearCalls();
    backend.on('/configured', { json: { hooked: { name: 'configured' } } });
    backend.on('/named', { json: { hooked: { name: 'named' }, static: { name: 'named' } } });
  });

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  const write = async (json: object) => {
    const answer = await call('POST', '/issuer/credentials', json);
    expect(answer.status, answer.text).to.equal(201);
  };
  const nameIn = async (configurationId: string, source?: object) => {
    const offer = source === undefined ? {} : { credentialClaims: { [configurationId]: source } };
    return readableClaims((await issue(service, tenant, configurationId, offer)).text)['name'];
  };

  it('is called for an offer without claims; the webhook of the offer has priority over the configured one', async () => {
    const named = { type: 'webhook', webhook: { url: `${backend.url}/named`, auth } };
    expect(await nameIn('hooked', { type: 'inline', claims: { name: 'inline' } })).to.equal('inline');
    expect(backend.calls).to.have.length(0);
    expect(await nameIn('hooked', named)).to.equal('named');
    expect(backend.calls.map(({ path }) => path)).to.deep.equal(['/named']);
    expect(await nameIn('hooked')).to.equal('configured');
    expect(await nameIn('static')).to.equal('static');
    expect(await nameIn('static', named)).to.equal('named');
    expect(backend.calls.map(({ path }) => path)).to.deep.equal(['/named', '/configured', '/named']);
  });

  it('is called once, with the published body, its key and a delivery id', async () => {
    const { session } = await issue(service, tenant, 'hooked');
    expect(backend.calls).to.have.length(1);
    const [asked] = backend.calls;
    expect(asked?.body).to.deep.equal({ session, credential_configuration_id: 'hooked', identity: {}, credentials: [] });
    expect(asked?.headers).to.include({ 'content-type': 'application/json', 'x-backend-key': KEY });
    const { status, deliveries, failure } = (await call('GET', `/session/${session}`)).body;
    expect([status, failure]).to.deep.equal(['completed', undefined]);
    expect(deliveries).to.have.length(1);
    expect(deliveries[0]).to.include({ webhook: 'claims', result: 'delivered' });
    expect(asked?.headers['idempotency-key']).to.equal(deliveries[0].id);
  });

  it('gets no API key unless one is configured', async () => {
    await nameIn('static', { type: 'webhook', webhook: { url: `${backend.url}/named` } });
    expect(backend.calls[0]?.headers).to.not.have.any.keys('x-backend-key', 'authorization');
  });

  /** Tries to collect, and reports what wallet and operator see. */
  async function refusal(configurationId: string, afterOffer?: () => Promise<unknown>) {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [configurationId] };
    const { uri, session } = (await call('POST', '/issuer/offer', json)).body;
    await afterOffer?.();
    const wallet = new RawWallet(service, tenant.id);
    const accessToken = await wallet.accessToken(uri);
    const first = await wallet.request(accessToken, configurationId);
    const calls = backend.calls.length;
    const second = await wallet.request(accessToken, configurationId);
    expect(backend.calls.length, 'the backend is not asked again').to.equal(calls);
    expect(second.status).to.equal(400);
    return { first, calls, seen: (await call('GET', `/session/${session}`)).body };
  }

  type Case = [string, (response: ServerResponse) => void, RegExp];
  const json = (response: ServerResponse, value: unknown) => response.end(JSON.stringify(value));
  const cases: Case[] = [
    ['garbage', (response) => response.end('<html>sorry</html>'), /JSON/],
    ['nothing', (response) => response.end(), /object/],
    ['an error', (response) => response.writeHead(500).end('{"secret":"of the backend"}'), /500/],
    ['a refusal', (response) => response.writeHead(404).end(), /404/],
    ['a redirect', (response) => response.writeHead(307, { Location: '/named' }).end(), /redirect/],
    ['an array', (response) => json(response, [{ name: 'x' }]), /object/],
    ['claims of another configuration', (response) => json(response, { static: { name: 'x' } }), /hooked/],
    ['claims that are not an object', (response) => json(response, { hooked: 'x' }), /hooked/],
    ['a deferral without end', (response) => json(response, { deferred: true, interval: 1e9 }), /interval/],
    ['claims against the schema', (response) => json(response, { hooked: { name: 7 } }), /schema.*name/],
    ['a claim missing', (response) => json(response, { hooked: {} }), /schema/],
    ['a claim of the protocol', (response) => json(response, { hooked: { name: 'x', cnf: {} } }), /cnf|set by the issuer/],
    ['too much', (response) => json(response, { hooked: { name: 'x'.repeat(1_300_000) } }), /KiB/],
    ['a broken connection', (response) => response.destroy(), /reached/],
  ];
  for (const [what, answer, reason] of cases) {
    it(`fails the session after one attempt when it answers with ${what}`, async () => {
      backend.on('/configured', answer);
      const { first, calls, seen } = await refusal('hooked');
      expect(calls, 'attempts').to.equal(1);
      expect([first.status, first.body.error]).to.deep.equal([400, 'credential_request_denied']);
      expect(first.text, 'the wallet is told no reason').to.not.match(reason).and.not.include('webhook');
      expect(seen.status).to.equal('failed');
      expect(seen.failure.code).to.equal('claims_unavailable');
      expect(seen.failure.message).to.match(reason);
      expect(seen.deliveries).to.have.length(1);
      expect(seen.deliveries[0]).to.include({ webhook: 'claims', result: 'failed' });
      expect(seen.deliveries[0].detail).to.match(reason);
      expect(seen.deliveries[0].id).to.equal(backend.calls[0]?.headers['idempotency-key']);
      expect(JSON.stringify(seen), 'values stay out').to.not.match(/of the backend|xxxx/);
    });
  }

  it('fails the session without a call if the address may not be called', async () => {
    const { first, calls, seen } = await refusal('inside');
    expect(calls).to.equal(0);
    expect([first.status, first.body.error]).to.deep.equal([400, 'credential_request_denied']);
    expect(first.text).to.not.include('10.0.0.1');
    expect([seen.status, seen.deliveries.length]).to.deep.equal(['failed', 1]);
    expect(seen.failure.message).to.match(/is a blocked address/);
  });

  it('fails the session if static claims no longer match the schema', async () => {
    const { first, seen } = await refusal('static', () => call('PATCH', '/issuer/credentials/static', { claims: { name: 7 } }));
    await call('PATCH', '/issuer/credentials/static', { claims: { name: 'static' } });
    expect([first.status, first.body.error]).to.deep.equal([400, 'credential_request_denied']);
    expect([seen.status, seen.failure.code]).to.deep.equal(['failed', 'claims_unavailable']);
    expect(seen.failure.message).to.match(/schema.*name/);
  });

  describe('the API key', () => {
    const stored = async () => (await call('GET', '/issuer/credentials/hooked')).body;

    it('is never shown, and stays when the masked value is written back', async () => {
      const shown = await stored();
      expect(shown.claimsWebhook.auth.config).to.deep.equal({ headerName: 'X-Backend-Key', value: '***' });
      const { tenant: _tenant, createdAt: _created, updatedAt: _updated, certId: _certId, ...body } = shown;
      expect((await call('POST', '/issuer/credentials', body)).status).to.equal(201);
      const change = { claimsWebhook: shown.claimsWebhook, description: 'again' };
      expect((await call('PATCH', '/issuer/credentials/hooked', change)).status).to.equal(200);
      await issue(service, tenant, 'hooked');
      expect(backend.calls[0]?.headers['x-backend-key']).to.equal(KEY);
    });

    it('is dropped when the address or the header changes', async () => {
      const { claimsWebhook } = await stored();
      const moved = { ...claimsWebhook, url: `${backend.url}/elsewhere` };
      const renamed = { ...claimsWebhook, auth: { type: 'apiKey', config: { headerName: 'X', value: '***' } } };
      for (const webhook of [moved, renamed]) {
        const answer = await call('PATCH', '/issuer/credentials/hooked', { claimsWebhook: webhook });
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.errors[0].path).to.equal('claimsWebhook.auth.config.value');
      }
      expect((await stored()).claimsWebhook).to.deep.equal(claimsWebhook);
    });

    it('appears in no response to an administrator', async () => {
      const source = { type: 'webhook', webhook: { url: `${backend.url}/named`, auth } };
      const { session } = await issue(service, tenant, 'hooked', { credentialClaims: { hooked: source } });
      const answers = [
        await call('GET', '/issuer/credentials'),
        await call('GET', '/issuer/credentials/hooked'),
        await call('PATCH', '/issuer/credentials/hooked', { description: 'new' }),
        await call('GET', '/session?limit=500'),
        await call('GET', `/session/${session}`),
      ];
      for (const answer of answers) {
        expect(answer.status).to.equal(200);
        expect(answer.text).to.not.include(KEY);
      }
      expect(answers[4]?.body.parsedWebhook.auth.config.value).to.equal('***');
    });
  });
});

const JPEG = '/9j/4AAQSkZJRg==';
const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  schema: {
    type: 'object',
    properties: {
      name: { type: 'string' },
      title: { type: 'string' },
      picture: { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/jpeg' },
    },
  },
  disclosureFrame: { _sd: ['name', 'title', 'picture'] },
};

describe('credential schema for claims', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await createResource(service, token, '/issuer/credentials', CARD);
    wallet = new RawWallet(service, 'acme');
  });
  after(() => service.close());

  const offering = (claims: object) => ({ ...offerBody('card'), credentialClaims: { card: { type: 'inline', claims } } });
  const issued = async (claims: object) => {
    const { uri } = await createResource(service, token, '/issuer/offer', offering(claims));
    const answer = await wallet.request(await wallet.accessToken(uri), 'card');
    expect(answer.status, answer.text).to.equal(200);
    const { issuer, disclosures } = parseSdJwt(answer.body.credentials[0].credential);
    const digests = issuer.payload['_sd'] as readonly string[];
    return { digests, disclosures, claims: processDisclosures(issuer.payload, disclosures).claims };
  };

  it('yields the same number of digests for all holders, regardless of missing claims', async () => {
    const all = await issued({ name: 'Ada', title: 'Countess', picture: JPEG });
    const some = await issued({ name: 'Grace' });
    const none = await issued({});
    expect([all, some, none].map(({ digests }) => new Set(digests).size)).to.deep.equal([3, 3, 3]);
    expect([all, some, none].map(({ disclosures }) => disclosures.length)).to.deep.equal([3, 1, 0]);
    expect(some.claims).to.include({ name: 'Grace' }).and.not.have.any.keys('title', 'picture');
  });

  it('converts data URIs to bytes', async () => {
    const bare = await issued({ name: 'Ada', picture: JPEG });
    expect(bare.claims).to.include({ picture: `data:image/jpeg;base64,${JPEG}`, name: 'Ada' });
    const own = await issued({ picture: 'data:image/png;base64,AAEC' });
    expect(own.claims).to.include({ picture: 'data:image/png;base64,AAEC' });
  });

  it('rejects a text that is not bytes, with its path and without the text', async () => {
    const json = offering({ name: 'Ada', picture: 'no picture at all' });
    const answer = await service.call('POST', '/issuer/offer', { token, json });
    expect([answer.status, answer.body.errors[0].path], answer.text).to.deep.equal([400, 'credentialClaims.card.claims.picture']);
    expect(answer.text).to.not.include('no picture');
  });
});
