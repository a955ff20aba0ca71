import { AUTHORIZATION_REQUEST, CLIENT_ID, CODE_VERIFIER, dpopProof, RawWallet } from './raw-wallet.ts';
import type { Answer } from './test-service.ts';
import type { UpstreamProvider } from './upstream-provider.ts';

/** What a browser got. */
export type Visit = {
  readonly status: number;
  readonly headers: Headers;
  readonly location: URL | undefined;
  readonly text: string;
};

/** A browser on a user's device, with the cookies of our service. */
export class Browser {
  readonly cookies = new Map<string, string>();
  /** Every `Set-Cookie` line that came. */
  readonly lines: string[] = [];

  /** The `Cookie` header that it sends. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  visit(address: string): Promise<Visit> {
    return this.#send(address, {});
  }

  /** Presses a button of the form on a page; what the form sends can be replaced or, by '', left out. */
  press(page: Visit, decision: string, fields: Record<string, string> = {}): Promise<Visit> {
    const [, action] = /<form method="post" action="([^"]+)"/.exec(page.text) ?? [];
    if (action === undefined) throw new Error(`no form: ${page.status} ${page.location} ${page.text}`);
    const hidden = page.text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g);
    const form = new URLSearchParams({ decision });
    for (const [, name = '', value = ''] of hidden) form.set(name, value);
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    for (const [name, value] of [...form]) if (value === '') form.delete(name);
    return this.#send(action, { method: 'POST', body: form });
  }

  async #send(address: string, init: RequestInit): Promise<Visit> {
    const { cookie } = this;
    // `fetch` of Node does not send `Sec-Fetch-Mode: navigate`, so this browser does not accept everything.
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9';
    const headers = { accept, ...(cookie !== '' && { cookie }) };
    const answer = await fetch(address, { ...init, redirect: 'manual', headers });
    for (const line of answer.headers.getSetCookie()) {
      this.lines.push(line);
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    return {
      status: answer.status,
      headers: answer.headers,
      location: location === null ? undefined : new URL(location),
      text: await answer.text(),
    };
  }
}

/** A wallet at the chained authorization server. */
export class ChainedWallet extends RawWallet {
  get server(): string {
    return `${this.issuer}/chained-as`;
  }

  override par(form: Record<string, string> = {}, headers?: Record<string, string>): Promise<Answer> {
    const all = { ...AUTHORIZATION_REQUEST, ...form };
    const sent = Object.entries(all).filter(([, value]) => value !== '');
    return this.service.call('POST', `/${this.tenant}/chained-as/par`, {
      form: Object.fromEntries(sent),
      headers: headers ?? { DPoP: dpopProof(this.dpopKey, `${this.server}/par`) },
    });
  }

  /** @returns the address that the wallet opens in a browser. */
  async begin(form: Record<string, string> = {}): Promise<string> {
    const answer = await this.par(form);
    if (answer.status !== 201) throw new Error(`par: ${answer.status} ${answer.text}`);
    const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: answer.body.request_uri });
    return `${this.server}/authorize?${query}`;
  }

  /** The user opens the address and logs in. @returns where the provider sends the browser. */
  async logIn(
    provider: UpstreamProvider,
    browser: Browser,
    address: string,
    person: { readonly accountId?: string; readonly deny?: string } = {},
  ): Promise<string> {
    const { location, status, text } = await browser.visit(address);
    if (location === undefined) throw new Error(`authorize: ${status} ${text}`);
    return (await provider.login(location.href, person)).href;
  }

  /** From a pushed request to a code. */
  async chainedCode(provider: UpstreamProvider, form: Record<string, string> = {}): Promise<string> {
    const browser = new Browser();
    const back = await this.logIn(provider, browser, await this.begin(form));
    const { location, text } = await browser.visit(back);
    const code = location?.searchParams.get('code');
    if (code === null || code === undefined) throw new Error(`callback: ${location} ${text}`);
    return code;
  }

  override redeemCode(
    code: string,
    form: Record<string, string> = {},
    headers?: Record<string, string>,
  ): Promise<Answer> {
    const all: Record<string, string> = {
      grant_type: 'authorization_code',
      code,
      client_id: CLIENT_ID,
      redirect_uri: AUTHORIZATION_REQUEST.redirect_uri,
      code_verifier: CODE_VERIFIER,
      ...form,
    };
    const sent = Object.entries(all).filter(([, value]) => value !== '');
    return this.service.call('POST', `/${this.tenant}/chained-as/token`, {
      form: Object.fromEntries(sent),
      headers: headers ?? { DPoP: dpopProof(this.dpopKey, `${this.server}/token`) },
    });
  }
}

/** The payload of a JWT, unverified. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into payloads of every shape
export function payloadOf(jwt: string): any {
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
}
