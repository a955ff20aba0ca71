import { createServer } from 'node:net';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { parseSamples, sumSamples } from '../support/metrics.ts';
import { type HeldCredential, Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { CapturedLog, type LogLine } from '../support/recorded-log.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const TOKEN = 'a-token-for-the-scraper-of-metrics';

const scrape = async (address: string): Promise<string> => {
  const answer = await fetch(`${address}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  if (answer.status !== 200) throw new Error(`no metrics: ${answer.status}`);
  return answer.text();
};

describe('Metrics', () => {
  describe('of a service with metrics enabled', () => {
    let shop: Shop;

    before(async () => {
      shop = await Shop.open({}, () => startTestService({ METRICS_TOKEN: TOKEN }));
    });
    after(() => shop.close());
    const readMetrics = () => scrape(shop.service.address);

    it('require the metrics token, and no client can read them', async () => {
      const { address } = shop.service;
      const scrapeWith = async (headers: Record<string, string>) => (await fetch(`${address}/metrics`, { headers })).status;
      expect(await scrapeWith({})).to.equal(401);
      expect(await scrapeWith({ Authorization: `Bearer ${await shop.service.rootToken()}` })).to.equal(401);
      expect(await scrapeWith({ Authorization: TOKEN })).to.equal(401);
      const answer = await fetch(`${address}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('content-type')).to.equal('text/plain; version=0.0.4; charset=utf-8');
      expect(answer.headers.get('cache-control')).to.equal('no-store');
    });

    it('count requests by route, method and status and measure their duration', async () => {
      const labels = { method: 'GET', route: '/session/:id' };
      const before = await readMetrics();
      await shop.call('GET', '/session/6f9619ff-8b86-4011-b42d-00c04fc964ff');
      await shop.call('GET', '/session/6f9619ff-8b86-4011-b42d-00c04fc964fe');
      const metricsAfter = await readMetrics();
      const increase = (name: string, overrides: object = {}) =>
        sumSamples(metricsAfter, name, { ...labels, ...overrides }) - sumSamples(before, name, { ...labels, ...overrides });
      expect(increase('vidimus_http_requests_total', { status: '404' })).to.equal(2);
      expect(increase('vidimus_http_request_duration_seconds_count')).to.equal(2);
      expect(metricsAfter).to.not.include('6f9619ff');
    });

    it('count sessions by kind, outcome and failure code, signatures, webhooks and outgoing calls', async () => {
      await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
      shop.backend.on('/told', (response) => response.end());
      const before = await readMetrics();
      const credential = await shop.issue();
      expect((await shop.present(await shop.requestPresentation('told'), credential)).status).to.equal(200);
      shop.backend.on('/told', (response) => response.writeHead(503).end());
      expect((await shop.present(await shop.requestPresentation('told'), credential)).status).to.equal(400);
      const metricsAfter = await readMetrics();
      const increase = (name: string, labels: Record<string, string> = {}) =>
        sumSamples(metricsAfter, `vidimus_${name}`, labels) - sumSamples(before, `vidimus_${name}`, labels);
      const session = (kind: string, outcome: string, code = '') => increase('sessions_total', { kind, outcome, code });
      expect(session('issuance', 'opened')).to.equal(1);
      expect(session('issuance', 'completed')).to.equal(1);
      expect(session('verification', 'opened')).to.equal(2);
      expect(session('verification', 'completed')).to.equal(1);
      expect(session('verification', 'failed', 'webhook_failed')).to.equal(1);
      expect(increase('webhooks_total', { outcome: 'delivered' })).to.equal(1);
      expect(increase('webhooks_total', { outcome: 'bad_status' })).to.equal(1);
      expect(increase('outgoing_requests_total', { outcome: 'answered' })).to.equal(2);
      expect(increase('signatures_total', { provider: 'local', outcome: 'signed' })).to.be.at.least(3);
      expect(increase('signature_duration_seconds_count')).to.be.at.least(3);
      expect(metricsAfter, 'no tenant identifier').to.not.match(/tenant="/);
      expect(metricsAfter, 'no personal data, and no address').to.not.match(/Ada|told|127\.0\.0\.1/);
    });

    it('report health, expiry dates, lists, caches, jobs, connections and the process', async () => {
      const text = await readMetrics();
      expect(sumSamples(text, 'vidimus_health_part_up', { part: 'database' })).to.equal(1);
      expect(sumSamples(text, 'vidimus_job_last_success_timestamp_seconds', { task: 'measure' })).to.be.above(1e9);
      expect(sumSamples(text, 'vidimus_cache_bytes', { cache: 'configurations' })).to.be.above(0);
      expect(sumSamples(text, 'vidimus_http_connections')).to.be.above(0);
      expect(sumSamples(text, 'nodejs_eventloop_lag_p99_seconds')).to.be.above(0);
      expect(sumSamples(text, 'process_resident_memory_bytes')).to.be.above(0);
      expect(sumSamples(text, 'vidimus_draining')).to.equal(0);
    });

    it('keep a bounded number of series, regardless of invented addresses, methods and names', async () => {
      const before = parseSamples(await readMetrics()).length;
      for (let batch = 0; batch < 10; batch++) {
        const calls = Array.from({ length: 100 }, (_, index) => {
          const name = `n${batch}x${index}`;
          const path = [`/${name}`, `/${name}/nonce`, `/${name}/.well-known/openid-credential-issuer`][index % 3];
          const method = ['GET', 'POST', 'PROPFIND', 'MKCOL'][index % 4] ?? 'GET';
          return fetch(shop.service.address + path, { method }).then((answer) => answer.arrayBuffer());
        });
        await Promise.all(calls);
      }
      const text = await readMetrics();
      expect(text).to.not.match(/n\d+x\d+|PROPFIND/);
      expect(parseSamples(text).length - before).to.be.lessThan(300);
    });
  });

  it('distinguish a limited number of tenants', async () => {
    const service = await startTestService({ METRICS_TOKEN: TOKEN, METRICS_TENANTS: '2' });
    try {
      for (const id of ['acme', 'bank', 'city', 'dome']) {
        const { token } = await createTenant(service, id);
        await service.call('POST', '/issuer/credentials', {
          token,
          json: { id: 'card', config: { format: 'dc+sd-jwt' }, claims: { name: 'Ada' } },
        });
        await service.call('POST', '/issuer/offer', {
          token,
          json: { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] },
        });
      }
      const text = await scrape(service.address);
      const counts = ['acme', 'bank', 'city', 'others'].map((tenant) =>
        sumSamples(text, 'vidimus_sessions_total', { tenant, outcome: 'opened' }),
      );
      expect(counts).to.deep.equal([1, 1, 0, 2]);
    } finally {
      await service.close();
    }
  });

  it('are unavailable unless they are configured', async () => {
    const service = await startTestService();
    expect((await service.call('GET', '/metrics')).status).to.equal(404);
    await service.close();
  });

  it('have a separate address, which serves nothing else', async () => {
    const port = await freePort(createServer);
    const service: TestService = await startTestService({ METRICS_ADDRESS: `127.0.0.1:${port}` });
    const address = `http://127.0.0.1:${port}`;
    const statuses = [];
    for (const path of ['/metrics', '/', '/health']) statuses.push((await fetch(address + path)).status);
    statuses.push((await fetch(`${address}/metrics`, { method: 'POST' })).status);
    statuses.push((await service.call('GET', '/metrics')).status);
    expect(statuses).to.deep.equal([200, 404, 404, 404, 404]);
    expect(await (await fetch(`${address}/metrics`)).text()).to.include('vidimus_info{version=');
    await service.close();
    expect(await fetch(address).catch(() => 'refused')).to.equal('refused');
  });
});

