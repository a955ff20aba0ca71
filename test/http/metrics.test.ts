import { createServer } from 'node:net';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { Shop } from '../support/present.ts';
import { samplesOf, sumOf } from '../support/scraped.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { callsTo, WorkerService } from '../support/worker-service.ts';

const TOKEN = 'a-token-of-whoever-reads-metrics';
const [, postgres] = databases();

const scrape = async (address: string): Promise<string> => {
  const answer = await fetch(`${address}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  if (answer.status !== 200) throw new Error(`no metrics: ${answer.status}`);
  return answer.text();
};

describe('metrics', () => {
  describe('of a service that measures', () => {
    let shop: Shop;

    before(async () => {
      shop = await Shop.open({}, () => startTestService({ METRICS_TOKEN: TOKEN }));
    });
    after(() => shop.close());
    const read = () => scrape(shop.service.address);

    it('are for whoever has the token, and for no client', async () => {
      const { address } = shop.service;
      const asked = async (headers: Record<string, string>) =>
        (await fetch(`${address}/metrics`, { headers })).status;
      expect(await asked({})).to.equal(401);
      expect(await asked({ Authorization: `Bearer ${await shop.service.rootToken()}` })).to.equal(401);
      expect(await asked({ Authorization: TOKEN })).to.equal(401);
      const answer = await fetch(`${address}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('content-type')).to.equal('text/plain; version=0.0.4; charset=utf-8');
      expect(answer.headers.get('cache-control')).to.equal('no-store');
    });

    it('count requests by their route, method and status, and say how long they took', async () => {
      const labels = { method: 'GET', route: '/session/:id' };
      const before = await read();
      await shop.call('GET', '/session/6f9619ff-8b86-4011-b42d-00c04fc964ff');
      await shop.call('GET', '/session/6f9619ff-8b86-4011-b42d-00c04fc964fe');
      const after = await read();
      const grown = (name: string, more: object = {}) =>
        sumOf(after, name, { ...labels, ...more }) - sumOf(before, name, { ...labels, ...more });
      expect(grown('vidimus_http_requests_total', { status: '404' })).to.equal(2);
      expect(grown('vidimus_http_request_duration_seconds_count')).to.equal(2);
      expect(after).to.not.include('6f9619ff');
    });

    it('count sessions by kind, outcome and failure code, signatures, webhooks and outgoing calls', async () => {
      await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
      shop.backend.on('/told', (response) => response.end());
      const before = await read();
      const held = await shop.issue();
      expect((await shop.present(await shop.ask('told'), held)).status).to.equal(200);
      shop.backend.on('/told', (response) => response.writeHead(503).end());
      expect((await shop.present(await shop.ask('told'), held)).status).to.equal(400);
      const after = await read();
      const grown = (name: string, labels: Record<string, string> = {}) =>
        sumOf(after, `vidimus_${name}`, labels) - sumOf(before, `vidimus_${name}`, labels);
      const session = (kind: string, outcome: string, code = '') =>
        grown('sessions_total', { kind, outcome, code });
      expect(session('issuance', 'opened')).to.equal(1);
      expect(session('issuance', 'completed')).to.equal(1);
      expect(session('verification', 'opened')).to.equal(2);
      expect(session('verification', 'completed')).to.equal(1);
      expect(session('verification', 'failed', 'webhook_failed')).to.equal(1);
      expect(grown('webhooks_total', { outcome: 'delivered' })).to.equal(1);
      expect(grown('webhooks_total', { outcome: 'bad_status' })).to.equal(1);
      expect(grown('outgoing_requests_total', { outcome: 'answered' })).to.equal(2);
      expect(grown('signatures_total', { provider: 'local', outcome: 'signed' })).to.be.at.least(3);
      expect(grown('signature_duration_seconds_count')).to.be.at.least(3);
      expect(after, 'no tenant').to.not.match(/tenant="/);
      expect(after, 'nothing of persons, and no address').to.not.match(/Ada|told|127\.0\.0\.1/);
    });

    it('say what works, what ends, and what lists, caches, jobs, connections and the process come to', async () => {
      const text = await read();
      expect(sumOf(text, 'vidimus_health_part_up', { part: 'database' })).to.equal(1);
      expect(sumOf(text, 'vidimus_job_last_success_timestamp_seconds', { task: 'measure' })).to.be.above(1e9);
      expect(sumOf(text, 'vidimus_cache_bytes', { cache: 'configurations' })).to.be.above(0);
      expect(sumOf(text, 'vidimus_http_connections')).to.be.above(0);
      expect(sumOf(text, 'nodejs_eventloop_lag_p99_seconds')).to.be.above(0);
      expect(sumOf(text, 'process_resident_memory_bytes')).to.be.above(0);
      expect(sumOf(text, 'vidimus_draining')).to.equal(0);
    });

    it('stay as many, whatever addresses, methods and names strangers make up', async () => {
      const before = samplesOf(await read()).length;
      for (let batch = 0; batch < 100; batch++) {
        const calls = Array.from({ length: 100 }, (_, index) => {
          const name = `n${batch}x${index}`;
          const path = [`/${name}`, `/${name}/nonce`, `/${name}/.well-known/openid-credential-issuer`][
            index % 3
          ];
          const method = ['GET', 'POST', 'PROPFIND', 'MKCOL'][index % 4] ?? 'GET';
          return fetch(shop.service.address + path, { method }).then((answer) => answer.arrayBuffer());
        });
        await Promise.all(calls);
      }
      const text = await read();
      expect(text).to.not.match(/n\d+x\d+|PROPFIND/);
      expect(samplesOf(text).length - before).to.be.lessThan(300);
    });
  });

  it('tell so many tenants apart, and no more', async () => {
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
        sumOf(text, 'vidimus_sessions_total', { tenant, outcome: 'opened' }),
      );
      expect(counts).to.deep.equal([1, 1, 0, 2]);
    } finally {
      await service.close();
    }
  });

  it('are nowhere without a setting', async () => {
    const service = await startTestService();
    expect((await service.call('GET', '/metrics')).status).to.equal(404);
    await service.close();
  });

  it('have an address of their own, which answers nothing else', async () => {
    const port = await freePort(createServer);
    const service: TestService = await startTestService({ METRICS_ADDRESS: `127.0.0.1:${port}` });
    const own = `http://127.0.0.1:${port}`;
    const statuses = [];
    for (const path of ['/metrics', '/', '/health']) statuses.push((await fetch(own + path)).status);
    statuses.push((await fetch(`${own}/metrics`, { method: 'POST' })).status);
    statuses.push((await service.call('GET', '/metrics')).status);
    expect(statuses).to.deep.equal([200, 404, 404, 404, 404]);
    expect(await (await fetch(`${own}/metrics`)).text()).to.include('vidimus_info{version=');
    await service.close();
    expect(await fetch(own).catch(() => 'refused')).to.equal('refused');
  });
});

