import { existsSync } from 'node:fs';
import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { runGenerator } from '../../tools/build-docs.mjs';
import { startTestService, type TestService } from '../support/test-service.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, openWindow } from './support/browser.ts';

const SITE = new URL('../../docs/site/index.html', import.meta.url);

describe('The documentation site of the service', function () {
  this.timeout(300_000);
  let browser: Browser;
  let service: TestService;

  before(async function () {
    const opened = await openBrowser();
    if (opened === undefined) return this.skip();
    browser = opened;
    if (!existsSync(SITE)) runGenerator('build');
    service = await startTestService();
  });
  after(async () => {
    await browser?.close();
    await service?.close();
  });

  it('leads from the home page to a guide, under the content security policy', async () => {
    const { context, page, faults } = await openWindow(browser, service.address);
    await page.goto(service.address);
    await page.getByRole('link', { name: 'Documentation', exact: true }).click();
    await page.getByRole('heading', { name: 'Documentation', level: 1 }).waitFor();
    await page.getByRole('complementary').getByRole('link', { name: 'The first hour' }).click();
    await page.getByRole('heading', { name: 'The first hour', level: 1 }).waitFor();
    expect(await page.locator('button.copy').count()).to.be.greaterThan(3);
    // The search button of the theme has another name than its text, which is not ours to change.
    await expectAccessible(page, 'the text of a guide', 'main');
    await expectAccessible(page, 'the sidebar', 'aside');
    expect(faults).to.deep.equal([]);
    await context.close();
  });

  it('finds a page by a word, and fits a small, dark screen', async () => {
    const { context, page, faults } = await openWindow(browser, service.address, { width: 390, dark: true });
    await page.goto(`${service.address}/docs/guide/guides/first-hour.html`);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('OpenBao');
    await page.getByRole('listbox').getByRole('option').first().waitFor();
    await page.keyboard.press('Escape');
    await expectFits(page, 'a guide at 390 px');
    expect(faults).to.deep.equal([]);
    await context.close();
  });

  it('is served from this origin only, with the hashes of its scripts', async () => {
    const { headers } = await fetch(`${service.address}/docs/guide/index.html`);
    expect(headers.get('content-security-policy'))
      .to.match(/script-src 'self' 'sha256-/)
      .and.not.include('unsafe');
    const { status } = await fetch(`${service.address}/docs/guide/none.html`);
    expect(status).to.equal(404);
  });
});
