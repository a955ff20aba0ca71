import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible } from './support/accessible.ts';
import { focused, heardOf, press } from './support/keyboard.ts';
import { Visitors } from './support/visitors.ts';

describe('the page of a tenant', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  const confirm = async (page: Page, name: string, title: string) => {
    await press(page, name);
    await page.getByRole('dialog', { name: title }).getByRole('button', { name }).click();
  };
  const statusOf = async (id: string) => {
    const token = await visitors.served.service.rootToken();
    return (await visitors.served.service.call('GET', `/tenant/${id}`, { token })).body?.status;
  };

  it('is led to by its row, and leads to its audit log', async () => {
    const page = await visitors.asOperator('tenants');
    await page.getByRole('row', { name: /acme/ }).getByRole('link', { name: 'acme' }).click();
    await page.getByRole('heading', { name: 'Tenant acme' }).waitFor();
    expect(await focused(page)).to.equal('Tenant acme');
    await page.getByText('acme-admin').waitFor();
    expect(await page.getByRole('button', { name: /^Go on as/ }).count()).to.equal(0);
    await expectAccessible(page, 'a tenant');
    await page.getByRole('link', { name: 'Audit log of acme' }).click();
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
    await page
      .getByLabel('Log of')
      .locator('option:checked', { hasText: 'acme' })
      .waitFor({ state: 'attached' });
  });

  it('suspends and activates it, and asks before', async () => {
    const page = await visitors.asOperator('tenants/acme');
    await confirm(page, 'Suspend', 'Suspend acme?');
    await heardOf(page, /acme serves nobody now/);
    expect(await statusOf('acme')).to.equal('suspended');
    await confirm(page, 'Activate', 'Activate acme?');
    await heardOf(page, /acme serves again/);
    expect(await statusOf('acme')).to.equal('active');
  });

  it('deletes it for who writes its id, and goes on as clients that one is logged in as', async () => {
    const page = await visitors.asOperator('tenants');
    await press(page, 'New tenant');
    const dialog = page.getByRole('dialog', { name: 'New tenant' });
    await dialog.getByLabel(/^Id/).fill('short-lived');
    await dialog.getByLabel(/^Name/).fill('Short-lived');
    await dialog.getByRole('button', { name: 'New tenant' }).click();
    await heardOf(page, /you are its administrator now/);
    await page.getByLabel('You are').selectOption('root');
    await page.evaluate('location.hash = "#tenants/short-lived"');
    await page.getByRole('button', { name: 'Go on as short-lived-admin' }).click();
    await page.getByRole('heading', { name: 'Credentials' }).waitFor();
    await page.getByLabel('You are').selectOption('root');
    await page.evaluate('location.hash = "#tenants/short-lived"');
    await press(page, 'Delete');
    const question = page.getByRole('dialog', { name: 'Delete short-lived?' });
    await question.getByLabel('Its id, to be sure').fill('acme');
    await question.getByRole('button', { name: 'Delete' }).click();
    await heardOf(page, /That is another id/);
    await question.getByLabel('Its id, to be sure').fill('short-lived');
    await question.getByRole('button', { name: 'Delete' }).click();
    await heardOf(page, /short-lived is gone/);
    // The status of the refusal.
    expect(await statusOf('short-lived')).to.equal(404);
  });
});
