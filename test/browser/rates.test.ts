import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { aboutWhich, rowsOf, type SessionRates } from '../../packages/console/src/pages/rates/session-rates.ts';
import { buildConsole } from '../support/console.ts';
import { Shop } from '../support/present.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, openWindow, type Watched } from './support/browser.ts';

const SECRET = 'a-secret-of-this-very-client';

describe('rates page', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let shop: Shop;
  const open: Watched[] = [];

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    buildConsole();
    shop = await Shop.open();
    const clients = [
      { clientId: 'asker', roles: ['presentation:request'] },
      { clientId: 'one-question', roles: ['presentation:request'], allowedPresentationConfigs: ['told'] },
    ];
    for (const client of clients)
      expect((await shop.call('POST', '/client', { ...client, secret: SECRET }, shop.token)).status).to.equal(201);
  });
  after(async () => {
    await browser?.close();
    await shop?.close();
  });
  afterEach(async () => {
    for (const { faults, context } of open.splice(0)) {
      expect(faults).to.deep.equal([]);
      await context.close();
    }
  });

  const come = async (clientId: string, place: string, how: Parameters<typeof openWindow>[2] = {}) => {
    const { address } = shop.service;
    const watched = await openWindow(browser as Browser, address, how);
    open.push(watched);
    const { page } = watched;
    await page.goto(`${address}/console#${place}`);
    await page.getByLabel('Client id').fill(clientId);
    await page.getByLabel('Client secret').fill(SECRET);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('main#content').waitFor();
    return page;
  };

  it('explains which sessions a number counts', () => {
    const sample = { sessions: 20_000, isComplete: false };
    expect(aboutWhich(sample, 'sessions', '7d')).to.equal('Of the newest 20,000 sessions of the last 7 days.');
    expect(aboutWhich({ sessions: 3, isComplete: true }, 'sessions', '24h')).to.equal('All 3 sessions of the last 24 hours.');
    expect(aboutWhich({ sessions: 1, isComplete: true }, 'sessions that failed', '24h')).to.equal(
      'There is 1 session that failed of the last 24 hours.',
    );
    expect(aboutWhich({ sessions: 0, isComplete: true }, 'sessions', '24h')).to.equal('There are no sessions in the last 24 hours.');
    const outcomes: SessionRates['outcomes'] = [
      { kind: 'issuance', status: 'completed', count: 3 },
      { kind: 'issuance', status: 'failed', count: 1 },
      { kind: 'verification', status: 'expired', count: 2 },
    ];
    const columns = rowsOf(outcomes).map(({ kind, total, counts }) => [
      kind,
      total,
      ...counts.map(({ status, count, share }) => `${count} ${status} ${share} %`),
    ]);
    expect(columns).to.deep.equal([
      ['issuance', 4, '3 completed 75 %', '1 failed 25 %', '0 expired 0 %'],
      ['verification', 2, '0 completed 0 %', '0 failed 0 %', '2 expired 100 %'],
    ]);
  });

  it('explains the empty page', async () => {
    const page = await come('asker', 'rates');
    await page.getByText('There are no sessions in the last 24 hours.').waitFor();
    await expectAccessible(page, 'no sessions');
  });

  it('counts the outcomes of sessions, their failures and the webhooks', async () => {
    shop.backend.on('/told', { json: {} });
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
    await shop.present(await shop.requestPresentation('told'), await shop.issue());
    for (let turn = 0; turn < 2; turn++) {
      const { session } = await shop.requestPresentation('told');
      await shop.call('POST', `/session/${session}/cancel`, {}, shop.token);
    }
    const page = await come('asker', 'rates', { width: 390, dark: true });
    await page.getByText('All 3 sessions of the last 24 hours.').waitFor();
    const row = page.getByRole('table', { name: 'What came of sessions' }).getByRole('row').nth(1);
    await row.getByText('2 67 %').waitFor();
    const causes = page.getByRole('list', { name: 'The most frequent causes' });
    await causes.getByRole('listitem').first().getByText('2 cancelled').waitFor();
    await page.getByText('presentation: 100 % delivered (1 delivered, 0 failed, 0 pending)').waitFor();
    await expectAccessible(page, 'rates in the dark');
    await expectFits(page, 'rates at 390 px');
    await page.getByLabel('Sessions of the').selectOption('7d');
    await page.getByText('All 3 sessions of the last 7 days.').waitFor();
    expect(page.url()).to.include('period=7d');
    await page.getByRole('link', { name: 'Sessions that failed' }).click();
    await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
  });

  it('shows a restricted client the rates of its configurations only', async () => {
    const page = await come('one-question', 'webhooks');
    await page.getByText('presentation: 100 % delivered (1 delivered, 0 failed, 0 pending)').waitFor();
    await page.evaluate('location.hash = "rates"');
    await page.getByText('rates cover all').waitFor();
    await expectAccessible(page, 'refused');
  });
});
