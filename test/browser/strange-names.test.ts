import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createResource, offerBody } from '../support/populated.ts';
import { expectAccessible } from './support/accessible.ts';
import { openWindow, type Watched } from './support/browser.ts';
import { hindrances, LOOKS, lookAs } from './support/for-everybody.ts';
import { Visitors } from './support/visitors.ts';

/** Markup, an override that turns what follows around (U+202E), and no place to break. */
const NAME = `"><img src=x onerror="document.title='hit'"><script>document.title='hit'</script>\u202E${'x'.repeat(90)}`;
const ROLES = ['clients:manage', 'issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request'];
const CARD = {
  id: 'card',
  vct: `urn:${'y'.repeat(180)}`,
  description: NAME,
  config: {
    format: 'dc+sd-jwt',
    display: [{ name: NAME, locale: 'en', description: NAME, background_color: '#ffcc00', text_color: '#ffcc01' }],
    claims: [{ path: ['z'.repeat(100)], display: [{ name: NAME, locale: 'en' }] }],
  },
  statusManagement: true,
  claims: { ['z'.repeat(100)]: NAME },
};
const QUESTION = {
  id: 'asks',
  description: NAME,
  dcql_query: {
    credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: [CARD.vct] }, claims: [{ path: ['z'.repeat(100)] }] }],
  },
};

describe('malicious names', function () {
  this.timeout(120_000);
  let visitors: Visitors;
  let offer: { uri: string; pageUrl: string };
  let asked: { uri: string; pageUrl: string };

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    const { served, token } = visitors;
    const post = (path: string, json: object) => createResource(served.service, token, path, json);
    await post('/issuer/config', { display: [{ name: NAME, locale: 'en' }] });
    await post('/issuer/credentials', CARD);
    await post('/verifier/config', QUESTION);
    offer = await make();
    asked = await ask();
    await post('/client', { clientId: 'a'.repeat(128), roles: ['issuance:offer'], description: NAME });
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  const make = () =>
    createResource(visitors.served.service, visitors.token, '/issuer/offer', { ...offerBody('card'), reference: NAME.slice(0, 100) });
  const ask = () =>
    createResource(visitors.served.service, visitors.token, '/verifier/offer', {
      response_type: 'uri',
      requestId: 'asks',
      reference: NAME.slice(0, 100),
    });
  const expectUnbroken = async (page: Page, what: string) => {
    const found: string[] = [];
    for (const look of LOOKS.slice(0, 4)) {
      await lookAs(page, look);
      found.push(...(await hindrances(page)).map((fault) => `${look.name}: ${fault}`));
    }
    expect([...new Set(found)].join('\n'), what).to.equal('');
    expect(await page.title(), what).not.to.equal('hit');
    expect(await page.locator('img[src="x"]').count(), what).to.equal(0);
  };

  it('run no script in the console, and do not make a page wider than its window', async () => {
    const page = await visitors.as(ROLES, 'sessions');
    const hrefs = async (selector: string) =>
      (await page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ hash }) => hash)`)) as string[];
    const pages = await hrefs('nav.side a');
    const places = [...pages];
    for (const place of places) {
      await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
      await page.locator('main h1').waitFor();
      await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
      if (pages.includes(place)) places.push(...(await hrefs('main table a')));
      await expectUnbroken(page, place);
    }
    expect(places.length).to.be.greaterThan(pages.length + 3);
  });

  it('run no script in the phone', async () => {
    const page = await visitors.as(ROLES, 'phone');
    const open = async (link: string) => {
      await page.getByLabel('Link of an offer or a request').fill(link);
      await page.getByRole('button', { name: 'Open in the phone' }).click();
    };
    await open(offer.uri);
    await page.getByRole('heading', { name: 'Add to this phone?' }).waitFor();
    await expectUnbroken(page, 'consent');
    await page.locator('.phone').getByRole('button', { name: 'Add' }).click();
    await page.locator('.wallet-card summary').click();
    await expectUnbroken(page, 'a card');
    await open(asked.uri);
    await page.getByRole('button', { name: 'Show' }).waitFor();
    await expectUnbroken(page, 'asked');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.locator('.phone .outcome').waitFor();
    await expectUnbroken(page, 'shown');
  });

  it('run no script on end-user pages, and do not reverse the direction of other texts', async () => {
    const { context, page, faults } = (await openWindow(visitors.served.browser, visitors.served.address)) as Watched;
    for (const address of [(await make()).pageUrl, (await ask()).pageUrl]) {
      await page.goto(address);
      await expectUnbroken(page, address);
      await expectAccessible(page, address);
      // What is ours stands in a block of its own, or beside an isolated name.
      const outside = (await page.evaluate(
        `[...document.querySelectorAll('main *, header *')].filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.includes('\\u202E')))
          .map((one) => one.tagName + ' ' + getComputedStyle(one).unicodeBidi + ' ' + getComputedStyle(one).display)`,
      )) as string[];
      expect(outside.length, address).to.be.greaterThan(1);
      expect(
        [...new Set(outside)].filter((one) => /inline/.test(one) && !/isolate/.test(one)),
        address,
      ).to.deep.equal([]);
    }
    expect(faults).to.deep.equal([]);
    await context.close();
  });
});
