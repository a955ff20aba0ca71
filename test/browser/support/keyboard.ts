import { expect } from 'chai';
import type { Page } from 'playwright-core';

/** Above what a page takes to answer. */
const WAIT_MS = 10_000;

/**
 * Gathers what is read out without being asked for: what changes in a live region that was there before, and alerts. Those that
 * come together with what they say are often not read.
 */
const LISTEN = `(() => {
  if (window.heard !== undefined) return;
  window.heard = [];
  const LIVE = '[role=status], [role=alert], [aria-live]';
  const known = new WeakSet(document.querySelectorAll(LIVE));
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      const region = (target.nodeType === 1 ? target : target.parentElement)?.closest(LIVE);
      if (known.has(region)) window.heard.push(region.innerText);
      for (const node of addedNodes)
        if (node.nodeType === 1 && (node.matches('[role=alert]') || node.querySelector('[role=alert]')))
          window.heard.push(node.innerText);
    }
    for (const region of document.querySelectorAll(LIVE)) known.add(region);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
})()`;

/** Uses the one button of this name by the keyboard. The focus is not lost by it. */
export async function press(page: Page, name: string | RegExp, within = 'body'): Promise<void> {
  await page.evaluate(LISTEN);
  const button = page.locator(within).getByRole('button', { name, exact: true });
  // A page that was just opened gives its heading the focus once it is drawn.
  for (const deadline = performance.now() + WAIT_MS; performance.now() < deadline; ) {
    await button.focus();
    await page.evaluate(DRAWN);
    if (await button.evaluate((element) => element.ownerDocument.activeElement === element)) break;
  }
  await page.keyboard.press('Enter');
  await expectFocus(page, String(name));
}

/** Effects of what was drawn have had their turn by then. */
const DRAWN = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))';

export async function expectFocus(page: Page, after: string): Promise<void> {
  // What works has the focus again when it is done.
  const isKept = `!document.querySelector('button[aria-busy="true"]') && document.activeElement !== document.body`;
  if (!(await comesTrue(page, isKept))) expect.fail(`the focus is lost after “${after}”`);
}

/** Waits until something is read out. */
export async function heardOf(page: Page, text: RegExp): Promise<void> {
  if (!(await comesTrue(page, `window.heard.some((one) => ${text}.test(one))`)))
    expect.fail(`${text} is not among ${JSON.stringify(await page.evaluate('window.heard'))}`);
  await page.evaluate('void window.heard.splice(0)');
}

/** What has the focus, in words. */
export async function focused(page: Page): Promise<string> {
  return (await page.evaluate(
    '(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim().replaceAll(/\\s+/g, " ")',
  )) as string;
}

/** Waits until it is so: what a page does with a click or a key is drawn a moment later. */
export async function comesToBe(page: Page, expression: string, what = expression): Promise<void> {
  if (!(await comesTrue(page, expression))) expect.fail(`not within ${WAIT_MS} ms: ${what}`);
}

/** By the debugger: what waits within the page needs `eval`, which the policy of the page forbids. */
async function comesTrue(page: Page, expression: string): Promise<boolean> {
  for (const deadline = performance.now() + WAIT_MS; performance.now() < deadline; ) {
    if (await page.evaluate(expression)) return true;
    await page.waitForTimeout(50);
  }
  return false;
}

/** Plays the playground once: a card is collected, shown, and shown with a claim that was changed. */
export async function play(page: Page): Promise<void> {
  await press(page, 'Begin');
  await press(page, 'Offer a diploma');
  await press(page, 'Open in the phone (Offer: Diploma)');
  await press(page, 'Add', '#phone');
  await heardOf(page, /now in this phone/);
  await press(page, 'Ask: which degree?');
  await press(page, 'Open in the phone (Which degree?)');
  await press(page, 'Show');
  await heardOf(page, /Verified\./);
  await press(page, 'Ask: which degree?');
  await press(page, 'Open in the phone (Which degree? (2))');
  await page.getByRole('combobox', { name: 'Misbehave' }).selectOption('changed-claim');
  await press(page, 'Cheat');
  await heardOf(page, /Refused\./);
}
