import { expect } from 'chai';
import sinon from 'sinon';
import { Backend } from './backend.ts';
import { ChainedWallet } from './chained-wallet.ts';
import { created, offerBody } from './populated.ts';
import { createTenant, startTestService, type TestService } from './test-service.ts';
import { CONFIDENTIAL, startUpstreamProvider, type UpstreamProvider } from './upstream-provider.ts';

const format = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] };
export const UNKNOWN_LOGIN = 'this login is unknown, over, or of another browser';

type Page = {
  readonly status: number;
  readonly location: URL | undefined;
  readonly text: string;
};

/** A service whose tenants have their users log in at a certified provider, and a backend that is told who they are. */
export class ChainedWorld {
  readonly service: TestService;
  readonly provider: UpstreamProvider;
  readonly backend: Backend;

  private constructor(service: TestService, provider: UpstreamProvider, backend: Backend) {
    this.service = service;
    this.provider = provider;
    this.backend = backend;
  }

  /** @param tenants ids of those that the provider knows. */
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
        ? {
            accessTokenAudience: 'https://api.example.org',
            accessTokenClaims: { department: 'R&D', given_name: 'from the access token' },
          }
        : { userinfo }),
    });
    return new ChainedWorld(service, provider, backend);
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.provider.close();
    await this.backend.close();
  }

  /** Access tokens for an API of its own are no good at the userinfo endpoint of this provider. */
  upstream(): object {
    return { issuer: this.provider.issuer, ...CONFIDENTIAL, userinfo: false };
  }

  /**
   * Wallets of these tests prove nothing, and most tests are about what is between login and wallet; so users are asked
   * nothing about them unless `chainedAs` says `confirmUnverifiedWallets`, or, with `undefined`, leaves it as it comes.
   */
  async configure(token: string, chainedAs: object, more: object = {}): Promise<void> {
    const server = { confirmUnverifiedWallets: false, ...chainedAs };
    const json = { display: [{ name: 'Acme', locale: 'en' }], chainedAs: server, ...more };
    const answer = await this.service.call('POST', '/issuer/config', { token, json });
    expect(answer.status, answer.text).to.equal(201);
  }

  /** A tenant with a badge whose claims the backend makes of the user, and a card that is the same for all. */
  async openTenant(
    id: string,
    chainedAs: object = { upstream: this.upstream() },
    more: object = {},
  ): Promise<{ token: string; wallet: ChainedWallet }> {
    const { token } = await createTenant(this.service, id);
    const claimsWebhook = { url: `${this.backend.url}/claims` };
    const badge = { id: 'badge', config: format, vct: 'urn:badge:1', claimsWebhook };
    await created(this.service, token, '/issuer/credentials', badge);
    const card = { id: 'card', config: format, vct: 'urn:card:1', claims: { name: 'Ada' } };
    await created(this.service, token, '/issuer/credentials', card);
    await this.configure(token, chainedAs, more);
    return { token, wallet: new ChainedWallet(this.service, id) };
  }

  async offer(token: string, wallet: ChainedWallet, credential: string, more: object = {}) {
    const body = { ...offerBody(credential), flow: 'authorization_code', ...more };
    const { uri, session } = await created(this.service, token, '/issuer/offer', body);
    const { grants } = (await wallet.offer(uri)) as {
      grants: { authorization_code: { issuer_state: string; authorization_server?: string } };
    };
    return { session: session as string, ...grants.authorization_code };
  }
}

/** The parameters of an answer to the wallet, without the words for humans. */
export function told(location: URL | undefined): Record<string, string> {
  expect(location?.origin).to.equal('https://wallet.example');
  expect(location?.searchParams.get('keep')).to.equal('this');
  const { keep: _, error_description: __, ...rest } = Object.fromEntries(location?.searchParams ?? []);
  return rest;
}

/** What a wallet is told that gets no code. */
export function answered({ server }: ChainedWallet, error: string): Record<string, string> {
  return { error, state: 'state of the wallet', iss: server };
}

/** A page, and no way on. */
export function expectPage(page: Page, text: string): void {
  expect([page.status, page.location]).to.deep.equal([400, undefined]);
  expect(page.text).to.include(text).and.include('<html');
}

export async function later<T>(seconds: number, work: () => Promise<T>): Promise<T> {
  const clock = sinon.useFakeTimers({ now: Date.now() + seconds * 1000, toFake: ['Date'] });
  try {
    return await work();
  } finally {
    clock.restore();
  }
}
