import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { SimulatedWallet } from '../../packages/wallet/src/core/index.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';
import { comesToBe } from './support/keyboard.ts';

type Client = { readonly clientId: string; readonly secret: string };

const ROLES = ['clients:manage', 'issuance:manage', 'issuance:offer'];
const CREDENTIAL = {
  id: 'badge',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] },
  vct: 'urn:example:badge:1',
  claims: { member: 'yes' },
  disclosureFrame: { _sd: ['member'] },
  statusManagement: true,
  lifeTime: 86_400,
};

describe('status list page of the console', function () {
  this.timeout(60_000);
  let served: ConsoleService;
  let issuer: Client;
  let window: Watched;
  let page: Page;
  let session: string;
  let index: number;

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    const { service } = served;
    const json = { id: 'club', name: 'Club', roles: ROLES };
    const made = await service.call('POST', '/tenant', { token: await service.rootToken(), json });
    issuer = made.body.clients[0];
    window = await served.openAs('status', issuer.clientId, issuer.secret);
    ({ page } = window);
  });
  after(() => served?.close());
  afterEach(() => expect(window.faults).to.deep.equal([]));

  const call = async (method: string, path: string, json?: object) => {
    const { service } = served;
    const token = await service.token(issuer.clientId, issuer.secret);
    return (await service.call(method, path, { token, ...(json && { json }) })).body;
  };
  const seen = () => page.getByRole('region', { name: 'As a verifier sees it' });
  const press = (name: string) => page.getByRole('button', { name, exact: true }).first().click();

  /** As somebody at the counter does it. */
  async function change(status: string, reason = ''): Promise<void> {
    await press('Revoke or restore');
    const dialog = page.getByRole('dialog', { name: 'Revoke, suspend or restore' });
    await dialog.getByLabel('Session that issued').fill(session);
    await dialog.getByLabel('They are').selectOption(status);
    await dialog.getByLabel('Reason').fill(reason);
    await dialog.getByRole('button', { name: 'Revoke or restore' }).click();
  }

  it('explains the empty list', async () => {
    await page.getByText('The first credential that can be revoked makes one').waitFor();
    await expectAccessible(page, 'empty');
  });

  it('creates a status list, and shows its public token', async () => {
    await call('PUT', '/status-list-config', { bits: 2, capacity: 10_000, immediateUpdate: true });
    await press('New list');
    await expectAccessible(page, 'a new list');
    const dialog = page.getByRole('dialog', { name: 'New list' });
    await dialog.getByRole('button', { name: 'New list' }).click();
    await seen().getByText('10,000 entries: 10,000 valid.').waitFor();
    await page.getByText('0 of 10,000 (0 %)').waitFor();
    await expectAccessible(page, 'a list');
  });

  it('shows an entry before and after it is suspended, restored and revoked', async () => {
    await call('POST', '/issuer/credentials', CREDENTIAL);
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['badge'] };
    const made = await call('POST', '/issuer/offer', offer);
    session = made.session;
    const wallet = new SimulatedWallet();
    const { credentials } = await wallet.accept(await wallet.readOffer(made.uri));
    index = credentials[0]?.status?.index ?? -1;
    await press('Read it again');
    for (const [status, name] of [
      ['2', 'suspended'],
      ['0', 'valid'],
      ['1', 'revoked'],
    ] as const) {
      await change(status, status === '1' ? 'The card was lost' : '');
      await page.getByRole('status').getByText(`1 credential is ${name} now.`).waitFor();
      await seen().getByLabel('Entry, the idx').fill(String(index));
      await seen().getByText(`Entry ${index} is ${name}`).waitFor();
    }
    await seen().getByText('10,000 entries: 9,999 valid, 1 revoked.').waitFor();
    await seen().getByLabel('Entry, the idx').fill('10000');
    await seen().getByText('The list has no entry 10000.').waitFor();
    await expectAccessible(page, 'after a revocation');
  });

  it('draws revoked entries in another colour at their position', async () => {
    const pixel = `(() => { const canvas = document.querySelector('.bitmap canvas');
      return [...canvas.getContext('2d').getImageData(${index} % canvas.width, Math.floor(${index} / canvas.width), 1, 1).data]; })()`;
    await comesToBe(page, `String(${pixel}) === '185,28,28,255'`);
  });

  it('finds the entry of a session, and scrolls to its position in the picture', async () => {
    await page.goto(`${served.address}/console#status`);
    const find = page.getByRole('region', { name: 'Find by session' });
    await find.getByRole('button', { name: 'Find' }).click();
    await find.getByText('Enter the id of a session').waitFor();
    await find.getByLabel('Session').fill('nobodys-session');
    await find.getByRole('button', { name: 'Find' }).click();
    await find.getByText('there is no such session').waitFor();
    await find.getByLabel('Session').fill(session);
    await find.getByRole('button', { name: 'Find' }).click();
    const row = find.getByRole('table', { name: 'Entries of the session' }).getByRole('row').nth(1);
    await row.getByText('revoked').waitFor();
    await expectAccessible(page, 'found by session');
    await row.getByRole('link', { name: String(index), exact: true }).click();
    await seen().getByText(`Entry ${index} is revoked`).waitFor();
    const offset = await page.evaluate(`(() => {
      const [canvas, here] = ['.bitmap canvas', '.bitmap .here'].map((name) => document.querySelector(name).getBoundingClientRect());
      const [width, height] = [document.querySelector('.bitmap canvas').width, document.querySelector('.bitmap canvas').height];
      const [x, y] = [here.x + here.width / 2 - canvas.x, here.y + here.height / 2 - canvas.y];
      return Math.floor(x / canvas.width * width) + width * Math.floor(y / canvas.height * height);
    })()`);
    expect(offset, 'the ring is around its point').to.equal(index);
    const inView = `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector('.bitmap .here').getBoundingClientRect())`;
    await comesToBe(page, inView, 'the ring is in view');
    await expectAccessible(page, 'an entry in the picture');
  });

  it('shows the reason of a status change to readers of the audit log', async () => {
    await page.goto(`${served.address}/console#sessions/${session}`);
    const record = page.getByRole('region', { name: 'On record' });
    await record.getByText('revoked by club-admin').getByText('“The card was lost”').waitFor();
    await expectAccessible(page, 'on record');
    await page.getByRole('link', { name: 'Its entries in the status lists' }).click();
    await page.getByRole('table', { name: 'Entries of the session' }).waitFor();
    await page.goto(`${served.address}/console#audit?kind=session&action=revoked`);
    await page.getByRole('table', { name: 'Audit log' }).locator('summary').first().click();
    await page.getByText('The card was lost').waitFor();
    await page.goto(`${served.address}/console#status`);
    await page.getByRole('region', { name: 'Status lists' }).getByRole('link').first().click();
    await seen().getByText('10,000 entries').waitFor();
  });

  it('warns that a revocation is permanent', async () => {
    await change('0');
    const dialog = page.getByRole('dialog', { name: 'Revoke, suspend or restore' });
    await dialog.getByRole('alert').getByText('409').waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
  });

  it('shows how long verifiers may cache the list, and offers lists with free entries', async () => {
    await call('PUT', '/status-list-config', { bits: 1, capacity: 1_000, immediateUpdate: false });
    await call('POST', '/issuer/credentials', { ...CREDENTIAL, id: 'plain' });
    const list = await call('POST', '/status-lists', { credentialConfigurationId: 'plain' });
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['plain'] };
    const made = await call('POST', '/issuer/offer', offer);
    const wallet = new SimulatedWallet();
    const { credentials } = await wallet.accept(await wallet.readOffer(made.uri));
    const place = credentials[0]?.status?.index ?? -1;
    await page.goto(`${served.address}/console#status/${list.id}?entry=${place}`);
    await seen().getByText(`Entry ${place} is valid, or given to nobody.`).waitFor();
    await press('Revoke or restore');
    const dialog = page.getByRole('dialog', { name: 'Revoke, suspend or restore' });
    await dialog.locator('option[value="2"]:disabled', { hasText: 'not in a list of 1 bit' }).waitFor({ state: 'attached' });
    await dialog.getByLabel('Session that issued').fill(made.session);
    await dialog.getByRole('button', { name: 'Revoke or restore' }).click();
    await page.getByRole('status').getByText('1 credential is revoked now.').waitFor();
    const { expiresAt } = await call('GET', `/status-lists/${list.id}`);
    const end = await page.evaluate(`new Date('${expiresAt}').toLocaleTimeString(undefined, { timeStyle: 'short' })`);
    await seen().getByText(`Entry ${place} is still valid in this copy.`).waitFor();
    const delay = `It is signed again by ${end}.`;
    await seen().getByText(`Entry ${place} is revoked in the database.`).filter({ hasText: delay }).waitFor();
    await page.getByRole('table', { name: 'Entries of the session' }).getByText('revoked').waitFor();
    await expectAccessible(page, 'a list that lags behind');
  });

  it('shows a status list of a million entries', async () => {
    const { id } = await call('POST', '/status-lists', { bits: 1, capacity: 1_000_000 });
    await page.goto(`${served.address}/console#status/${id}`);
    await seen().getByText('1,000,000 entries: 1,000,000 valid.').waitFor();
  });

  it('is hidden from a client without the right to read status lists', async () => {
    const secret = 'secret-of-the-counter-0123456789';
    await call('POST', '/client', { clientId: 'counter', roles: ['issuance:offer'], secret });
    const other = await served.openAs('status', 'counter', secret);
    await other.page.getByRole('heading', { level: 1 }).waitFor();
    expect(await other.page.getByRole('link', { name: 'Status' }).count()).to.equal(0);
    await other.context.close();
  });

  it('fits a small, dark screen and works by keyboard', async () => {
    const look = { width: 390, height: 844, dark: true };
    const small = await served.openAs('status', issuer.clientId, issuer.secret, look);
    const link = small.page.getByRole('region', { name: 'Status lists' }).getByRole('link').first();
    await link.focus();
    await expectFits(small.page, 'the lists');
    await expectAccessible(small.page, 'the lists, dark');
    await small.page.keyboard.press('Enter');
    await small.page.getByText('entries:').waitFor();
    await small.page.getByText('The token, decoded').focus();
    await small.page.keyboard.press('Enter');
    await small.page.getByText('"statuslist+jwt"').waitFor();
    await expectFits(small.page, 'a list');
    await expectAccessible(small.page, 'a list, dark');
    expect(small.faults).to.deep.equal([]);
  });
});
