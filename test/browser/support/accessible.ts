import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Violation = { readonly id: string; readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[] };

/** Violations that axe finds on the page as it is now (WCAG 2.2 A and AA, and best practices). @param within a selector; by default the page. */
export async function expectAccessible(page: Page, what: string, within?: string): Promise<void> {
  // Colours are judged as they stay, not as they appear.
  await page.evaluate('Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {})))');
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate(`axe.run(${within === undefined ? 'document' : JSON.stringify(within)})`)) as {
    violations: Violation[];
  };
  const told = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
  );
  expect(told, what).to.deep.equal([]);
}

/** Nothing of a page is wider than the window. */
export async function expectFits(page: Page, what: string): Promise<void> {
  const [content, window] = (await page.evaluate('[document.documentElement.scrollWidth, document.documentElement.clientWidth]')) as [
    number,
    number,
  ];
  expect(content, what).to.be.at.most(window);
}
