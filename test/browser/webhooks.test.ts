import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { ratesOf, shareOf } from '../../packages/console/src/pages/webhooks/deliveries.ts';
import { buildConsole } from '../support/console.ts';
import { Shop } from '../support/present.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, openWindow, type Watched } from './support/browser.ts';

const SECRET = 'a-secret-of-this-very-client';

describe('webhooks page', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let shop: Shop;
  const open: Watched[] = [];

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    buildConsole();
    shop = await Shop.open();
    for (const [clientId, ...roles] of [
      ['asker', 'presentation:request'],
      ['warden', 'clients:manage'],
      ['manager', 'issuance:manage', 'presentation:manage'],
    ]) {
      const made = await shop.call('POST', '/client', { clientId, roles, secret: SECRET }, shop.token);
      expect(made.status, made.text).to.equal(201);
    }
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

  const come = async (clientId: string, how: Parameters<typeof openWindow>[2] = {}) => {
    const { address } = shop.service;
    const watched = await openWindow(browser as Browser, address, how);
    open.push(watched);
    const { page } = watched;
    await page.goto(`${address}/console`);
    await page.getByLabel('Client id').fill(clientId);
    await page.getByLabel('Client secret').fill(SECRET);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('main#content').waitFor();
    return page;
  };

  it('counts webhooks by kind, and shows no rate for sessions that have not ended', () => {
    const one = { id: '1', at: '2030-01-01T00:00:00Z' };
    const rates = ratesOf([
      { ...one, webhook: 'presentation', result: 'failed' },
      { ...one, webhook: 'presentation', result: 'delivered' },
      { ...one, webhook: 'presentation', result: 'delivered' },
      { ...one, webhook: 'claims', result: 'pending' },
    ]);
    expect(rates.map((rate) => `${rate.webhook} ${shareOf(rate)}`)).to.deep.equal(['claims none has ended', 'presentation 66 % delivered']);
  });

  it('explains the empty page before the first call', async () => {
    const page = await come('asker');
    await page.evaluate('location.hash = "webhooks"');
    await page.getByText('No webhook was called in these sessions.').waitFor();
    await expectAccessible(page, 'no webhook was called');
  });

  it('shows failed calls, and repeats them', async () => {
    shop.backend.on('/told', (response) => response.writeHead(503).end());
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
    const asked = await shop.requestPresentation('told');
    await shop.present(asked, await shop.issue());
    const page = await come('asker', { width: 390, dark: true });
    const reading = page.waitForRequest((request) => new URL(request.url()).pathname === '/session');
    await page.evaluate('location.hash = "webhooks"');
    expect(new URL((await reading).url()).searchParams.get('values')).to.equal('masked');
    await page.getByText('presentation: 0 % delivered (0 delivered, 1 failed, 0 pending)').waitFor();
    await expectAccessible(page, 'a delivery failed');
    await expectFits(page, 'webhooks at 390 px');
    shop.backend.on('/told', { json: {} });
    await page.getByRole('button', { name: 'Resend' }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Resend' }).click();
    await page.getByText('The delivery is delivered.').waitFor();
    await page.getByText('presentation: 100 % delivered').waitFor();
    await page.getByText('None: backends got what they were sent.').waitFor();
  });

  it('stops loading at 500 sessions, or on request', async () => {
    const page = await come('asker');
    let pages = 0;
    let isStuck = false;
    await page.route('**/session?*', async (route) => {
      if (isStuck && pages === 2) return;
      pages += 1;
      const rows = Array.from({ length: 50 }, (_, index) => ({ id: `${pages}-${index}`, deliveries: [] }));
      const link = `<${shop.service.address}/session?cursor=${pages}>; rel="next"`;
      await route.fulfill({ json: rows, headers: { Link: link } });
    });
    await page.evaluate('location.hash = "webhooks"');
    await page.getByText('500 sessions: read as far as it goes here.').waitFor();
    expect(pages).to.equal(10);
    [pages, isStuck] = [0, true];
    await page.getByRole('button', { name: 'Read again' }).click();
    await page.getByText('100 sessions: reading.').waitFor();
    await expectAccessible(page, 'while it reads');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('100 sessions: stopped.').waitFor();
  });

  it('creates the signing secret, shows it once, and asks before it ends the previous one', async () => {
    const page = await come('manager');
    await page.evaluate('location.hash = "webhooks"');
    const section = page.getByRole('region', { name: 'Signature' });
    await section.getByText('with a key that nobody was told yet').waitFor();
    const make = async () => {
      await section.getByRole('button', { name: 'New secret' }).click();
      await page.getByRole('dialog', { name: 'A new secret for webhooks?' }).getByRole('button', { name: 'New secret' }).click();
      const shown = page.getByRole('dialog', { name: 'The secret of the webhooks' });
      const secret = await shown.locator('code').innerText();
      await shown.getByRole('button', { name: 'Copy the secret' }).waitFor();
      await expectAccessible(page, 'the secret');
      await shown.getByRole('button', { name: 'I have it' }).click();
      await page.locator('.secret').waitFor({ state: 'detached' });
      return secret;
    };
    const first = await make();
    expect(first).to.match(/^whsec_/);
    await section.getByText('One secret signs the calls of all webhooks').waitFor();
    expect(await page.content()).to.not.include(first);
    expect(await make())
      .to.match(/^whsec_/)
      .and.not.equal(first);
    await section.getByText('A former one signs beside it still.').waitFor();
    // Who has no part in configurations is shown nothing of it.
    const other = await come('asker');
    await other.evaluate('location.hash = "webhooks"');
    await other.getByRole('heading', { name: 'Failed and pending' }).waitFor();
    expect(await other.getByRole('heading', { name: 'Signature' }).count()).to.equal(0);
  });

  it('is hidden from clients that the API rejects', async () => {
    const page = await come('warden');
    await page.getByRole('link', { name: 'Clients', exact: true }).waitFor();
    expect(await page.getByRole('link', { name: 'Webhooks' }).count()).to.equal(0);
  });
});
