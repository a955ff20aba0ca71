import { expect } from 'chai';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

describe('health page', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  it('shows the state, the version and links to details without a login', async () => {
    const page = await visitors.as(['issuance:offer'], 'health');
    await page.getByText('Everything works.').waitFor();
    const parts = page.getByRole('list', { name: 'What the service depends on' }).getByRole('listitem');
    expect(await parts.count()).to.be.greaterThan(0);
    for (const part of await parts.allTextContents()) expect(part).to.match(/ up$/);
    await page.getByText('npx vidimus doctor').waitFor();
    const { body } = await visitors.served.service.call('GET', '/');
    await page.getByText(`vidimus ${body['version']}`).waitFor();
    expect(await page.getByRole('link', { name: 'API reference' }).getAttribute('href')).to.equal(body['documentation']);
    await expectAccessible(page, 'health');
  });

  it('shows the failed components of a service that answers 503, and repeats the check', async () => {
    const page = await visitors.asOperator('tenants', { width: 390, dark: true });
    let isDown = true;
    await page.route('**/health', (route) => {
      const database = { status: isDown ? 'down' : 'up' };
      return route.fulfill({
        status: isDown ? 503 : 200,
        json: { status: isDown ? 'error' : 'ok', info: {}, error: {}, details: { database } },
      });
    });
    await page.evaluate('location.hash = "health"');
    await page.getByText('The service does not work').waitFor();
    await page.getByRole('listitem').filter({ hasText: 'database' }).getByText('down').waitFor();
    await expectAccessible(page, 'a part is down');
    await expectFits(page, 'health at 390 px');
    isDown = false;
    await page.getByRole('button', { name: 'Look again' }).click();
    await page.getByText('Everything works.').waitFor();
  });
});
