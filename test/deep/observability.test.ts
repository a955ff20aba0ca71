import { connect, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { MetricsServer } from '../../adapters/system/metrics/metrics-server.ts';
import { startFailureMessage } from '../../bootstrap/start/start-failure.ts';
import { freePort } from '../demo/process.ts';
import { type CollectedSpan, Collector } from '../support/collector.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { sumSamples } from '../support/metrics.ts';
import { Shop } from '../support/present.ts';
import { CapturedLog } from '../support/recorded-log.ts';
import { startTestService } from '../support/test-service.ts';
import { callerFor, WorkerService } from '../support/worker-service.ts';

describe('separate metrics address', () => {
  let port: number;
  let server: MetricsServer;
  let sockets: Socket[];

  beforeEach(async () => {
    port = await freePort(createServer);
    server = await MetricsServer.open({ host: '127.0.0.1', port }, async () => 'some_number 1\n');
    sockets = [];
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });

  /** More connections than the limit allows. */
  const occupyConnections = async (firstBytes: string) => {
    for (let i = 0; i < 40; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(firstBytes);
      sockets.push(socket);
    }
    await setTimeout(500);
  };
  const scraped = async (): Promise<string> => {
    for (;;) {
      const text = await fetch(`http://127.0.0.1:${port}/metrics`)
        .then((response) => response.text())
        .catch(() => undefined);
      if (text !== undefined) return text;
      await setTimeout(200);
    }
  };

  for (const [description, firstBytes, timeoutMs] of [
    ['send nothing', '', 9_000],
    ['never end what they begin to say', 'GET /metrics HTTP/1.1\r\nHost: a\r\n', 9_000],
    ['have had their answer and stay', 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n', 2_000],
  ] as const) {
    it(`is not blocked by callers that ${description}`, async () => {
      await occupyConnections(firstBytes);
      const startedAt = performance.now();
      expect(await scraped()).to.equal('some_number 1\n');
      expect(performance.now() - startedAt).to.be.below(timeoutMs);
    });
  }

  it('names the setting to change when its port is in use', async () => {
    const failure = await MetricsServer.open({ host: '127.0.0.1', port }, async () => '').catch(startFailureMessage);
    expect(failure).to.equal(`Vidimus could not start: port ${port} is in use; set METRICS_ADDRESS to another one`);
  });
});

const TOKEN = 'a-token-of-whoever-reads-metrics';

const scrape = async (address: string): Promise<string> => {
  const answer = await fetch(`${address}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  if (answer.status !== 200) throw new Error(`no metrics: ${answer.status}`);
  return answer.text();
};

describe('metrics of several workers', () => {
  let database: TestDatabase | undefined;
  let service: WorkerService;
  let ownAddress: string;

  before(async function () {
    database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    const port = await freePort(createServer);
    ownAddress = `http://127.0.0.1:${port}`;
    const measured = { METRICS_ADDRESS: String(port), METRICS_TOKEN: TOKEN };
    service = await WorkerService.start({ DATABASE_URL: database.url, LOG_LEVEL: 'info', ...measured });
  });
  after(async () => {
    await service?.stop();
    await database?.drop();
  });

  it('are one answer, at the service and at the separate address', async () => {
    // Each call uses a new connection, so that both workers get some.
    for (let index = 0; index < 20; index++) await callerFor(service.address).call('GET', '/');
    const labels = { method: 'GET', route: '/', status: '200' };
    expect(sumSamples(await (await fetch(`${ownAddress}/metrics`)).text(), 'vidimus_http_requests_total', labels)).to.equal(20);
    for (let index = 0; index < 4; index++)
      expect(sumSamples(await scrape(service.address), 'vidimus_http_requests_total', labels)).to.equal(20);
    const text = await scrape(service.address);
    expect(sumSamples(text, 'vidimus_database_connections_limit')).to.equal(10);
    expect(sumSamples(text, 'vidimus_worker_restarts_total')).to.equal(0);
    expect(text).to.include('nodejs_eventloop_lag_p99_seconds');
    expect(sumSamples(text, 'vidimus_health_part_up', { part: 'database' })).to.equal(1);
  });

  it('do not decrease when a worker ends and another one follows', async () => {
    const labels = { method: 'GET', route: '/', status: '200' };
    const countRequests = async () => sumSamples(await scrape(service.address), 'vidimus_http_requests_total', labels);
    const countBefore = await countRequests();
    expect(countBefore).to.be.at.least(20);
    const [killedPid] = service.workers;
    if (killedPid === undefined) throw new Error('no worker said that it started');
    process.kill(killedPid, 'SIGKILL');
    await service.line(({ msg }) => msg === 'a worker was restarted');
    expect(await countRequests()).to.equal(countBefore);
    await callerFor(service.address).call('GET', '/');
    expect(await countRequests()).to.equal(countBefore + 1);
    expect(sumSamples(await scrape(service.address), 'vidimus_worker_restarts_total')).to.equal(1);
  });
});

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

