import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Fetch } from './core/index.ts';
import { decodeEntities } from './html.ts';

const WAIT_MS = 300_000;

/** Approves the consent page of an issuer of this service. @returns the redirect of the browser. */
export async function approveOnPage(authorizationUrl: string, fetch: Fetch): Promise<string> {
  const page = await fetch(authorizationUrl, { redirect: 'manual' });
  const html = await page.text();
  const action = /<form [^>]*action="([^"]+)"/.exec(html)?.[1];
  if (page.status !== 200 || action === undefined || !html.includes('value="approve"'))
    throw new Error('--yes cannot approve the page of this issuer; run this again without it');
  const form = new URLSearchParams({ decision: 'approve' });
  for (const [, name = '', value = ''] of html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g))
    form.set(decodeEntities(name), decodeEntities(value));
  const answer = await fetch(new URL(decodeEntities(action), authorizationUrl), { method: 'POST', body: form, redirect: 'manual' });
  const location = answer.headers.get('location');
  if (location === null) throw new Error(`the page of the issuer answered ${answer.status}`);
  return location;
}

/** The loopback redirect URI of a browser on this machine (RFC 8252 section 7.3). */
export class ReturnAddress {
  readonly url: string;
  readonly returned: Promise<string>;
  readonly close: () => void;

  private constructor(url: string, returned: Promise<string>, close: () => void) {
    this.url = url;
    this.returned = returned;
    this.close = close;
  }

  static async open(): Promise<ReturnAddress> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const server = createServer((request, response) => {
      const callback = new URL(request.url ?? '/', url);
      if (callback.pathname !== '/callback') return response.writeHead(404).end();
      response.writeHead(200, { 'Content-Type': 'text/plain' }).end('The wallet has it. You can close this window.\n');
      resolve(callback.href);
    });
    await new Promise<void>((done, failed) => server.once('error', failed).listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
    const timer = setTimeout(() => reject(new Error('it was not approved within five minutes')), WAIT_MS);
    const close = () => {
      clearTimeout(timer);
      server.close();
      server.closeAllConnections();
    };
    promise.catch(() => {});
    return new ReturnAddress(url, promise, close);
  }
}
