import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { TEXTS } from '../../adapters/http/pages/languages.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { CLIENT_ID, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { expectAccessible } from './support/accessible.ts';
import { openBrowser, openWindow } from './support/browser.ts';
import { hindrances, LOOKS, lookAs } from './support/for-everybody.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const LOGO =
  "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20width='80'%20height='40'%3E%3Crect%20width='80'%20height='40'/%3E%3C/svg%3E";
const CARD = {
  id: 'card',
  vct: 'urn:card:1',
  config: {
    format: 'dc+sd-jwt',
    display: [
      {
        name: 'A card with a rather long name, as offices have them',
        locale: 'en',
        description: 'For the road',
        background_color: '#ffcc00',
        logo: { uri: LOGO },
      },
    ],
    claims: [{ path: ['family_name'] }, { path: ['averyveryverylongnamethatnobodycanbreakanywhereatall'] }],
  },
  claims: { family_name: 'Lovelace' },
};
const QUESTION = {
  id: 'asks',
  dcql_query: {
    credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:card:1'] }, claims: [{ path: ['family_name'] }] }],
  },
};
/** What is evaluated on a page, which knows names that there are not here. */
const LOOK = `axe.run({ runOnly: ${JSON.stringify(TAGS)} }).then(({ violations }) => ({
  language: document.documentElement.lang,
  width: document.documentElement.scrollWidth,
  violations: violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html)),
}))`;
type Looked = { readonly language: string; readonly width: number; readonly violations: readonly string[] };
const FOCUS = `({
  name: document.activeElement.id || document.activeElement.tagName,
  style: getComputedStyle(document.activeElement).outlineStyle,
})`;
/** Texts of a page but those that say themselves in which language they are, names, and code. */
const WORDS = `(() => {
  const words = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode())
    if (!node.parentElement.closest('body [lang], code, bdi, time, strong, .card, header, svg, .cards li li'))
      words.push(node.textContent.trim());
  const time = [...document.querySelectorAll('time')].map(({ textContent }) => textContent);
  return {
    language: document.documentElement.lang,
    width: document.documentElement.scrollWidth,
    title: document.title.replace('Vidimus', ''),
    words: words.filter((word) => /\\p{L}{2}/u.test(word) && word !== 'Vidimus'),
    time,
  };
})()`;
type Words = Pick<Looked, 'language' | 'width'> & {
  readonly title: string;
  readonly words: readonly string[];
  readonly time: readonly string[];
};
/** The shortest and the longest words, and another alphabet. */
const LANGUAGES = ['en', 'bg', 'de', 'fi', 'ga'];

describe('end-user pages in a browser', function () {
  this.timeout(120_000);
  let browser: Browser | undefined;
  let service: TestService;
  let pages: Readonly<Record<string, string>>;

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    service = await startTestService();
    const { token } = await createTenant(service, 'acme');
    const post = (path: string, json: object) => createResource(service, token, path, json);
    await post('/key-chain', { id: 'keys', usages: ['signing', 'access'] });
    await post('/issuer/config', {
      display: [{ name: 'Ministry of Examples', locale: 'en', logo: { uri: LOGO } }],
      pages: { backgroundColor: '#12355b', privacyUri: 'https://ministry.example/p', supportUri: 'tel:+49' },
    });
    await post('/issuer/credentials', CARD);
    await post('/verifier/config', QUESTION);
    const offer = await post('/issuer/offer', { ...offerBody('card'), tx_code: '1234' });
    const cancelled = await post('/issuer/offer', offerBody('card'));
    await service.call('POST', `/session/${cancelled.session}/cancel`, { token });
    const request = await post('/verifier/offer', { response_type: 'uri', requestId: 'asks' });
    const coded = await post('/issuer/offer', { ...offerBody('card'), flow: 'authorization_code' });
    const request_uri = await new RawWallet(service, 'acme').push(coded.uri, 'card');
    pages = {
      consent: `${service.address}/acme/authorize?${new URLSearchParams({ client_id: CLIENT_ID, request_uri })}`,
      offer: offer.pageUrl,
      cancelled: cancelled.pageUrl,
      request: request.pageUrl,
      error: `${service.address}/acme/offer/x`,
      unknown: `${service.address}/nobody/nowhere`,
      'for a wallet': new URL(offer.uri).searchParams.get('credential_offer_uri') ?? '',
      presented: `${service.address}/acme/presented`,
      root: `${service.address}/`,
    };
  });
  after(async () => {
    await browser?.close();
    await service?.close();
  });

  for (const dark of [false, true]) {
    it(`fit a phone and pass axe in ${dark ? 'dark mode' : 'light mode'}`, async () => {
      for (const locale of LANGUAGES) {
        const look = { width: 390, height: 844, dark, locale };
        const { context, page, faults } = await openWindow(browser as Browser, service.address, look);
        for (const [name, address] of Object.entries(pages)) {
          await page.goto(address);
          // Into the page by the debugger: its policy lets nothing in.
          await page.evaluate(AXE);
          const { language, width, violations } = (await page.evaluate(LOOK)) as Looked;
          const what = `${name} in ${locale}`;
          expect(violations, what).to.deep.equal([]);
          expect(language, what).to.equal(locale);
          expect(width, what).to.equal(390);
        }
        expect(faults, locale).to.deep.equal([]);
        await context.close();
      }
    });
  }

  it('exist in each language, fit the screen, and contain no English texts', async () => {
    const english = new Map<string, readonly string[]>();
    for (const locale of ['en', ...Object.keys(TEXTS).filter((language) => language !== 'en')]) {
      const { context, page } = await openWindow(browser as Browser, service.address, { width: 320, locale });
      for (const [name, address] of Object.entries(pages)) {
        await page.goto(address, { waitUntil: 'domcontentloaded' });
        const { language, width, words, title, time } = (await page.evaluate(WORDS)) as Words;
        const what = `${name} in ${locale}`;
        expect([language, width], what).to.deep.equal([locale, 320]);
        if (locale === 'en') english.set(name, [title, ...words, ...time]);
        const left = [title, ...words, ...time].filter((word) => word !== '' && english.get(name)?.includes(word));
        expect(words.length, what).to.be.at.least(1);
        if (locale !== 'en') expect(left, what).to.deep.equal([]);
      }
      await context.close();
    }
  });

  it('work with enlarged text, custom colours and screen readers', async () => {
    const { context, page } = await openWindow(browser as Browser, service.address);
    for (const [name, address] of Object.entries(pages)) {
      await page.goto(address);
      for (const look of LOOKS) {
        await lookAs(page, look);
        expect(await hindrances(page), `${name}, ${look.name}`).to.deep.equal([]);
        if (look.media?.forcedColors === 'active') await expectAccessible(page, name);
      }
    }
    await context.close();
  });

  it('work by keyboard with a visible focus', async () => {
    const { context, page } = await openWindow(browser as Browser, service.address);
    await page.goto(pages['consent'] ?? '');
    const seen: string[] = [];
    for (let presses = 0; presses < 4; presses++) {
      await page.keyboard.press('Tab');
      const focus = (await page.evaluate(FOCUS)) as { readonly name: string; readonly style: string };
      expect(focus.style, focus.name).to.equal('solid');
      seen.push(focus.name);
    }
    expect(seen).to.deep.equal(['approve', 'deny', 'A', 'A']);
    await context.close();
  });
});