describe('The log', () => {
  let log: CapturedLog;
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    log = new CapturedLog();
    shop = await Shop.open({}, () => startTestService({ LOG_LEVEL: 'info' }));
    heldCredential = await shop.issue();
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told?secret=query` } });
  });
  after(async () => {
    await shop.close();
    log.close();
  });

  /** Lines that were logged during `work`. */
  const linesDuring = async (work: () => Promise<unknown>): Promise<readonly LogLine[]> => {
    const before = log.lines(shop.service).length;
    await work();
    // The line of a request is written after its response.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return log.lines(shop.service).slice(before);
  };
  const warnings = (lines: readonly LogLine[]) => lines.filter(({ level }) => level === 'warn');

  it('contains tenant, client and session in the line of a request that has them', async () => {
    const request = await shop.requestPresentation();
    const [line] = await linesDuring(() => shop.call('GET', `/session/${request.session}`));
    expect(line).to.include({
      msg: 'request',
      route: '/session/:id',
      tenantId: 'shop',
      clientId: 'shop-admin',
      sessionId: request.session,
    });
    const [offerLine] = await linesDuring(() => shop.requestPresentation());
    expect(offerLine?.['sessionId'], 'the identifier of the created session').to.be.a('string');
    const [fetchLine] = await linesDuring(() => shop.service.call('GET', request.url));
    expect(fetchLine).to.include({ tenantId: 'shop', sessionId: request.session });
    expect(fetchLine).to.not.have.property('clientId');
    const [listLine] = await linesDuring(() => shop.call('GET', '/session'));
    expect(listLine).to.not.have.property('sessionId');
  });

  it('contains the route and tenant in every line of a request, even if it is rejected before routing', async () => {
    const request = await shop.requestPresentation();
    const credentialOfOtherHolder = { ...heldCredential, holder: (await shop.issue()).holder };
    const lines = await linesDuring(() => shop.present(request, credentialOfOtherHolder));
    expect(lines.length).to.be.greaterThan(1);
    for (const line of lines) {
      expect(line, JSON.stringify(line)).to.include({
        route: '/:tenant/response/:requestId',
        tenantId: 'shop',
        sessionId: request.session,
      });
      expect(line['requestId']).to.equal(lines[0]?.['requestId']);
      expect(line, 'traces are not collected').to.not.have.property('traceId');
    }
    const form = { grant_type: 'client_credentials', client_id: 'shop-admin', client_secret: 'wrong' };
    for (const line of await linesDuring(() => shop.service.call('POST', '/oauth2/token', { form })))
      expect(line).to.include({ route: '/oauth2/token', tenantId: 'shop', clientId: 'shop-admin' });
    const [unauthenticated] = await linesDuring(() => shop.service.call('GET', '/session', { token: 'eyJ.a.token' }));
    expect(unauthenticated).to.include({ route: '/session', status: 401, code: 'unauthenticated' });
    expect(JSON.stringify(unauthenticated)).to.not.include('eyJ');
  });

  it('warns of a rejected presentation, with the reason and the session and without personal data', async () => {
    const request = await shop.requestPresentation();
    const credentialOfOtherHolder = { ...heldCredential, holder: (await shop.issue()).holder };
    const lines = await linesDuring(() => shop.present(request, credentialOfOtherHolder));
    const [warning] = warnings(lines);
    expect(warning).to.include({ tenantId: 'shop', sessionId: request.session });
    expect(warning?.['reason']).to.include('kb_signature');
    expect(warning?.['requestId']).to.be.a('string');
    expect(JSON.stringify(lines)).to.not.match(/Ada|eyJ/);
  });

  it('warns of a wallet that gets no credential, with the reason and the session', async () => {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    const { body } = await shop.call('POST', '/issuer/offer', json, shop.acme.token);
    const wallet = new RawWallet(shop.service, 'acme');
    const token = await wallet.accessToken(body.uri);
    const [warning] = warnings(await linesDuring(() => wallet.request(token, 'card', { nonce: 'invented' })));
    expect(warning).to.include({ tenantId: 'acme', code: 'invalid_nonce', sessionId: body.session });
    expect(warning?.['reason']).to.be.a('string');
    expect(JSON.stringify(warning)).to.not.include(token);
    await shop.call('POST', `/session/${body.session}/cancel`, undefined, shop.acme.token);
    const [expiredTokenLine] = warnings(await linesDuring(() => wallet.request(token, 'card')));
    expect(expiredTokenLine).to.include({ tenantId: 'acme', sessionId: body.session });
  });

  it('contains the session of a rejected code and token', async () => {
    const json = { ...{ response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] }, tx_code: '4711' };
    const { body } = await shop.call('POST', '/issuer/offer', json, shop.acme.token);
    const wallet = new RawWallet(shop.service, 'acme');
    const code = await wallet.code(body.uri);
    const [wrongCodeLine] = warnings(await linesDuring(() => wallet.redeem(code, { tx_code: '0815' })));
    expect(wrongCodeLine).to.include({ code: 'invalid_grant', sessionId: body.session });
    const tokens = (await wallet.redeem(code, { tx_code: '4711' })).body;
    const otherWallet = new RawWallet(shop.service, 'acme');
    const [stolenTokenLine] = warnings(await linesDuring(() => otherWallet.refresh(tokens.refresh_token)));
    expect(stolenTokenLine).to.include({ code: 'invalid_grant', sessionId: body.session });
    const [unknownConfigurationLine] = warnings(await linesDuring(() => wallet.request(tokens.access_token, 'nothing')));
    expect(unknownConfigurationLine).to.include({ sessionId: body.session });
  });

  it('contains the client for a wrong secret, and no unknown names', async () => {
    const logIn = async (client_id: string) => {
      const form = { grant_type: 'client_credentials', client_id, client_secret: 'not-the-secret' };
      const lines = warnings(await linesDuring(() => shop.service.call('POST', '/oauth2/token', { form })));
      expect(lines).to.have.length(1);
      expect(lines[0]).to.include({ msg: 'a client was refused', code: 'invalid_client' });
      expect(JSON.stringify(lines)).to.not.include('not-the-secret');
      return lines[0];
    };
    expect(await logIn('shop-admin')).to.include({ tenantId: 'shop', clientId: 'shop-admin' });
    expect(await logIn('a-password-typed-here')).to.not.have.property('clientId');
  });

  it('contains the decline of a user, and the completion of an offer', async () => {
    const json = { response_type: 'uri', flow: 'authorization_code', credentialConfigurationIds: ['card'] };
    const { body } = await shop.call('POST', '/issuer/offer', json, shop.acme.token);
    const wallet = new RawWallet(shop.service, 'acme');
    const requestUri = await wallet.push(body.uri, 'card');
    const lines = await linesDuring(() => wallet.decide(requestUri, 'deny'));
    const [declinedLine] = lines.filter(({ msg }) => msg === 'a wallet gets no code');
    expect(declinedLine).to.include({ tenantId: 'acme', sessionId: body.session, code: 'access_denied' });

    const limitedConfiguration = { id: 'once', config: { format: 'dc+sd-jwt' }, claims: { name: 'Ada' }, maxIssuances: 1 };
    await shop.call('POST', '/issuer/credentials', limitedConfiguration, shop.acme.token);
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['once'] };
    const creation = await shop.call('POST', '/issuer/offer', offer, shop.acme.token);
    const token = await wallet.accessToken(creation.body.uri);
    expect((await wallet.request(token, 'once')).status).to.equal(200);
    const [limitLine] = warnings(await linesDuring(() => wallet.request(token, 'once')));
    expect(limitLine).to.include({ sessionId: creation.body.session, reason: 'maxIssuances of once (1) is used up' });
  });

  it('contains the reason why a claims webhook delivered no claims, without claim names', async () => {
    const claimsWebhook = { url: `${shop.backend.url}/claims` };
    const configuration = {
      ...{ id: 'asked', config: { format: 'dc+sd-jwt' }, claimsWebhook },
      schema: { type: 'object', properties: { age: { type: 'integer' } }, additionalProperties: false },
    };
    await shop.call('POST', '/issuer/credentials', configuration, shop.acme.token);
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['asked'] };
    const requestCredential = async (): Promise<readonly LogLine[]> => {
      const { body } = await shop.call('POST', '/issuer/offer', offer, shop.acme.token);
      const wallet = new RawWallet(shop.service, 'acme');
      const token = await wallet.accessToken(body.uri);
      const lines = warnings(await linesDuring(() => wallet.request(token, 'asked')));
      for (const line of lines) expect(line).to.include({ tenantId: 'acme', sessionId: body.session });
      return lines;
    };
    shop.backend.on('/claims', (response) => response.writeHead(503).end());
    const linesWhileDown = await requestCredential();
    expect(linesWhileDown[0]).to.include({ msg: 'claims webhook failed', reason: 'bad_status' });
    expect(linesWhileDown[1]).to.include({ code: 'credential_request_denied' });
    expect(linesWhileDown[1]?.['reason']).to.include('503');
    shop.backend.on('/claims', (response) => response.end(JSON.stringify({ asked: { name: 'Ada' } })));
    const [invalidResponseLine] = await requestCredential();
    expect(invalidResponseLine?.['reason']).to.equal('the claims do not match the schema; the failure of the session names the path');
    expect(JSON.stringify(invalidResponseLine)).to.not.match(/Ada|"name"/);
  });

  it('warns of a failing webhook, without its query', async () => {
    shop.backend.on('/told?secret=query', (response) => response.writeHead(503).end());
    const request = await shop.requestPresentation('told');
    const lines = warnings(await linesDuring(() => shop.present(request, heldCredential)));
    const failureLine = lines.find(({ msg }) => msg === 'presentation webhook failed');
    expect(failureLine).to.include({ tenantId: 'shop', sessionId: request.session, reason: 'bad_status' });
    expect(JSON.stringify(lines)).to.not.match(/secret=query|Ada/);
  });
});