describe('metrics of several workers', () => {
  let database: TestDatabase | undefined;
  let service: WorkerService;
  let own: string;

  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
    const port = await freePort(createServer);
    own = `http://127.0.0.1:${port}`;
    const measured = { METRICS_ADDRESS: String(port), METRICS_TOKEN: TOKEN };
    service = await WorkerService.start({ DATABASE_URL: database.url, LOG_LEVEL: 'info', ...measured });
  });
  after(async () => {
    await service?.stop();
    await database?.drop();
  });

  it('are one answer, at the service and at their own address', async () => {
    // Each over a connection of its own, so that both workers have some.
    for (let index = 0; index < 20; index++) await callsTo(service.address).call('GET', '/');
    const labels = { method: 'GET', route: '/', status: '200' };
    expect(
      sumOf(await (await fetch(`${own}/metrics`)).text(), 'vidimus_http_requests_total', labels),
    ).to.equal(20);
    for (let index = 0; index < 4; index++)
      expect(sumOf(await scrape(service.address), 'vidimus_http_requests_total', labels)).to.equal(20);
    const text = await scrape(service.address);
    expect(sumOf(text, 'vidimus_database_connections_limit')).to.equal(10);
    expect(sumOf(text, 'vidimus_worker_restarts_total')).to.equal(0);
    expect(text).to.include('nodejs_eventloop_lag_p99_seconds');
    expect(sumOf(text, 'vidimus_health_part_up', { part: 'database' })).to.equal(1);
  });

  it('become no smaller when a worker ends and another one follows', async () => {
    const labels = { method: 'GET', route: '/', status: '200' };
    const counted = async () => sumOf(await scrape(service.address), 'vidimus_http_requests_total', labels);
    const before = await counted();
    expect(before).to.be.at.least(20);
    const [killed] = service.workers;
    if (killed === undefined) throw new Error('no worker said that it started');
    process.kill(killed, 'SIGKILL');
    await service.line(({ msg }) => msg === 'a worker was started anew');
    expect(await counted()).to.equal(before);
    await callsTo(service.address).call('GET', '/');
    expect(await counted()).to.equal(before + 1);
    expect(sumOf(await scrape(service.address), 'vidimus_worker_restarts_total')).to.equal(1);
  });
});
