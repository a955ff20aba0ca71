import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible } from './support/accessible.ts';
import { focused, heardOf, press } from './support/keyboard.ts';
import { Visitors } from './support/visitors.ts';

describe('tenant page', function () {
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

  it('is linked from the row of the tenant, and links to its audit log', async () => {
    const page = await visitors.asOperator('tenants');
    await page.getByRole('row', { name: /acme/ }).getByRole('link', { name: 'acme' }).click();
    await page.getByRole('heading', { name: 'Tenant acme' }).waitFor();
    expect(await focused(page)).to.equal('Tenant acme');
    await page.getByText('acme-admin').waitFor();
    expect(await page.getByRole('button', { name: /^Go on as/ }).count()).to.equal(0);
    await expectAccessible(page, 'a tenant');
    await page.getByRole('link', { name: 'Audit log of acme' }).click();
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
    await page.getByLabel('Log of').locator('option:checked', { hasText: 'acme' }).waitFor({ state: 'attached' });
  });

  it('suspends and activates the tenant after a confirmation', async () => {
    const page = await visitors.asOperator('tenants/acme');
    await confirm(page, 'Suspend', 'Suspend acme?');
    await heardOf(page, /acme serves nobody now/);
    expect(await statusOf('acme')).to.equal('suspended');
    await confirm(page, 'Activate', 'Activate acme?');
    await heardOf(page, /acme serves again/);
    expect(await statusOf('acme')).to.equal('active');
  });

  it('deletes the tenant after its id was typed, and continues with the other logged in clients', async () => {
    const page = await visitors.asOperator('tenants');
    await press(page, 'New tenant');
    const dialog = page.getByRole('dialog', { name: 'New tenant' });
    await dialog.getByLabel(/^Id/).fill('short-lived');
    await dialog.getByLabel(/^Name/).fill('Short-lived');
    await dialog.getByRole('button', { name: 'New tenant' }).click();
    await heardOf(page, /logged in as its administrator, too/);
    const shown = page.getByRole('dialog', { name: 'The secret of short-lived-admin' });
    const secret = await shown.locator('code').innerText();
    expect(await visitors.served.service.token('short-lived-admin', secret)).to.be.a('string');
    await expectAccessible(page, 'the secret of an administrator');
    await shown.getByRole('button', { name: 'I have it' }).click();
    await page.locator('.secret').waitFor({ state: 'detached' });
    await page.getByRole('heading', { name: 'Tenant short-lived' }).waitFor();
    expect(await page.content()).to.not.include(secret);
    expect(await page.getByLabel('You are').inputValue()).to.equal('root');
    const next = page.getByRole('region', { name: 'Next' });
    await next.getByRole('link', { name: /make a question/ }).waitFor();
    await expectAccessible(page, 'a new tenant');
    await next.getByRole('link', { name: /make a credential/ }).click();
    await page.getByRole('heading', { name: 'New credential' }).waitFor();
    expect(await page.getByLabel('You are').inputValue()).to.equal('short-lived-admin');
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

  it('shows no data of another tenant after a change of the client', async () => {
    const { service } = visitors.served;
    const json = { id: 'other', name: 'Other', roles: ['presentation:manage'] };
    const made = await service.call('POST', '/tenant', { token: await service.rootToken(), json });
    const [{ clientId, secret }] = made.body.clients;
    const token = await service.token(clientId, secret);
    const question = { id: 'theirs', dcql_query: { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] } }] } };
    expect((await service.call('POST', '/verifier/config', { token, json: question })).status).to.equal(201);
    const page = await visitors.as(['presentation:manage'], 'questions');
    const me = await page.getByLabel('You are').inputValue();
    await page.getByRole('button', { name: /^Add/ }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Log in as another client' });
    await dialog.getByLabel('Client id').fill(clientId);
    await dialog.getByLabel('Client secret').fill(secret);
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.evaluate('location.hash = "#questions/theirs"');
    await page.getByRole('heading', { name: 'theirs' }).waitFor();
    await page.getByLabel('You are').selectOption(me);
    await page.getByText('It belongs to other, as whose client you opened it.').waitFor();
    await expectAccessible(page, 'of another');
    await page.getByRole('button', { name: `Go back to being ${clientId}` }).click();
    await page.getByText('In words').first().waitFor();
    expect(await page.getByLabel('You are').inputValue()).to.equal(clientId);
  });

  it('removes the tenant from the address when another page is shown', async () => {
    const page = await visitors.asOperator('settings');
    await page.evaluate('location.hash = "#sessions/of-somebody"');
    await page.waitForURL(/#try$/);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    expect(await page.getByRole('link', { name: 'Playground' }).getAttribute('aria-current')).to.equal('page');
  });
});
