import { expect } from 'chai';
import sinon from 'sinon';
import { Backend } from './backend.ts';
import { createResource, offerBody } from './populated.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, CODE_VERIFIER, dpopProof, RawWallet } from './raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from './test-service.ts';
import { CONFIDENTIAL_CLIENT, startUpstreamProvider, type UpstreamProvider } from './upstream-provider.ts';

/** A response that a browser received. */
export type BrowserResponse = {
  readonly status: number;
  readonly headers: Headers;
  readonly location: URL | undefined;
  readonly text: string;
};

/** A browser on a user's device, with the cookies of our service. */
export class Browser {
  readonly cookies = new Map<string, string>();
  /** Every received `Set-Cookie` line. */
  readonly lines: string[] = [];

  /** The `Cookie` header of its requests. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  visit(address: string): Promise<BrowserResponse> {
    return this.#send(address, {});
  }

  /** Submits the form of a page by one of its buttons; fields can be overridden or, by '', omitted. */
  press(page: BrowserResponse, decision: string, fields: Record<string, string> = {}): Promise<BrowserResponse> {
    const [, action] = /<form method="post" action="([^"]+)"/.exec(page.text) ?? [];
    if (action === undefined) throw new Error(`no form: ${page.status} ${page.location} ${page.text}`);
    const hidden = page.text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g);
    const form = new URLSearchParams({ decision });
    for (const [, name = '', value = ''] of hidden) form.set(name, value);
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    for (const [name, value] of [...form]) if (value === '') form.delete(name);
    return this.#send(action, { method: 'POST', body: form });
  }

  async #send(address: string, init: RequestInit): Promise<BrowserResponse> {
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
    const parameters = { ...AUTHORIZATION_REQUEST, ...form };
    const formFields = Object.entries(parameters).filter(([, value]) => value !== '');
    return this.service.call('POST', `/${this.tenant}/chained-as/par`, {
      form: Object.fromEntries(formFields),
      headers: headers ?? { DPoP: dpopProof(this.dpopKey, `${this.server}/par`) },
    });
  }

  /** @returns the address that the wallet opens in a browser. */
  async startAuthorization(form: Record<string, string> = {}): Promise<string> {
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
    account: { readonly accountId?: string; readonly deny?: string } = {},
  ): Promise<string> {
    const { location, status, text } = await browser.visit(address);
    if (location === undefined) throw new Error(`authorize: ${status} ${text}`);
    return (await provider.login(location.href, account)).href;
  }

  /** Runs the flow from a pushed request to a code. */
  async chainedCode(provider: UpstreamProvider, form: Record<string, string> = {}): Promise<string> {
    const browser = new Browser();
    const redirect = await this.logIn(provider, browser, await this.startAuthorization(form));
    const { location, text } = await browser.visit(redirect);
    const code = location?.searchParams.get('code');
    if (code === null || code === undefined) throw new Error(`callback: ${location} ${text}`);
    return code;
  }

  override redeemCode(code: string, form: Record<string, string> = {}, headers?: Record<string, string>): Promise<Answer> {
    const parameters: Record<string, string> = {
      grant_type: 'authorization_code',
      code,
      client_id: CLIENT_ID,
      redirect_uri: AUTHORIZATION_REQUEST.redirect_uri,
      code_verifier: CODE_VERIFIER,
      ...form,
    };
    const formFields = Object.entries(parameters).filter(([, value]) => value !== '');
    return this.service.call('POST', `/${this.tenant}/chained-as/token`, {
      form: Object.fromEntries(formFields),
      headers: headers ?? { DPoP: dpopProof(this.dpopKey, `${this.server}/token`) },
    });
  }
}

/** The payload of a JWT, unverified. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into payloads of every shape
export function payloadOf(jwt: string): any {
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
}

const format = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] };
export const UNKNOWN_LOGIN = 'this login is unknown, expired, or belongs to another browser';

type Page = { readonly status: number; readonly location: URL | undefined; readonly text: string };

/** A service whose tenants log users in at a certified provider, and a backend that receives their identity. */
export class ChainedWorld {
  readonly service: TestService;
  readonly provider: UpstreamProvider;
  readonly backend: Backend;

