import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { SimulatedWallet } from '../../tools/wallet/core/index.ts';
import { buildConsole } from '../support/console.ts';
import { Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { openBrowser, openWindow, type Watched } from './support/browser.ts';

const SECRET = 'a-secret-of-this-very-client';
const PERSON = 'Zyxwvut-Planted';

describe('a session that is watched', function () {
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
      { token: shop.acme.token, clientId: 'clerk', roles: ['issuance:offer', 'issuance:manage'] },
      { token: shop.token, clientId: 'asker', roles: ['presentation:request', 'presentation:manage'] },
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

  const look = async (
    session: string,
    clientId: string,
    prepare: (page: Page) => Promise<unknown> = async () => {},
  ) => {
    const { address } = shop.service;
    const watched = await openWindow(browser as Browser, address);
    open.push(watched);
    const { page } = watched;
    await prepare(page);
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
    return made.body as { uri: string; session: string };
  };
  const status = (page: Page, name: string) => page.locator('main .badge', { hasText: name }).waitFor();
  const confirm = async (page: Page, name: string) => {
    // It may say of what, for who hears the name alone.
    await page.getByRole('button', { name: new RegExp(`^${name}( \\(.*\\))?$`) }).click();
    await page.locator('dialog[open]').getByRole('button', { name, exact: true }).click();
  };

  it('is seen to its end while a wallet collects what was offered', async () => {
    const { uri, session } = await offer();
    const page = await look(session, 'clerk');
    await status(page, 'active');
    const wallet = new SimulatedWallet();
    await wallet.accept(await wallet.readOffer(uri));
    await status(page, 'completed');
    await page.getByText('Issued: the wallet has what was offered.').waitFor();
    expect(await page.getByRole('img', { name: /QR code/ }).count()).to.equal(0);
  });

  it('is followed again after its stream broke', async () => {
    const { uri, session } = await offer();
    let streams = 0;
    const page = await look(session, 'clerk', (at) =>
      at.route('**/events', (route) => {
        streams += 1;
        if (streams === 1) return route.abort('connectionreset');
        if (streams === 2) return route.fulfill({ contentType: 'text/event-stream', body: '' });
        return route.continue();
      }),
    );
    await page.waitForResponse((answer) => answer.url().endsWith('/events') && streams === 3);
    await status(page, 'active');
    await new RawWallet(shop.service, 'acme').code(uri);
    await status(page, 'fetched');
    expect(streams).to.equal(3);
    expect(await page.getByRole('alert').count()).to.equal(0);
  });

  it('is taken along without claims, and deleted', async () => {
    const { session } = await offer();
    const page = await look(session, 'clerk');
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download without claims' }).click();
    const file = await coming;
    expect(file.suggestedFilename()).to.equal(`session-${session}.json`);
    const text = readFileSync(await file.path(), 'utf8');
    expect(JSON.parse(text)).to.include({ id: session, kind: 'issuance' });
    expect(text).not.to.include(PERSON);
    await confirm(page, 'Delete');
    await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
    const gone = await shop.call('GET', `/session/${session}`, undefined, shop.acme.token);
    expect(gone.status).to.equal(404);
  });

  it('has its webhook made again after it failed', async () => {
    shop.backend.on('/told', (response) => response.writeHead(503).end());
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
    const asked = await shop.ask('told');
    await shop.present(asked, await shop.issue());
    const page = await look(asked.session, 'asker');
    await page.getByText(/^Webhook of the presentation: failed \(503, \d+ ms\)/).waitFor();
    shop.backend.on('/told', { json: {} });
    await confirm(page, 'Resend');
    await page.getByText('The delivery is delivered.').waitFor();
    await page.getByText(/^Webhook of the presentation: delivered \(200, \d+ ms\)/).waitFor();
    const calls = shop.backend.calls.filter(({ path }) => path === '/told');
    const keys = new Set(calls.map(({ headers }) => headers['idempotency-key']));
    expect([calls.length > 1, keys.size]).to.deep.equal([true, 1]);
  });
});
