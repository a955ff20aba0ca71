import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';
import { press } from './support/keyboard.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** Two tenants, a type, a question and a webhook of one's own, and nothing typed but in the browser. */
describe('first issuer and verifier created in the console', function () {
  this.timeout(90_000);
  let served: ConsoleService;
  let window: Watched;
  let page: Page;
  let backend: Server;
  const heard: string[] = [];

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    backend = createServer(async (request, response) => {
      heard.push(Buffer.concat(await request.toArray()).toString());
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
    window = await served.open('tenants');
    ({ page } = window);
  });
  after(async () => {
    backend?.close();
    await served?.close();
  });
  afterEach(() => expect(window.faults).to.deep.equal([]));

  const asRoot = () => page.getByLabel('You are').selectOption('root');
  const go = (name: string) => page.getByRole('link', { name, exact: true }).first().click();
  async function tenant(id: string, name: string): Promise<void> {
    await asRoot();
    await go('Tenants');
    await press(page, 'New tenant');
    const dialog = page.getByRole('dialog', { name: 'New tenant' });
    await dialog.getByLabel(/^Id/).fill(id);
    await dialog.getByLabel(/^Name/).fill(name);
    await dialog.getByRole('button', { name: 'New tenant' }).click();
    await button(page, 'I have it').click();
    await page.getByRole('heading', { name: `Tenant ${id}` }).waitFor();
    await page.getByRole('button', { name: `Go on as ${id}-admin` }).click();
  }
  const inPhone = () => press(page, 'Open in the phone of this window');

  it('creates a tenant and a credential configuration, and issues a credential to the phone', async () => {
    await tenant('my-school', 'My school');
    await go('Credentials');
    await press(page, 'New credential');
    await page.getByLabel('Id', { exact: true }).fill('degree');
    await page.getByLabel('Name (en)').fill('Degree');
    await press(page, 'Import claims');
    const dialog = page.getByRole('dialog', { name: 'Import claims' });
    await dialog.getByLabel('From').selectOption('diploma');
    await dialog.getByRole('button', { name: 'Import claims' }).click();
    await press(page, 'Make it');
    await press(page, 'Offer it');
    await page.getByRole('dialog').getByRole('button', { name: 'Offer it' }).click();
    await inPhone();
    await press(page, 'Add', '#phone');
    await page.getByText('now in this phone').waitFor();
  });

  it('creates a second tenant that requests the credential, trusts the first tenant and notifies a backend', async () => {
    await tenant('my-shop', 'My shop');
    await go('Questions');
    await button(page, 'New question').click();
    await page.getByLabel('Id', { exact: true }).fill('which-degree');
    await page.getByLabel('A credential').selectOption('of my-school/degree');
    await button(page, 'Ask for it').click();
    await page.getByRole('checkbox', { name: 'Degree', exact: true }).check();
    await page.getByRole('button', { name: /^Trust the authority of my-school/ }).click();
    const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/presented`;
    await page.getByLabel(/^Backend that is told/).fill(url);
    await button(page, 'Make it').click();
    await button(page, 'Ask it').first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'Ask it' }).click();
    await inPhone();
    await button(page, 'Show').click();
    await page.locator('.phone .outcome').waitFor();
    expect(await page.locator('.phone .outcome').innerText()).to.include('The verifier took it');
    expect(heard.join()).to.include('degree');
    await page.goBack();
    await page.getByText('Accepted').or(page.getByText('completed')).first().waitFor();
  });
});
