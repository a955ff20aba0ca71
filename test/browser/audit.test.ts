import { expect } from 'chai';
import { ACTIONS, KINDS } from '../../adapters/http/console/app/pages/audit/audit-words.ts';
import { AUDIT_ACTIONS, AUDIT_KINDS } from '../../domain/audit/audit-entry.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

describe('the page of the audit log', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    const json = { roles: ['issuance:offer'], clientId: 'planted' };
    await visitors.served.service.call('POST', '/client', { token: visitors.token, json });
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  it('offers what the interface filters by', () => {
    expect(KINDS).to.have.members(AUDIT_KINDS);
    expect(ACTIONS).to.have.members(AUDIT_ACTIONS);
  });

  it('tells who did what, and is filtered and sorted by the service', async () => {
    const page = await visitors.as(['clients:manage'], 'audit');
    const table = page.getByRole('table', { name: 'Audit log' });
    await table.getByText('planted').first().waitFor();
    await expectAccessible(page, 'audit log');
    await page.getByLabel('Kind').selectOption('key-chain');
    await table.getByText('planted').waitFor({ state: 'detached' });
    await table.getByText('trust-list', { exact: true }).waitFor();
    expect(page.url()).to.include('kind=key-chain');
    await page.getByLabel('Kind').selectOption('');
    await page.getByLabel('Id of the thing').fill('planted');
    await page.getByLabel('Id of the thing').press('Enter');
    await table.getByText('signing', { exact: true }).waitFor({ state: 'detached' });
    await table.locator('summary').first().click();
    await table.getByText('is ["issuance:offer"]').waitFor();
    await page.getByLabel('Id of the thing').fill('');
    await page.getByLabel('Id of the thing').press('Enter');
    await page.getByRole('button', { name: /Number/ }).click();
    await table.getByRole('row').nth(1).getByRole('cell').first().getByText('1', { exact: true }).waitFor();
  });

  it('has the command that verifies it', async () => {
    const page = await visitors.as(['clients:manage'], 'audit');
    await page.getByText('Was anything altered or removed?').click();
    await page.getByText('npm run audit:verify').waitFor();
    await page.getByRole('button', { name: 'Copy the command' }).waitFor();
    await expectAccessible(page, 'how to verify');
  });

  it('shows the operator that of the service, and of each tenant', async () => {
    const page = await visitors.asOperator('audit');
    const table = page.getByRole('table', { name: 'Audit log' });
    await table.getByText('begun').waitFor();
    await page.getByLabel('Log of').selectOption('acme');
    await table.getByText('planted').first().waitFor();
  });

  it('fits a phone in the dark', async () => {
    const page = await visitors.as(['clients:manage'], 'audit', { width: 390, dark: true });
    await page.getByText('planted').first().waitFor();
    await expectFits(page, 'audit log at 390 px');
    await expectAccessible(page, 'audit log in the dark');
  });
});
