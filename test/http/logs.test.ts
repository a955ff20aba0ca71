import { expect } from 'chai';
import { KeptLog, type LogLine } from '../support/kept-log.ts';
import { type Held, Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { startTestService } from '../support/test-service.ts';

describe('the log', () => {
  let log: KeptLog;
  let shop: Shop;
  let held: Held;

  before(async () => {
    log = new KeptLog();
    shop = await Shop.open({}, () => startTestService({ LOG_LEVEL: 'info' }));
    held = await shop.issue();
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told?secret=query` } });
  });
  after(async () => {
    await shop.close();
    log.close();
  });

  /** What was written meanwhile. */
  const linesOf = async (work: () => Promise<unknown>): Promise<readonly LogLine[]> => {
    const before = log.lines(shop.service).length;
    await work();
    // A request's own line comes once its answer was sent.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return log.lines(shop.service).slice(before);
  };
  const warnings = (lines: readonly LogLine[]) => lines.filter(({ level }) => level === 'warn');

  it('says tenant, client and session in the line of a request that has them', async () => {
    const asked = await shop.ask();
    const [line] = await linesOf(() => shop.call('GET', `/session/${asked.session}`));
    expect(line).to.include({
      msg: 'request',
      route: '/session/:id',
      tenantId: 'shop',
      clientId: 'shop-admin',
      sessionId: asked.session,
    });
    const [offered] = await linesOf(() => shop.ask());
    expect(offered?.['sessionId'], 'of the session that it made').to.be.a('string');
    const [fetched] = await linesOf(() => shop.service.call('GET', asked.url));
    expect(fetched).to.include({ tenantId: 'shop', sessionId: asked.session });
    expect(fetched).to.not.have.property('clientId');
    const [listed] = await linesOf(() => shop.call('GET', '/session'));
    expect(listed).to.not.have.property('sessionId');
  });

  it('warns of a presentation that is refused, with the reason and the session, and nothing of the person', async () => {
    const asked = await shop.ask();
    const wrong = { ...held, holder: (await shop.issue()).holder };
    const lines = await linesOf(() => shop.present(asked, wrong));
    const [warning] = warnings(lines);
    expect(warning).to.include({ tenantId: 'shop', sessionId: asked.session });
    expect(warning?.['reason']).to.include('kb_signature');
    expect(warning?.['requestId']).to.be.a('string');
    expect(JSON.stringify(lines)).to.not.match(/Ada|eyJ/);
  });

  it('warns of a wallet that gets nothing, with the reason and the session', async () => {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    const { body } = await shop.call('POST', '/issuer/offer', json, shop.acme.token);
    const wallet = new RawWallet(shop.service, 'acme');
    const token = await wallet.accessToken(body.uri);
    const [warning] = warnings(await linesOf(() => wallet.request(token, 'card', { nonce: 'invented' })));
    expect(warning).to.include({ tenantId: 'acme', code: 'invalid_nonce' });
    expect(warning?.['reason']).to.be.a('string');
    expect(JSON.stringify(warning)).to.not.include(token);
    await shop.call('POST', `/session/${body.session}/cancel`, undefined, shop.acme.token);
    const [late] = warnings(await linesOf(() => wallet.request(token, 'card')));
    expect(late).to.include({ tenantId: 'acme', sessionId: body.session });
  });

  it('warns of a webhook that fails, without its query', async () => {
    shop.backend.on('/told?secret=query', (response) => response.writeHead(503).end());
    const asked = await shop.ask('told');
    const found = warnings(await linesOf(() => shop.present(asked, held)));
    const failed = found.find(({ msg }) => msg === 'presentation webhook failed');
    expect(failed).to.include({ tenantId: 'shop', sessionId: asked.session, reason: 'bad_status' });
    expect(JSON.stringify(found)).to.not.match(/secret=query|Ada/);
  });
});
