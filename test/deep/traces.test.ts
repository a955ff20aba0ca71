import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { type CollectedSpan, Collector } from '../support/collector.ts';
import { KeptLog } from '../support/kept-log.ts';
import { Shop } from '../support/present.ts';
import { startTestService } from '../support/test-service.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

describe('traces', () => {
  let collector: Collector;
  let log: KeptLog;
  let shop: Shop;

  before(async () => {
    collector = await Collector.start();
    log = new KeptLog();
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.endpoint}/`, LOG_LEVEL: 'info' };
    shop = await Shop.open({}, () => startTestService(settings));
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
  });
  after(async () => {
    await shop?.close();
    log.close();
    await collector.close();
  });

  const spansOf = async (isIt: (span: CollectedSpan) => boolean): Promise<readonly CollectedSpan[]> => {
    for (let left = 100; left > 0 && !collector.spans.some(isIt); left--) await setTimeout(100);
    const found = collector.spans.find(isIt);
    return collector.spans.filter(({ traceId }) => traceId === found?.traceId);
  };

  it('go from a request through its use case to the database, and on from the trace of the caller', async () => {
    const answer = await fetch(`${shop.service.address}/session`, {
      headers: { Authorization: `Bearer ${shop.token}`, traceparent: `00-${TRACE}-${PARENT}-00` },
    });
    expect(answer.status).to.equal(200);
    const spans = await spansOf(({ traceId, name }) => traceId === TRACE && name === 'GET /session');
    const of = (name: string) => spans.find((span) => span.name === name);
    const request = of('GET /session');
    expect(request).to.include({ parentSpanId: PARENT, status: 0 });
    expect(request?.attributes).to.include({
      'http.request.method': 'GET',
      'http.route': '/session',
      'http.response.status_code': 200,
    });
    const useCase = of('ListSessions');
    expect(useCase?.parentSpanId).to.equal(request?.spanId);
    expect(of('store sessions')?.parentSpanId).to.equal(useCase?.spanId);
  });

  it('go on to the backend of a tenant, with signatures and outgoing calls as their parts', async () => {
    let told: string | undefined;
    shop.backend.on('/told', (response, { headers }) => {
      told = headers['traceparent'] as string | undefined;
      response.end();
    });
    const held = await shop.issue();
    expect((await shop.present(await shop.ask('told'), held)).status).to.equal(200);
    const spans = await spansOf(({ name }) => name === 'webhook');
    const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(told ?? '') ?? [];
    const webhook = spans.find(({ name }) => name === 'webhook');
    expect(traceId).to.equal(webhook?.traceId);
    expect(spanId).to.equal(webhook?.spanId);
    expect(spans.find(({ name }) => name === 'outgoing POST')?.parentSpanId).to.equal(webhook?.spanId);
    expect(spans.map(({ name }) => name)).to.include('POST /:tenant/response/:requestId');
    const signing = await spansOf(({ name }) => name === 'kms sign');
    expect(signing.find(({ name }) => name === 'kms sign')?.attributes).to.include({ provider: 'local' });
  });

  it('are found from lines of the log', async () => {
    const before = log.lines(shop.service).length;
    await shop.call('GET', '/session');
    await setTimeout(20);
    const [line] = log.lines(shop.service).slice(before);
    const traceId = line?.['traceId'] as string;
    expect(traceId).to.match(/^[0-9a-f]{32}$/);
    expect((await spansOf((span) => span.traceId === traceId)).map(({ name }) => name)).to.include(
      'GET /session',
    );
  });

  it('say nothing of persons, tokens and addresses, and nothing that strangers make up', async () => {
    const invented = await fetch(`${shop.service.address}/invented-name/nonce`, {
      method: 'POST',
      headers: {
        traceparent: `00-${'0'.repeat(32)}-${PARENT}-01`,
        tracestate: 'invented=1',
        baggage: 'invented=1',
      },
    });
    expect(invented.status).to.equal(404);
    await spansOf(({ attributes }) => attributes['http.response.status_code'] === 404);
    expect(collector.spans.length).to.be.greaterThan(20);
    expect(collector.text).to.not.match(/Ada|eyJ|invented|told|acme|shop-admin/);
  });
});

describe('a service whose collector does not answer', () => {
  it('answers as before, and ends in time', async () => {
    const service = await startTestService({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
    expect((await service.call('GET', '/')).status).to.equal(200);
    const began = performance.now();
    await service.close();
    expect(performance.now() - began).to.be.lessThan(5_000);
  });
});
