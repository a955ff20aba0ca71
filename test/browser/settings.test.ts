import { expect } from 'chai';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

describe('settings page', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  it('shows the operator each setting with its source, and no secret', async () => {
    const page = await visitors.asOperator('settings');
    const table = page.getByRole('table', { name: 'Settings' });
    const row = (name: string) => table.locator('tr', { has: page.locator('td:first-child', { hasText: new RegExp(`^${name}$`) }) });
    await row('STATUS_TTL').getByText('default', { exact: true }).waitFor();
    await row('MASTER_SECRET').getByText('set', { exact: true }).waitFor();
    await row('METRICS_TOKEN').getByText('not set', { exact: true }).waitFor();
    expect(await page.content()).not.to.include('a master secret for the tests');
    expect(await page.content()).not.to.include('root-secret-for-the-tests');
    await expectAccessible(page, 'settings');
  });

  it('is filtered and sorted by the service', async () => {
    const page = await visitors.asOperator('settings', { width: 390, dark: true });
    const table = page.getByRole('table', { name: 'Settings' });
    await page.getByLabel('Name or meaning').fill('least severe');
    await table.getByText('STATUS_TTL').waitFor({ state: 'detached' });
    await table.getByText('LOG_LEVEL').waitFor();
    expect(page.url()).to.include('q=least');
    await page.getByLabel('Name or meaning').fill('Bearer abcdefgh');
    await page.getByText('the service is not asked for it').waitFor();
    await page.waitForTimeout(500);
    expect(page.url()).to.include('q=least');
    await page.getByLabel('Name or meaning').fill('least severe');
    await page.getByLabel('From').selectOption('default');
    await page.getByText('No setting fits.').waitFor();
    await expectFits(page, 'settings at 390 px');
    await expectAccessible(page, 'settings in the dark');
  });

  it('is hidden from clients of tenants', async () => {
    const page = await visitors.as(['clients:manage', 'issuance:manage'], 'settings');
    await page.getByRole('link', { name: 'Health' }).waitFor();
    expect(await page.getByRole('link', { name: 'Settings' }).count()).to.equal(0);
  });
});
