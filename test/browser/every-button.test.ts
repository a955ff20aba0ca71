import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';
import { expectFocus } from './support/keyboard.ts';
import { play } from './support/played.ts';

/** Of what a list leads to, so many are looked at. */
const OF_EACH = 2;
const MOST = 25;
const BUTTONS = 'main :is(button, summary, a[href])';

describe('every button of the console', function () {
  this.timeout(240_000);
  let served: ConsoleService;
  let window: Watched;
  let page: Page;

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    window = await served.open('try');
    ({ page } = window);
    await play(page);
  });
  after(() => served?.close());
  afterEach(() => expect(window.faults).to.deep.equal([]));

  const goTo = async (place: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    await page.locator('main h1').waitFor();
    await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
  };
  const hrefs = async (selector: string) =>
    (await page.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ hash }) => hash)`,
    )) as string[];
  const buttons = () => page.locator(`${BUTTONS} >> visible=true`);
  const activeIs = (expression: string) => page.evaluate(`document.activeElement ${expression}`);

  /** Presses the button; a dialog is left again. */
  const tryButton = async (index: number, what: string) => {
    const button = buttons().nth(index);
    await button.focus();
    await page.keyboard.press('Enter');
    await expectFocus(page, what);
    if ((await page.locator('dialog[open]').count()) === 0) return;
    expect(await activeIs('.closest("dialog") !== null'), `within the dialog of ${what}`).to.equal(true);
    await page.keyboard.press('Escape');
    await page.locator('dialog[open]').waitFor({ state: 'detached' });
    expect(await activeIs(`.textContent === ${JSON.stringify(await button.textContent())}`), what).to.equal(
      true,
    );
  };

  it('is used by the keyboard, opens and leaves its dialog, and the focus is never lost', async () => {
    const clients = (await page.evaluate(
      '[...document.querySelectorAll(".who option")].map(({ value }) => value)',
    )) as string[];
    let tried = 0;
    for (const client of clients) {
      await page.getByLabel('You are').selectOption(client);
      const pages = (await hrefs('nav.side a')).filter((place) => place !== '#try');
      const places = [...pages];
      for (const place of places) {
        await goTo(place);
        if (pages.includes(place))
          places.push(
            ...(await hrefs('main table a')).filter((inner) => !places.includes(inner)).slice(0, OF_EACH),
          );
        for (let index = 0; index < MOST && index < (await buttons().count()); index++) {
          const button = buttons().nth(index);
          if (!(await button.isEnabled())) continue;
          const name = (await button.innerText()).trim();
          // They leave the console.
          if (/^API reference|^Download/.test(name)) continue;
          await tryButton(index, `${name} at ${place} of ${client}`);
          tried++;
          await page.getByLabel('You are').selectOption(client);
          if (`#${page.url().split('#')[1]}` !== place) await goTo(place);
        }
      }
    }
    expect(tried).to.be.greaterThan(100);
  });
});
