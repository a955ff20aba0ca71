import { expect } from 'chai';
import type { Browser, Visit } from './chained-wallet.ts';
import type { Issuer } from './interactive-issuer.ts';
import type { InteractiveWallet, Required } from './interactive-wallet.ts';
import type { Answer } from './test-service.ts';

/** A wallet begins, and is asked to send its user to a page. */
export async function askPage(issuer: Issuer, configuration = 'visitor') {
  const wallet = issuer.wallet();
  const { uri, session } = await issuer.offer(configuration);
  return { wallet, session, asked: wallet.asksWeb(await wallet.begin(uri, { scope: configuration })) };
}

/** Where the wallet's browser is sent: the customer's page. */
export async function pageOf(wallet: InteractiveWallet, asked: Required): Promise<URL> {
  return new URL((await wallet.browse(asked)).headers.get('location') ?? '');
}

/** The customer's page sends a browser back. */
export function goBack(browser: Browser, page: URL, more = ''): Promise<Visit> {
  return browser.visit(`${page.searchParams.get('return_to')}${more}`);
}

export function expectError(answer: Answer, error: string): void {
  expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, error]);
}

/** A page that tells the user what is wrong, and no way on. */
export function expectErrorPage({ status, headers, text }: Answer | Visit): void {
  expect(status, text).to.equal(400);
  expect(headers.get('content-type')).to.match(/^text\/html/);
  expect(headers.get('location')).to.equal(null);
}
