import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';
import { expectFocus, focused, heardOf, press } from './support/keyboard.ts';

/** Nothing is found by how it looks: roles and names, and what is read out, are all that there is. */
describe('first walkthrough with a screen reader', function () {
  this.timeout(90_000);
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

  const heading = (name: string | RegExp) => page.getByRole('heading', { name });

  it('reaches the playground from the start page link and begins', async () => {
    await heading('Playground').waitFor();
    expect(await focused(page)).to.equal('Playground');
    expect(await page.title()).to.include('Playground');
    await press(page, 'Begin');
    expect(await focused(page)).to.equal('University');
  });

  it('announces each step: the offer, the consent prompt of the phone and the credential', async () => {
    await press(page, 'Offer a diploma');
    expect(await focused(page)).to.equal('Offer: Diploma');
    await press(page, 'Open in the phone (Offer: Diploma)');
    expect(await focused(page)).to.equal('Add to this phone?');
    await press(page, 'Add', '#phone');
    await heardOf(page, /Diploma: now in this phone/);
    expect(await focused(page)).to.equal('Diploma: now in this phone.');
    await page.getByRole('list', { name: 'Cards' }).getByText('Diploma').waitFor();
  });

  it('announces the verification result and the reason of a rejection', async () => {
    await press(page, 'Ask: which degree?');
    expect(await focused(page)).to.equal('Which degree?');
    await press(page, 'Open in the phone (Which degree?)');
    expect(await focused(page)).to.equal('Employer of Examples asks');
    await press(page, 'Show');
    await heardOf(page, /Verified\. The employer learned:[\s\S]*Lovelace/);
    await press(page, 'Ask: which degree?');
    expect(await focused(page)).to.equal('Which degree? (2)');
    await press(page, 'Open in the phone (Which degree? (2))');
    await page.getByRole('combobox', { name: 'Misbehave' }).selectOption('changed-claim');
    await heardOf(page, /replaced by another one/);
    await press(page, 'Cheat');
    await heardOf(page, /not the one that the issuer signed/);
    expect(await focused(page)).to.match(/^Refused \(400\)/);
  });

  it('revokes a credential, and keeps the focus when the button disappears', async () => {
    await press(page, 'Revoke (Offer: Diploma)');
    await page.keyboard.press('Escape');
    expect(await focused(page)).to.equal('Revoke (Offer: Diploma)');
    await press(page, 'Revoke (Offer: Diploma)');
    const dialog = page.getByRole('dialog', { name: 'Revoke this credential?' });
    await dialog.getByRole('button', { name: 'Revoke' }).focus();
    await page.keyboard.press('Enter');
    await heardOf(page, /The employer refuses it from now on/);
    await expectFocus(page, 'Revoke');
    expect(await focused(page)).to.equal('Offer: Diploma');
  });

  it('opens other pages and closes dialogs without losing the focus', async () => {
    await page.getByRole('link', { name: 'Open the session (Which degree? (2))' }).focus();
    await page.keyboard.press('Enter');
    await heading(/^Request of/).waitFor();
    expect(await page.getByRole('main').getAttribute('aria-label')).to.equal('Sessions');
    await page.keyboard.press('Control+K');
    await page.getByRole('dialog', { name: 'Find' }).waitFor();
    await page.keyboard.type('questions');
    await page.keyboard.press('Enter');
    await heading('Questions').waitFor();
    expect(await focused(page)).to.equal('Questions');
    await press(page, /^Calls/);
    await press(page, 'Close');
    expect(await focused(page)).to.match(/^Calls/);
    const calls = page.getByRole('complementary', { name: 'Calls of this page' });
    await press(page, /^Calls/);
    await calls.waitFor();
    await page.getByRole('button', { name: 'Close' }).focus();
    await page.keyboard.press('Escape');
    await calls.waitFor({ state: 'detached' });
    expect(await focused(page)).to.match(/^Calls/);
    await press(page, /^Calls/);
    await calls
      .getByRole('button', { name: /^Copy as curl/ })
      .first()
      .click();
    const copied = page.getByRole('status').getByText(/^Copied\.|does not let pages copy/);
    await copied.waitFor();
    await page.waitForTimeout(1_200);
    await page.getByRole('link', { name: 'Trust', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Trust', level: 1 }).waitFor();
    await calls.waitFor({ state: 'detached' });
    await copied.waitFor({ state: 'detached', timeout: 2_000 });
    expect(await focused(page)).to.equal('Trust');
  });

  it('announces the number of filtered rows', async () => {
    await page.getByRole('link', { name: 'Sessions', exact: true }).focus();
    await page.keyboard.press('Enter');
    await heading('Sessions').waitFor();
    await heardOf(page, /Sessions: 2 shown/);
    await page.getByRole('combobox', { name: 'Status' }).selectOption('expired');
    await heardOf(page, /Sessions: 0 shown/);
    await page.getByRole('combobox', { name: 'Status' }).selectOption('failed');
    await heardOf(page, /Sessions: 1 shown/);
  });

  it('keeps the focus in the client selection on every page', async () => {
    const choice = page.getByLabel('You are');
    await choice.focus();
    await choice.selectOption('root');
    await heading('Playground').waitFor();
    expect(await page.evaluate('document.activeElement.tagName')).to.equal('SELECT');
  });
});