describe('traces', () => {
  let collector: Collector;
  let log: CapturedLog;
  let shop: Shop;

  before(async () => {
    collector = await Collector.start();
    log = new CapturedLog();
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.endpoint}/`, LOG_LEVEL: 'info' };
    shop = await Shop.open({}, () => startTestService(settings));
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
  });
  after(async () => {
    await shop?.close();
    log.close();
    await collector.close();
  });

  const findTraceSpans = async (matches: (span: CollectedSpan) => boolean): Promise<readonly CollectedSpan[]> => {
    for (let attempts = 100; attempts > 0 && !collector.spans.some(matches); attempts--) await setTimeout(100);
    const rootSpan = collector.spans.find(matches);
    return collector.spans.filter(({ traceId }) => traceId === rootSpan?.traceId);
  };

  it('cover a request, its use case and the database, and continue the trace of the caller', async () => {
    const answer = await fetch(`${shop.service.address}/session`, {
      headers: { Authorization: `Bearer ${shop.token}`, traceparent: `00-${TRACE}-${PARENT}-00` },
    });
    expect(answer.status).to.equal(200);
    const spans = await findTraceSpans(({ traceId, name }) => traceId === TRACE && name === 'GET /session');
    const spanNamed = (name: string) => spans.find((span) => span.name === name);
    const request = spanNamed('GET /session');
    expect(request).to.include({ parentSpanId: PARENT, status: 0 });
    expect(request?.attributes).to.include({ 'http.request.method': 'GET', 'http.route': '/session', 'http.response.status_code': 200 });
    const useCase = spanNamed('ListSessions');
    expect(useCase?.parentSpanId).to.equal(request?.spanId);
    expect(spanNamed('store sessions')?.parentSpanId).to.equal(useCase?.spanId);
  });

  it('continue to the backend of a tenant, with signatures and outgoing calls as spans', async () => {
    let traceparent: string | undefined;
    shop.backend.on('/told', (response, { headers }) => {
      traceparent = headers['traceparent'] as string | undefined;
      response.end();
    });
    const credential = await shop.issue();
    expect((await shop.present(await shop.requestPresentation('told'), credential)).status).to.equal(200);
    const spans = await findTraceSpans(({ name }) => name === 'webhook');
    const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(traceparent ?? '') ?? [];
    const webhook = spans.find(({ name }) => name === 'webhook');
    expect(traceId).to.equal(webhook?.traceId);
    expect(spanId).to.equal(webhook?.spanId);
    expect(spans.find(({ name }) => name === 'outgoing POST')?.parentSpanId).to.equal(webhook?.spanId);
    expect(spans.map(({ name }) => name)).to.include('POST /:tenant/response/:requestId');
    const signing = await findTraceSpans(({ name }) => name === 'kms sign');
    expect(signing.find(({ name }) => name === 'kms sign')?.attributes).to.include({ provider: 'local' });
  });

  it('are linked from lines of the log', async () => {
    const linesBefore = log.lines(shop.service).length;
    await shop.call('GET', '/session');
    await setTimeout(20);
    const [line] = log.lines(shop.service).slice(linesBefore);
    const traceId = line?.['traceId'] as string;
    expect(traceId).to.match(/^[0-9a-f]{32}$/);
    expect((await findTraceSpans((span) => span.traceId === traceId)).map(({ name }) => name)).to.include('GET /session');
  });

  it('contain no personal data, tokens or addresses, and no text of unauthenticated callers', async () => {
    const fakeTraceId = await fetch(`${shop.service.address}/invented-name/nonce`, {
      method: 'POST',
      headers: { traceparent: `00-${'0'.repeat(32)}-${PARENT}-01`, tracestate: 'invented=1', baggage: 'invented=1' },
    });
    expect(fakeTraceId.status).to.equal(404);
    await findTraceSpans(({ attributes }) => attributes['http.response.status_code'] === 404);
    expect(collector.spans.length).to.be.greaterThan(20);
    expect(collector.text).to.not.match(/Ada|eyJ|invented|told|acme|shop-admin/);
  });
});

describe('service whose trace collector does not answer', () => {
  it('answers as before, and stops in time', async () => {
    const service = await startTestService({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
    expect((await service.call('GET', '/')).status).to.equal(200);
    const startedAt = performance.now();
    await service.close();
    expect(performance.now() - startedAt).to.be.lessThan(5_000);
  });
});
