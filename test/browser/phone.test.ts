import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { buildConsole } from '../support/console.ts';
import { Shop } from '../support/present.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, openWindow } from './support/browser.ts';

const SECRET = 'a-secret-of-this-very-client';

describe('phone of the console', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let shop: Shop;

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    buildConsole();
    shop = await Shop.open();
    const client = { clientId: 'clerk', roles: ['issuance:offer'], secret: SECRET };
    expect((await shop.call('POST', '/client', client, shop.acme.token)).status).to.equal(201);
  });
  after(async () => {
    await browser?.close();
    await shop?.close();
  });

  it('accepts offers of this service, with a transaction code, and rejects other texts', async () => {
    const { address } = shop.service;
    const { page, faults } = await openWindow(browser as Browser, address, { width: 390, dark: true });
    await page.goto(`${address}/console#phone?ticket=used-before`);
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Client id').fill('clerk');
    await page.getByLabel('Client secret').fill('a-secret-of-somebody-else');
    await page.getByRole('button', { name: 'Log in' }).click();
    // What is told is told of the last thing that was tried.
    await page.getByText(/ticket/).waitFor({ state: 'detached' });
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').count()).to.equal(1);
    await page.getByLabel('Client secret').fill(SECRET);
    await page.getByRole('button', { name: 'Log in' }).click();
    const scan = async (link: string) => {
      await page.getByLabel('Link of an offer or a request').fill(link);
      await page.getByRole('button', { name: 'Open in the phone' }).click();
    };
    await scan('https://nothing.example/');
    await page.getByText('The phone cannot use this: an address of the web').waitFor();
    await scan('');
    await page.getByText('Paste a link first. A link of an offer looks like').waitFor();
    await scan('eyJhbGciOiJFUzI1NiJ9.e30.c2ln');
    await page.getByText('a token is no link').waitFor();
    const body = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card-status'], tx_code: '4711' };
    const offer = await shop.call('POST', '/issuer/offer', body, shop.acme.token);
    expect(offer.status, offer.text).to.equal(201);
    await scan(offer.body.uri);
    await page.getByLabel(/Transaction code/).waitFor();
    // What is wrong takes the place of the offer before, and the words of a library are folded.
    await scan('openid4vp://?client_id=x&request=rubbish');
    await page.getByText('The phone cannot use this request.').waitFor();
    expect(await page.getByLabel(/Transaction code/).count()).to.equal(0);
    expect(await page.locator('.phone details p').isVisible()).to.equal(false);
    await page.getByText('Text of the wallet').click();
    await page.locator('.phone details p').waitFor();
    await expectAccessible(page, 'what is no request');
    await expectFits(page, 'what is no request');
    await scan(offer.body.uri);
    await page.getByLabel(/Transaction code/).fill('4712');
    await page.locator('.phone').getByRole('button', { name: 'Add' }).click();
    await page.locator('.phone .outcome.bad').waitFor();
    await scan(offer.body.uri);
    await page.getByLabel(/Transaction code/).fill('4711');
    await expectAccessible(page, 'consent');
    await expectFits(page, 'consent');
    await page.locator('.phone').getByRole('button', { name: 'Add' }).click();
    await page.getByText('now in this phone').waitFor();
    await scan(offer.body.uri);
    await page.getByText('This phone collected that offer already.').waitFor();
    expect(await page.getByText('Add to this phone?').count()).to.equal(0);
    expect(page.url()).not.to.include('code');
    expect(faults.filter((fault) => !fault.includes('nothing.example'))).to.deep.equal([]);
  });
});
