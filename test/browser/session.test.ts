import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { buildConsole } from '../support/console.ts';
import { type Held, Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, openWindow, type Watched } from './support/browser.ts';

const SECRET = 'a-secret-of-this-very-client';
const PERSON = 'Zyxwvut-Planted';

describe('the page of a session', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let shop: Shop;
  let held: Held;
  const open: Watched[] = [];

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    buildConsole();
    shop = await Shop.open();
    held = await shop.issue('card-status');
    const clients = [
      { token: shop.acme.token, clientId: 'clerk', roles: ['issuance:offer'] },
      { token: shop.token, clientId: 'asker', roles: ['presentation:request'] },
    ];
    for (const { token, ...client } of clients)
      expect((await shop.call('POST', '/client', { ...client, secret: SECRET }, token)).status).to.equal(201);
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

  const look = async (session: string, clientId: string, how: Parameters<typeof openWindow>[2] = {}) => {
    const { address } = shop.service;
    const watched = await openWindow(browser as Browser, address, how);
    open.push(watched);
    const { page } = watched;
    await page.goto(`${address}/console#sessions/${session}`);
    await page.getByLabel('Client id').fill(clientId);
    await page.getByLabel('Client secret').fill(SECRET);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    return page;
  };
  const offer = async () => {
    const body = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card-status'],
      credentialClaims: { 'card-status': { type: 'inline', claims: { name: PERSON, age: 36 } } },
    };
    const made = await shop.call('POST', '/issuer/offer', body, shop.acme.token);
    expect(made.status, made.text).to.equal(201);
    return made.body as { uri: string; session: string };
  };
  const status = (page: Page, name: string) => page.locator('main .badge', { hasText: name }).waitFor();

  it('follows an offer without a reload, and shows values on record alone', async () => {
    const { uri, session } = await offer();
    const page = await look(session, 'clerk');
    await status(page, 'active');
    await page.getByRole('img', { name: /QR code/ }).waitFor();
    await page.getByText('A phone cannot reach this service').waitFor();
    await new RawWallet(shop.service, 'acme').code(uri);
    await status(page, 'fetched');
    await page.getByText('Read by a wallet').waitFor();
    expect(await page.content()).not.to.include(PERSON);
    expect(await page.getByRole('button', { name: 'Run again' }).count(), 'without its claims').to.equal(0);
    await page.getByRole('button', { name: 'Show values' }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Show values' }).click();
    await page.getByText(PERSON).waitFor();
    const log = await shop.call('GET', `/audit-log?target=${session}`, undefined, shop.acme.token);
    expect(log.body.map(({ action, actor }: Record<string, string>) => [action, actor])).to.deep.equal([
      ['shown', 'clerk'],
    ]);
  });

  it('cancels what is open, after it asked, and offers that no more', async () => {
    const { session } = await offer();
    const page = await look(session, 'clerk');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('Cancelled: somebody of the tenant ended it.').waitFor();
    expect(await page.getByRole('button', { name: 'Cancel', exact: true }).count()).to.equal(0);
  });

  it('revokes what was issued, and explains the refusal that follows', async () => {
    const issuer = await look(held.session, 'clerk');
    await issuer.getByRole('button', { name: 'Change status' }).click();
    await issuer.locator('dialog[open]').getByRole('button', { name: 'Change status' }).click();
    await issuer.getByText('1 of its credentials changed.').waitFor();
    const asked = await shop.ask('check');
    const page = await look(asked.session, 'asker');
    expect(await page.getByRole('button', { name: 'Change status' }).count()).to.equal(0);
    await shop.present(asked, held);
    await status(page, 'failed');
    await page.getByText('Refused: the issuer took it back, or holds it back.').waitFor();
    await page.getByText('Token Status List section 8.3').waitFor();
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Run again' }).click();
    await status(page, 'active');
    expect(page.url()).not.to.include(asked.session);
  });

  for (const dark of [false, true])
    it(`fits a phone and has nothing that axe refuses, ${dark ? 'dark' : 'light'}`, async () => {
      const { session } = await offer();
      const page = await look(session, 'clerk', { width: 390, dark });
      for (const summary of await page.locator('.timeline summary').all()) await summary.press('Enter');
      await expectFits(page, 'the page');
      await expectAccessible(page, 'the page');
    });
});
