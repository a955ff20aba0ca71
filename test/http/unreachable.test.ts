import { expect } from 'chai';
import { type Held, Shop } from '../support/present.ts';
import { startTestService } from '../support/test-service.ts';

describe('an address that cannot be called', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open({}, () => startTestService({ OUTBOUND_ALLOW: 'localhost,127.0.0.1,*.invalid' }));
    held = await shop.issue();
    shop.backend.on('/down', (response) => response.writeHead(503).end());
  });
  after(() => shop.close());

  const webhooks: readonly [string, () => string, RegExp][] = [
    [
      'a closed port',
      () => 'https://localhost:1/hook?key=secret',
      /could not be reached: the connection was refused/,
    ],
    [
      'plain HTTP',
      () => `https://localhost:${new URL(shop.backend.url).port}/hook`,
      /TLS: the server does not speak TLS/,
    ],
    ['an unknown name', () => 'https://nosuch.invalid/hook?key=secret', /could not be reached: DNS: /],
    ['an HTTP status', () => `${shop.backend.url}/down`, /answered with status 503/],
  ];
  for (const [what, url, reason] of webhooks) {
    it(`is named in session and delivery of a presentation webhook: ${what}`, async () => {
      await shop.configure({ id: 'hook', webhook: { url: url() } });
      const asked = await shop.ask('hook');
      expect((await shop.present(asked, held)).status).to.equal(400);
      const { failure, deliveries } = await shop.session(asked.session);
      expect(failure.message).to.match(reason).and.not.include('secret');
      expect(deliveries[0].detail).to.match(reason).and.not.include('secret');
    });
  }

  it('is named in the report and in the cache statistics for a trust list', async () => {
    const lists = ['https://localhost:1/list', 'https://nosuch.invalid/list'];
    const trustAnchors = lists.map((trustList) => ({ trustList, signedBy: [shop.anchor] }));
    await shop.configure({ id: 'listed', trustAnchors });
    const asked = await shop.ask('listed');
    await shop.present(asked, held);
    const { report } = await shop.session(asked.session);
    expect(JSON.stringify(report))
      .to.include('unreachable (the connection was refused)')
      .and.include('unreachable (DNS: ');
    const { trustListCache } = (await shop.call('GET', '/cache/stats')).body;
    const reasons = trustListCache.failing.map((entry: { reason: string }) => entry.reason).join();
    expect(reasons).to.include('the connection was refused').and.include('DNS: ');
  });
});