  private constructor(service: TestService, provider: UpstreamProvider, backend: Backend) {
    this.service = service;
    this.provider = provider;
    this.backend = backend;
  }

  /** @param tenants ids of the tenants that are registered at the provider. */
  static async start(tenants: readonly string[], userinfo?: 'json' | 'jwt'): Promise<ChainedWorld> {
    const service = await startTestService();
    const backend = await Backend.start();
    backend.on('/claims', (response, { body }) => {
      const { given_name } = body.identity.token_claims;
      response.end(JSON.stringify({ badge: { given_name } }));
    });
    const provider = await startUpstreamProvider({
      redirectUris: tenants.map((id) => `${service.address}/${id}/chained-as/callback`),
      ...(userinfo === undefined
        ? { accessTokenAudience: 'https://api.example.org', accessTokenClaims: { department: 'R&D', given_name: 'from the access token' } }
        : { userinfo }),
    });
    return new ChainedWorld(service, provider, backend);
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.provider.close();
    await this.backend.close();
  }

  /** The userinfo endpoint of this provider rejects access tokens for a separate API. */
  upstream(): object {
    return { issuer: this.provider.issuer, ...CONFIDENTIAL_CLIENT, userinfo: false };
  }

  /**
   * Wallets of these tests are not attested, so the confirmation page is switched off unless `chainedAs` contains
   * `confirmUnverifiedWallets`; `undefined` there keeps the default.
   */
  async configure(token: string, chainedAs: object, extra: object = {}): Promise<void> {
    const server = { confirmUnverifiedWallets: false, ...chainedAs };
    const json = { display: [{ name: 'Acme', locale: 'en' }], chainedAs: server, ...extra };
    const answer = await this.service.call('POST', '/issuer/config', { token, json });
    expect(answer.status, answer.text).to.equal(201);
  }

  /** Creates a tenant with a badge whose claims come from the backend, and a card with fixed claims. */
  async createIssuingTenant(
    id: string,
    chainedAs: object = { upstream: this.upstream() },
    extra: object = {},
  ): Promise<{ token: string; wallet: ChainedWallet }> {
    const { token } = await createTenant(this.service, id);
    const claimsWebhook = { url: `${this.backend.url}/claims` };
    const badgeCredential = { id: 'badge', config: format, vct: 'urn:badge:1', claimsWebhook };
    await createResource(this.service, token, '/issuer/credentials', badgeCredential);
    const credential = { id: 'card', config: format, vct: 'urn:card:1', claims: { name: 'Ada' } };
    await createResource(this.service, token, '/issuer/credentials', credential);
    await this.configure(token, chainedAs, extra);
    return { token, wallet: new ChainedWallet(this.service, id) };
  }

  async offer(token: string, wallet: ChainedWallet, credential: string, extra: object = {}) {
    const body = { ...offerBody(credential), flow: 'authorization_code', ...extra };
    const { uri, session } = await createResource(this.service, token, '/issuer/offer', body);
    const { grants } = (await wallet.offer(uri)) as {
      grants: { authorization_code: { issuer_state: string; authorization_server?: string } };
    };
    return { session: session as string, ...grants.authorization_code };
  }
}

/** The parameters of a redirect to the wallet, without the error description. */
export function redirectParameters(location: URL | undefined): Record<string, string> {
  expect(location?.origin).to.equal('https://wallet.example');
  expect(location?.searchParams.get('keep')).to.equal('this');
  const { keep: _, error_description: __, ...rest } = Object.fromEntries(location?.searchParams ?? []);
  return rest;
}

/** The expected parameters of an error redirect. */
export function errorRedirectParameters({ server }: ChainedWallet, error: string): Record<string, string> {
  return { error, state: 'state of the wallet', iss: server };
}

/** Expects an error page without a redirect. */
export function expectErrorPage(page: Page, text: string): void {
  expect([page.status, page.location]).to.deep.equal([400, undefined]);
  expect(page.text).to.include(text).and.include('<html');
}

export async function withClockAdvanced<T>(seconds: number, work: () => Promise<T>): Promise<T> {
  const clock = sinon.useFakeTimers({ now: Date.now() + seconds * 1000, toFake: ['Date'] });
  try {
    return await work();
  } finally {
    clock.restore();
  }
}
