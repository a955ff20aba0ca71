import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible } from './support/accessible.ts';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';
import { hindrances, LOOKS, lookAs } from './support/for-everybody.ts';
import { play } from './support/played.ts';

/** Of what a list leads to, so many are looked at. */
const OF_EACH = 2;

describe('every page of the console', function () {
  this.timeout(180_000);
  let served: ConsoleService;
  let window: Watched;
  let page: Page;
  const refused: string[] = [];

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    window = await served.open('try');
    ({ page } = window);
    page.on('response', async (answer) => {
      const { authorization = '' } = answer.request().headers();
      // Tokens of the phone are refused by what it does wrong.
      const isOfConsole = /^Bearer /.test(authorization) && !answer.url().includes('-credential');
      if (isOfConsole && [401, 403, 404].includes(answer.status()) && !isOfPhone(answer.url()))
        refused.push(`${answer.status()} ${answer.url()} at ${page.url()}`);
    });
    await play(page);
  });
  after(() => served?.close());

  const isOfPhone = (address: string) => /\/(credential|notification|nonce)$/.test(new URL(address).pathname);
  const hrefs = async (selector: string) =>
    (await page.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ hash }) => hash)`,
    )) as string[];
  const goTo = async (place: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    await page.locator('main h1').waitFor();
    await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
  };

  it('can be used by everybody, however they look at it, and asks for nothing that is refused', async () => {
    const clients = (await page.evaluate(
      '[...document.querySelectorAll(".who option")].map(({ value }) => value)',
    )) as string[];
    expect(clients).to.have.length(3);
    const found: string[] = [];
    for (const client of clients) {
      await page.getByLabel('You are').selectOption(client);
      const pages = await hrefs('nav.side a');
      const places = [...pages];
      for (const place of places) {
        await goTo(place);
        if (pages.includes(place)) {
          places.push(
            ...(await hrefs('main table a')).filter((inner) => !places.includes(inner)).slice(0, OF_EACH),
          );
          if (/#(credentials|questions)$/.test(place)) places.push(`${place}/new`);
        }
        for (const look of LOOKS) {
          await lookAs(page, look);
          const faults = await hindrances(page);
          found.push(...faults.map((fault) => `${place} of ${client}, ${look.name}: ${fault}`));
          if (look.media?.forcedColors === 'active') await expectAccessible(page, `${place}, ${look.name}`);
        }
      }
    }
    expect([...new Set(found)].join('\n')).to.equal('');
    expect(refused).to.deep.equal([]);
    expect(window.faults).to.deep.equal([]);
  });
});
