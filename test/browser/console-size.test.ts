import { expect } from 'chai';
import { openBrowser } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';

/** docs/reference/console.md says so. */
const FIRST_BYTES = 42_000;
const PHONE_BYTES = 260_000;
/** On a machine that does other things, too. */
const FIRST_PICTURE_MS = 2_000;

describe('scripts of the console', function () {
  this.timeout(60_000);
  let served: ConsoleService;

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
  });
  after(() => served?.close());

  it('stay within their size limits, and the phone is loaded only in the playground', async () => {
    const { page, faults } = await served.open('tenants');
    await page.getByRole('heading', { name: 'Tenants', level: 1 }).waitFor();
    const loaded = async () =>
      (await page.evaluate(
        'performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).filter(({ name }) => name.includes("/console")).reduce((sum, { transferSize }) => sum + transferSize, 0)',
      )) as number;
    const first = await loaded();
    const painted = (await page.evaluate('performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0')) as number;
    console.log(`      ${first} bytes, first picture after ${Math.round(painted)} ms`);
    expect(first).to.be.within(1_000, FIRST_BYTES);
    expect(painted).to.be.at.most(FIRST_PICTURE_MS);
    await page.goto(`${served.address}/console#try`);
    await page.getByRole('button', { name: 'Begin' }).waitFor();
    await page.waitForLoadState('networkidle');
    const phone = (await loaded()) - first;
    console.log(`      ${phone} bytes with the phone`);
    expect(phone).to.be.at.most(PHONE_BYTES);
    expect(faults).to.deep.equal([]);
  });
});
