import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';
import { picture } from './support/picture.ts';

/** What the phone does wrong, and what the verifier says of it. */
const WAYS: readonly (readonly [string, RegExp])[] = [
  ['Change a claim', /not the one that the issuer signed/],
  ['Respond to another request', /signed for another request/],
  ['Send an old proof of possession', /long before this request/],
  ['Present the credential of another holder', /belongs to another holder/],
  ['Withhold a claim', /asked for is missing/],
];

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
/** Each says in its name which offer or request it is of. */
const opener = (page: Page) => page.getByRole('button', { name: /^Open in the phone \(/ });

async function collect(page: Page, what: string): Promise<void> {
  await button(page, `Offer a ${what}`).click();
  await opener(page).first().click();
  await page.locator('.phone').getByRole('button', { name: 'Add' }).click();
  await page.getByText('now in this phone').waitFor();
}

async function ask(page: Page, question: string): Promise<void> {
  await button(page, `Ask: ${question}`).click();
  await opener(page).first().click();
  await button(page, 'Decline').waitFor();
}

describe('playground', function () {
  this.timeout(60_000);
  let served: ConsoleService;
  let window: Watched;
  let page: Page;

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    window = await served.open('try');
    ({ page } = window);
  });
  after(() => served?.close());
  afterEach(() => expect(window.faults).to.deep.equal([]));

  it('creates an issuer, a verifier and a phone with one click', async () => {
    expect(page.url()).not.to.include('ticket');
    await button(page, 'Begin').waitFor();
    await expectAccessible(page, 'before it begins');
    await button(page, 'Begin').click();
    await page.getByRole('heading', { name: 'University' }).waitFor();
    await expectAccessible(page, 'begun');
  });

  it('issues a diploma to the phone after a confirmation', async () => {
    await button(page, 'Offer a diploma').click();
    await opener(page).click();
    await page.getByText('Degree', { exact: false }).first().waitFor();
    await expectAccessible(page, 'consent');
    await page.locator('.phone').getByRole('button', { name: 'Add' }).click();
    await page.getByText('now in this phone').waitFor();
    await page.locator('.turn', { hasText: 'Offer: Diploma' }).getByText('completed').waitFor();
  });

  it('shows the employer only the requested claims', async () => {
    await ask(page, 'which degree?');
    await expectAccessible(page, 'asked');
    await button(page, 'Show').click();
    const outcome = page.locator('.turn', { hasText: 'Verified.' });
    await outcome.waitFor();
    const told = await outcome.innerText();
    expect(told).to.include('Lovelace').and.to.include('MSc Mathematics');
    expect(told).not.to.match(/Ada|2026-06-30|grade/);
    expect(told).to.include('the session has it on record');
  });

  for (const [way, reason] of WAYS) {
    it(`rejects a presentation of a misbehaving phone: ${way}`, async () => {
      await ask(page, 'which degree?');
      const select = page.getByLabel('Misbehave');
      const options = await select.locator('option').allInnerTexts();
      await select.selectOption({ label: options.find((text) => text.startsWith(way)) ?? way });
      await button(page, 'Cheat').click();
      await page.locator('.turn').filter({ hasText: 'Refused.' }).first().getByText(reason).waitFor();
      await page.getByRole('status').getByText('Refused (400)').waitFor();
    });
  }

  it('matches the screenshots of the documentation', async () => {
    await ask(page, 'which degree?');
    await page.evaluate('scrollTo(0, 0)');
    await picture(page, 'playground');
    await button(page, 'Decline').click();
  });

  it('accepts a presentation once', async () => {
    await ask(page, 'which degree?');
    await page.getByLabel('Misbehave').selectOption('replay');
    await button(page, 'Cheat').click();
    await page.getByText('a request is answered once').waitFor();
  });

  it('lets the user decline the presentation', async () => {
    await ask(page, 'which degree?');
    await button(page, 'Decline').click();
    await page.getByText('The user declined. Nothing was shown.').first().waitFor();
  });

  it('issues and verifies a driving licence', async () => {
    await collect(page, 'driving licence');
    await ask(page, 'may they drive?');
    await button(page, 'Show').click();
    await page.locator('.turn', { hasText: 'May they drive?' }).getByText('Verified.').waitFor();
  });

  it('shows that a revoked diploma is rejected', async () => {
    // Somebody elsewhere has a copy of the list.
    const university = await page.getByText(/^Issues\. university-/).innerText();
    const lists = await served.service.call('GET', `/${university.split(' ')[1]}/status-lists`);
    for (const list of lists.body.status_lists as string[]) await served.service.call('GET', new URL(list).pathname);
    await page.locator('.turn', { hasText: 'Offer: Diploma' }).getByRole('button', { name: 'Revoke' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Revoke this credential?' });
    await expectAccessible(page, 'a question before something grave');
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await page.locator('.turn', { hasText: 'Offer: Diploma' }).getByText('revoked').waitFor();
    const told = page.getByText('The employer, a tenant of the same service, refuses it from now on.');
    await told.filter({ hasText: /Verifiers elsewhere .* accept it until \d\d:\d\d/ }).waitFor();
    await ask(page, 'which degree?');
    await button(page, 'Show').click();
    await page.getByText('The issuer revoked this credential').waitFor();
    expect(await page.locator('.lessons li.done').count()).to.equal(5);
    await expectAccessible(page, 'at the end');
  });

  it('shows the protocol messages', async () => {
    await page.getByText('On the wire').click();
    await page.locator('.wire li summary').first().click();
    expect(await page.locator('.wire pre').nth(1).innerText()).to.include('credential_issuer');
    const first = page.locator('.wire summary', { hasText: '401' }).first();
    await first.getByText('the first answer brings the nonce for the proof (RFC 9449 section 8)').waitFor();
  });

  it('calls only operations of the API document', async () => {
    const { paths } = (await served.service.call('GET', '/openapi.json')).body as { paths: object };
    const known = Object.keys(paths).map((path) => new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`));
    await page.getByRole('button', { name: /^Calls/ }).click();
    const calls = await page.locator('.calls li code').allInnerTexts();
    expect(calls.length).to.be.greaterThan(10);
    const strange = calls.filter((call) => {
      const [, address = ''] = call.split(' ');
      return !known.some((pattern) => pattern.test(address.split('?')[0] ?? ''));
    });
    expect(strange).to.deep.equal([]);
    await expectAccessible(page, 'the calls');
    await page.locator('.calls').getByRole('button', { name: 'Close' }).click();
  });

  it('opens the session of its verifier, which shows the verification checks', async () => {
    await page.locator('.turn', { hasText: 'The issuer revoked this credential' }).getByRole('link', { name: 'Open the session' }).click();
    await page
      .getByRole('status')
      .getByText(/^You are employer-/)
      .waitFor();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    await page.getByText('status_revoked').first().waitFor();
    await expectAccessible(page, 'the session');
    await picture(page, 'session');
    expect(await page.getByLabel('You are').inputValue()).to.match(/^employer-/);
    await page.getByRole('link', { name: 'Playground' }).click();
    await page.locator('.phone').getByText('Diploma').waitFor();
  });
});

describe('playground on a small, dark screen', function () {
  this.timeout(60_000);
  let served: ConsoleService;
  let window: Watched;

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    window = await served.open('try', { width: 390, height: 844, dark: true });
  });
  after(() => served?.close());

  it('fits the screen and works by keyboard only', async () => {
    const { page, faults } = window;
    const press = async (name: string) => {
      await page.locator('main').getByRole('button', { name }).first().waitFor();
      await focus(page, name);
      await page.keyboard.press('Enter');
    };
    await press('Begin');
    await press('Offer a diploma');
    await press('Open in the phone');
    await press('Add');
    await page.getByText('now in this phone').waitFor();
    await expectFits(page, 'with a card');
    await press('Ask: which degree?');
    await press('Open in the phone');
    await expectFits(page, 'asked');
    await expectAccessible(page, 'asked, dark');
    await press('Show');
    await page.getByText('Verified.').waitFor();
    await expectFits(page, 'verified');
    await expectAccessible(page, 'verified, dark');
    expect(faults).to.deep.equal([]);
  });
});

/** Goes on with the tabulator, as somebody without a mouse does, until the button has the focus. */
async function focus(page: Page, name: string): Promise<void> {
  for (let step = 0; step < 80; step++) {
    const at = (await page.evaluate('document.activeElement?.textContent?.trim() ?? ""')) as string;
    const isIn = await page.evaluate('document.activeElement?.closest("header.bar") == null');
    if ((at === name || at.startsWith(`${name} (`)) && isIn) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`the tabulator does not come to "${name}"`);
}
