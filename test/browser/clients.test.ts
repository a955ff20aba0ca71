import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

const MANAGER = ['clients:manage', 'issuance:offer', 'presentation:request'];

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const row = (page: Page, clientId: string) => page.getByRole('row').filter({ has: page.getByText(clientId, { exact: true }) });

describe('clients page', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  async function create(page: Page, clientId: string): Promise<string> {
    await button(page, 'New client').first().click();
    const dialog = page.getByRole('dialog', { name: 'New client' });
    await dialog.getByLabel('Id, unique in the whole service').fill(clientId);
    await dialog.getByRole('checkbox', { name: 'issuance:offer' }).check();
    await dialog.getByRole('button', { name: 'New client' }).click();
    const shown = page.getByRole('dialog', { name: `The secret of ${clientId}` });
    await shown.waitFor();
    return (await shown.locator('.secret code').innerText()).trim();
  }

  it('creates a client, shows its secret once, and the secret works', async () => {
    const page = await visitors.as(MANAGER, 'clients');
    const secret = await create(page, 'till');
    await expectAccessible(page, 'a secret');
    await visitors.served.service.token('till', secret);
    await button(page, 'I have it').click();
    await page.locator('.secret').waitFor({ state: 'detached' });
    await row(page, 'till').waitFor();
    expect(await page.content()).not.to.include(secret);
    await expectAccessible(page, 'clients');
  });

  it('replaces a secret, changes roles and deletes a client after a confirmation each', async () => {
    const page = await visitors.as(MANAGER, 'clients');
    const former = await create(page, 'shop');
    await button(page, 'I have it').click();
    await row(page, 'shop').getByRole('button', { name: 'New secret' }).click();
    const question = page.getByRole('dialog', { name: 'Another secret for shop?' });
    await expectAccessible(page, 'a question');
    await question.getByRole('button', { name: 'New secret' }).click();
    const shown = page.getByRole('dialog', { name: 'The secret of shop' });
    const secret = (await shown.locator('.secret code').innerText()).trim();
    expect(secret).not.to.equal(former);
    await visitors.served.service.token('shop', secret);
    await button(page, 'I have it').click();
    await row(page, 'shop').getByRole('button', { name: 'Change' }).click();
    const change = page.getByRole('dialog', { name: 'What shop may do' });
    await change.getByRole('checkbox', { name: 'presentation:request' }).check();
    expect(await change.getByRole('checkbox', { name: 'issuance:manage' }).isDisabled()).to.equal(true);
    await change.getByRole('button', { name: 'Change' }).click();
    await page.getByRole('status').getByText('has these roles now').waitFor();
    const { body } = await visitors.served.service.call('GET', '/client/shop', { token: visitors.token });
    expect(body.roles).to.have.members(['issuance:offer', 'presentation:request']);
    await row(page, 'shop').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog', { name: 'Delete shop?' }).getByRole('button', { name: 'Delete' }).click();
    await row(page, 'shop').waitFor({ state: 'detached' });
  });

  it('continues with the new secret after the logged in client replaced its own secret', async () => {
    const page = await visitors.as(MANAGER, 'clients');
    const own = row(page, 'visitor-3');
    expect(await own.getByRole('button', { name: 'Delete' }).count()).to.equal(0);
    await own.getByRole('button', { name: 'New secret' }).click();
    const question = page.getByRole('dialog', { name: 'Another secret for visitor-3?' });
    await question.getByRole('button', { name: 'New secret' }).click();
    await button(page, 'I have it').click();
    await create(page, 'made-after');
  });

  it('disables changes of a client with more roles than the logged in client', async () => {
    const page = await visitors.as(MANAGER, 'clients');
    await row(page, 'acme-admin').getByText('has roles that you do not have').waitFor();
  });

  it('works by keyboard, in dark mode and on a phone', async () => {
    const page = await visitors.as(MANAGER, 'clients', { width: 390, dark: true });
    await row(page, 'acme-admin').waitFor();
    await expectFits(page, 'clients at 390 px');
    await expectAccessible(page, 'clients in the dark');
    await button(page, 'New client').first().focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'New client' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'New client' }).waitFor({ state: 'hidden' });
  });

  it('is hidden from clients that the API rejects', async () => {
    const page = await visitors.as(['issuance:offer'], 'clients');
    await page.getByRole('link', { name: 'Sessions' }).waitFor();
    expect(await page.getByRole('link', { name: 'Clients' }).count()).to.equal(0);
    expect(await page.getByRole('link', { name: 'Audit log' }).count()).to.equal(0);
  });
});
