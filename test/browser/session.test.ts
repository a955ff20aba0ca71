import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { buildConsole } from '../support/console.ts';
import { decode, type HeldCredential, Shop } from '../support/present.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, openWindow, type Watched } from './support/browser.ts';

const SECRET = 'a-secret-of-this-very-client';
const PERSON = 'Zyxwvut-Planted';
const SCHEMA = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string', title: 'Full name', minLength: 3 },
    born: { type: 'string', format: 'date' },
    grade: { enum: ['pass', 'fail'] },
    address: { type: 'object', properties: { city: { type: 'string' } } },
    points: { type: 'integer', description: 'of a hundred' },
  },
};

describe('session page', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let shop: Shop;
  let held: HeldCredential;
  const open: Watched[] = [];

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    buildConsole();
    shop = await Shop.open();
    held = await shop.issue('card-status');
    shop.backend.on('/claims', { json: { deferred: true } });
    const deferring = [{ id: 'later', schema: SCHEMA }, { id: 'later-free' }];
    for (const more of deferring) {
      const claimsWebhook = { url: `${shop.backend.url}/claims` };
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Later', locale: 'en' }] };
      const json = { config, vct: 'urn:later:1', claimsWebhook, ...more };
      expect((await shop.call('POST', '/issuer/credentials', json, shop.acme.token)).status).to.equal(201);
    }
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

  it('follows an offer without a reload, and shows values only together with an audit entry', async () => {
    const { uri, session } = await offer();
    const page = await look(session, 'clerk');
    await status(page, 'active');
    await page.getByRole('img', { name: /QR code/ }).waitFor();
    await page.getByText('A real phone cannot use this').waitFor();
    await new RawWallet(shop.service, 'acme').code(uri);
    await status(page, 'fetched');
    await page.getByText('Read by a wallet').waitFor();
    expect(await page.content()).not.to.include(PERSON);
    expect(await page.getByRole('button', { name: 'Run again' }).count(), 'without its claims').to.equal(0);
    await page.getByRole('button', { name: 'Show values' }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Show values' }).click();
    await page.locator('.tree').getByText(PERSON).waitFor();
    const log = await shop.call('GET', `/audit-log?target=${session}`, undefined, shop.acme.token);
    expect(log.body.map(({ action, actor }: Record<string, string>) => [action, actor])).to.deep.equal([['shown', 'clerk']]);
  });

  it('cancels an open session after a confirmation, and then hides the button', async () => {
    const { session } = await offer();
    const page = await look(session, 'clerk');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('Cancelled: somebody of the tenant ended it.').waitFor();
    expect(await page.getByRole('button', { name: 'Cancel', exact: true }).count()).to.equal(0);
  });

  it('revokes the issued credentials, and explains the later rejection of a presentation', async () => {
    const issuer = await look(held.session, 'clerk');
    await issuer.getByRole('button', { name: 'Change status' }).click();
    await issuer.locator('dialog[open]').getByRole('button', { name: 'Change status' }).click();
    await issuer.getByText('1 credential is revoked now.').waitFor();
    const asked = await shop.requestPresentation('check');
    const page = await look(asked.session, 'asker');
    expect(await page.getByRole('button', { name: 'Change status' }).count()).to.equal(0);
    await shop.present(asked, held);
    await status(page, 'failed');
    await page.locator('summary', { hasText: /^Asked/ }).click();
    await page.getByText('Asks for name of urn:card:1 (card).').waitFor();
    const { subject, validTo } = new X509Certificate(Buffer.from(asked.header['x5c'][0], 'base64'));
    const name = /CN=(.*)/.exec(subject)?.[1] ?? '';
    const days = Math.floor((Date.parse(validTo) - Date.now()) / 86_400_000);
    await page.getByText(new RegExp(`Signed by .*${name}.*; ${days} days left`)).waitFor();
    await page.getByText('Refused: The issuer revoked the credential.').waitFor();
    await page.getByText('Token Status List section 8.3').waitFor();
    await page.getByText('The holder must ask the issuer.').waitFor();
    expect(await page.locator('.checks details[open]').count(), 'the first fault alone').to.equal(1);
    await page
      .locator('summary', { hasText: /response/ })
      .last()
      .click();
    await page.getByText(/Nothing for itself: it follows from “card: /).waitFor();
    await page.getByText('No valid presentation for the required query “card”.').waitFor();
    expect(await page.content()).not.to.match(/update the wallet/i);
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Run again' }).click();
    await status(page, 'active');
    expect(page.url()).not.to.include(asked.session);
  });

  /** A wallet that is told to come back. */
  const defer = async (id: string) => {
    const body = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] };
    const made = await shop.call('POST', '/issuer/offer', body, shop.acme.token);
    const wallet = new RawWallet(shop.service, 'acme');
    const token = await wallet.accessToken(made.body.uri);
    const answer = await wallet.request(token, id, { key: newKey() });
    expect(answer.status, answer.text).to.equal(202);
    const fetchIt = () =>
      shop.service.call('POST', '/acme/deferred_credential', {
        headers: wallet.authorization(token, { path: 'deferred_credential' }),
        json: { transaction_id: answer.body.transaction_id },
      });
    return { session: made.body.session as string, fetchIt };
  };

  it('completes a deferred credential in a form of its schema, and shows its retrieval', async () => {
    const { session, fetchIt } = await defer('later');
    const page = await look(session, 'clerk');
    await page.getByRole('heading', { name: 'Waits for you' }).waitFor();
    await page.getByText('Deferred: later').waitFor();
    await page.getByText(/^Claims asked of the backend: delivered \(200, \d+ ms\)/).waitFor();
    const token = page.locator('summary', { hasText: 'Token given to the wallet' });
    await token.locator('time').waitFor();
    await token.click();
    await page.getByText('It did not prove which wallet it is.').waitFor();
    await page.getByRole('button', { name: 'Complete' }).click();
    const dialog = page.locator('dialog[open]');
    await dialog.getByLabel('Full name').fill('Z');
    await dialog.getByLabel('born (optional)').fill('2000-02-29');
    await dialog.getByLabel('grade (optional)').selectOption('pass');
    await dialog.getByLabel('address › city (optional)').fill('Gent');
    await dialog.getByLabel('points (optional)').fill('7');
    await expectAccessible(page, 'the form');
    await dialog.getByRole('button', { name: 'Complete' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByLabel('Full name').fill(PERSON);
    await dialog.getByRole('button', { name: 'Complete' }).click();
    await page.getByText('Completed, waits for the wallet: later').waitFor();
    expect(await page.getByRole('heading', { name: 'Waits for you' }).count()).to.equal(0);
    await page.getByRole('button', { name: /Calls/ }).click();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const call = page.getByRole('listitem').filter({ hasText: /\/complete.*200/ });
    await call.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByText('Copied.').waitFor();
    const curl = await page.evaluate('navigator.clipboard.readText()');
    expect(curl, 'nothing of the person is kept').to.include('"claims"').and.not.to.include(PERSON);
    await page.getByRole('button', { name: 'Close' }).click();
    const fetched = await fetchIt();
    expect(fetched.status, fetched.text).to.equal(200);
    const [jwt] = (fetched.body.credentials[0].credential as string).split('~');
    expect(decode(jwt ?? '').payload).to.deep.include({
      name: PERSON,
      born: '2000-02-29',
      grade: 'pass',
      address: { city: 'Gent' },
      points: 7,
    });
    await page.getByText('Completed, and fetched by the wallet: later').waitFor();
    await status(page, 'completed');
  });

  it('accepts claims as JSON when the credential has no schema', async () => {
    const { session, fetchIt } = await defer('later-free');
    const page = await look(session, 'clerk');
    await page.getByRole('button', { name: 'Complete' }).click();
    const dialog = page.locator('dialog[open]');
    await dialog.getByLabel('Claims, as JSON').fill('{"name": ');
    await dialog.getByRole('button', { name: 'Complete' }).click();
    await dialog.getByText('is no JSON').waitFor();
    await dialog.getByLabel('Claims, as JSON').fill('{"name": "Ada"}');
    await dialog.getByRole('button', { name: 'Complete' }).click();
    await page.getByText('Completed, waits for the wallet: later-free').waitFor();
    expect((await fetchIt()).status).to.equal(200);
  });

  it('rejects a deferred credential with a reason that the wallet never gets', async () => {
    const { session, fetchIt } = await defer('later');
    const page = await look(session, 'clerk');
    await page.getByRole('button', { name: 'Refuse' }).click();
    const dialog = page.locator('dialog[open]');
    await dialog.getByLabel('Reason').fill('The register knows nobody');
    await dialog.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('Refused: later').waitFor();
    await status(page, 'failed');
    const fetched = await fetchIt();
    expect(fetched.status).to.equal(400);
    expect(fetched.text).not.to.include('register');
    await page.getByText('Kept back, since a backend or a wallet wrote it').waitFor();
    expect(await page.getByRole('button', { name: 'Change status' }).count(), 'nothing was issued').to.equal(0);
    await page.getByRole('button', { name: 'Show values' }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Show values' }).click();
    await page.locator('.tree').getByText('The register knows nobody').waitFor();
  });

  for (const dark of [false, true])
    it(`fits a phone and passes axe in ${dark ? 'dark' : 'light'} mode`, async () => {
      const { session } = await offer();
      const page = await look(session, 'clerk', { width: 390, dark });
      for (const summary of await page.locator('.timeline summary').all()) await summary.press('Enter');
      await expectFits(page, 'the page');
      await expectAccessible(page, 'the page');
    });
});
