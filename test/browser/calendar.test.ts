import { expect } from 'chai';
import { nearness } from '../../packages/console/src/pages/calendar/nearness.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

const DAY_MS = 86_400_000;

describe('calendar page', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  it('shows how soon each object expires', () => {
    const now = new Date('2030-01-01');
    const words = [-1, 0, 1, 13, 14, 59, 60].map((days) => nearness(new Date(now.getTime() + days * DAY_MS), now).word);
    expect(words).to.deep.equal(['over', 'over', 'soon', 'soon', 'coming', 'coming', 'far']);
  });

  it('shows a manager the expiring objects and what fails after each expiry', async () => {
    const page = await visitors.as(['issuance:manage'], 'calendar');
    const table = page.getByRole('table', { name: 'What ends, the soonest first' });
    await table.getByRole('cell').nth(1).waitFor();
    await expectAccessible(page, 'calendar');
    expect(await table.getByRole('row').count()).to.be.greaterThan(1);
  });

  it('shows the operator which tenants have expiring objects', async () => {
    const token = await visitors.served.service.rootToken();
    const empty = await visitors.asOperator('calendar');
    await empty.getByText('No tenant ends by itself').waitFor();
    await expectAccessible(empty, 'no tenant ends');
    const json = { id: 'trial', name: 'A trial', endsAt: new Date(Date.now() + 3 * DAY_MS).toISOString() };
    await visitors.served.service.call('POST', '/tenant', { token, json });
    const page = await visitors.asOperator('calendar', { width: 390, dark: true });
    await page.getByRole('listitem').filter({ hasText: 'A trial' }).getByText('soon').waitFor();
    await expectAccessible(page, 'a tenant ends');
    await expectFits(page, 'tenants that end at 390 px');
  });

  it('fits a phone in dark mode', async () => {
    const page = await visitors.as(['presentation:manage', 'issuance:manage'], 'calendar', { width: 390, dark: true });
    await page.locator('td').first().waitFor();
    await expectFits(page, 'calendar at 390 px');
    await expectAccessible(page, 'calendar in the dark');
  });

  it('is hidden from clients that the API rejects', async () => {
    const page = await visitors.as(['issuance:offer'], 'calendar');
    await page.getByRole('link', { name: 'Sessions' }).waitFor();
    expect(await page.getByRole('link', { name: 'Calendar' }).count()).to.equal(0);
  });
});
