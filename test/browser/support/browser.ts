import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const PLACES = [process.env['CHROMIUM'] ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser'];

/**
 * The Chromium of this machine. Where there is none that is said in one line; with `CI=true` it is a failure.
 */
export async function openBrowser(): Promise<Browser | undefined> {
  const executablePath = PLACES.find((path) => path !== '' && existsSync(path));
  if (executablePath !== undefined) return chromium.launch({ executablePath, args: ['--no-sandbox'] });
  if (process.env['CI'] === 'true') throw new Error('CI needs chromium.');
  console.log('    pages in a browser are skipped: there is no chromium (set CHROMIUM to its path)');
  return undefined;
}

export type Watched = {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What must not happen on any page: errors, refusals of the content policy, requests to another origin. */
  readonly faults: string[];
};

type Look = { readonly width?: number; readonly height?: number; readonly dark?: boolean; readonly locale?: string };

/** A window in which nothing may leave the origin, and no script may fail. */
export async function openWindow(browser: Browser, origin: string, look: Look = {}): Promise<Watched> {
  const { width = 1280, height = 900, dark = false, locale = 'en-GB' } = look;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', locale });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // Refusals of the interface are said to people by the page; the browser notes each as an error of its own.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) faults.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const { origin: asked, protocol } = new URL(request.url());
    if (asked !== origin && protocol !== 'data:' && protocol !== 'blob:') faults.push(`request to ${request.url()}`);
  });
  return { context, page, faults };
}
