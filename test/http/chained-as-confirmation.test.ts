import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import {
  Browser,
  type BrowserResponse,
  type ChainedWallet,
  ChainedWorld,
  errorRedirectParameters,
  expectErrorPage,
  payloadOf,
  redirectParameters,
  UNKNOWN_LOGIN,
  withClockAdvanced,
} from '../support/chained-world.ts';
import { MisbehavingProvider } from '../support/misbehaving-provider.ts';
import { callInParallel } from '../support/raced-services.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, dpopProof, newKey } from '../support/raw-wallet.ts';
import { certify } from '../support/test-certificates.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const EVIL = 'https://evil.example/take?all=this';
const UNKNOWN_PAGE = 'this page is unknown, already answered, or belongs to another browser';
/** The default, for a tenant without this setting. */
const DEFAULT_CONFIRMATION = { confirmUnverifiedWallets: undefined };

describe('login for a wallet without client authentication', () => {
  let world: ChainedWorld;
  let token: string;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme', 'other']);
    ({ token, wallet } = await world.createIssuingTenant('acme', { upstream: world.upstream(), ...DEFAULT_CONFIRMATION }));
  });
  after(() => world.close());

  /** The user opens the link of the pushed request, and logs in. */
  const page = async (form: Record<string, string> = {}) => {
    const browser = new Browser();
    const callbackUrl = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card', ...form }));
    return { browser, back: callbackUrl, page: await browser.visit(callbackUrl) };
  };
  const sessions = async () => (await world.service.call('GET', '/session', { token })).text;

  describe('ends on a page', () => {
    it('in place of a redirect, which shows data and target before a code is issued', async () => {
      const before = await sessions();
      const { page: shownPage } = await page({ redirect_uri: EVIL });
      expect([shownPage.status, shownPage.location]).to.deep.equal([200, undefined]);
      expect(shownPage.headers.get('content-type')).to.equal('text/html; charset=utf-8');
      expect(shownPage.text).to.include('<span>Badge</span>').and.include('Acme');
      expect(shownPage.text).to.include('not verified').and.include(`>${CLIENT_ID}</bdi>`);
      expect(shownPage.text).to.include('<strong id="destination">evil.example</strong>');
      expect(shownPage.text).to.include('id="approve"').and.include('id="deny"');
      expect(shownPage.text).to.not.match(/<script|<img|<link|src=/);
      expect(shownPage.headers.get('content-security-policy')).to.include("default-src 'none'").and.include("frame-ancestors 'none'");
      expect(shownPage.headers.get('cache-control')).to.include('no-store');
      expect(shownPage.headers.get('referrer-policy')).to.equal('no-referrer');
      expect(await sessions(), 'no session yet').to.equal(before);
    });

    it('that shows the URL scheme of an app', async () => {
      const { page: shownPage } = await page({ redirect_uri: 'eudi-openid4ci://login.bank.example' });
      expect(shownPage.text).to.include('<strong id="destination">eudi-openid4ci:</strong>');
    });

    it('with texts that a client cannot change', async () => {
      const client_id = '"><script>alert(1)</script>';
      const pushResponse = await wallet.par({ scope: 'card', client_id });
      const query = new URLSearchParams({ client_id, request_uri: pushResponse.body.request_uri });
      const browser = new Browser();
      const callbackUrl = await wallet.logIn(world.provider, browser, `${wallet.server}/authorize?${query}`);
      const { status, text } = await browser.visit(callbackUrl);
      expect(status).to.equal(200);
      expect(text).to.include('&#60;script&#62;').and.not.include('<script');
    });
  });

  it('issues a credential after approval, and deletes the cookie', async () => {
    const { browser, page: shownPage } = await page({ scope: 'badge' });
    const answer = await browser.press(shownPage, 'approve');
    expect(answer.status, answer.text).to.equal(303);
    expect(redirectParameters(answer.location)).to.include({ state: 'state of the wallet', iss: wallet.server });
    expect(browser.cookies.size).to.equal(0);
    const tokens = await wallet.redeemCode(answer.location?.searchParams.get('code') ?? '');
    expect(tokens.status, tokens.text).to.equal(200);
    expect(payloadOf(tokens.body.access_token).sub).to.equal('alice');
    const credential = await wallet.request(tokens.body.access_token, 'badge');
    expect(credential.status, credential.text).to.equal(200);
    expect(payloadOf(credential.body.credentials[0].credential)).to.include({ given_name: 'Alice' });
  });

  it('reports the denial of the user to the wallet once', async () => {
    const { browser, page: shownPage } = await page();
    const cookiesBefore = new Map(browser.cookies);
    const denial = await browser.press(shownPage, 'deny');
    expect(denial.status).to.equal(303);
    expect(redirectParameters(denial.location)).to.deep.equal(errorRedirectParameters(wallet, 'access_denied'));
    for (const [name, value] of cookiesBefore) browser.cookies.set(name, value);
    expectErrorPage(await browser.press(shownPage, 'approve'), UNKNOWN_PAGE);
  });

  it('shows that the session of the offer finished while the page was open', async () => {
    const { session, issuer_state } = await world.offer(token, wallet, 'card');
    const { browser, page: shownPage } = await page({ issuer_state });
    expect((await world.service.call('DELETE', `/session/${session}`, { token })).status).to.equal(200);
    const { location } = await browser.press(shownPage, 'approve');
    expect(redirectParameters(location)).to.deep.equal(errorRedirectParameters(wallet, 'access_denied'));
  });

  describe('rejects a decision, and changes nothing,', () => {
    let browser: Browser;
    let shownPage: BrowserResponse;

    beforeEach(async () => {
      ({ browser, page: shownPage } = await page());
    });
    afterEach(async () => {
      expect(redirectParameters((await browser.press(shownPage, 'approve')).location)).to.have.property('code');
    });

    it('of another browser', async () => {
      expectErrorPage(await new Browser().press(shownPage, 'approve'), UNKNOWN_PAGE);
      const { browser: otherBrowser } = await page();
      expectErrorPage(await otherBrowser.press(shownPage, 'approve'), UNKNOWN_PAGE);
      expectErrorPage(await otherBrowser.press(shownPage, 'deny'), UNKNOWN_PAGE);
    });

    it('with a cookie of another value', async () => {
      const otherBrowser = new Browser();
      for (const name of browser.cookies.keys()) otherBrowser.cookies.set(name, 'x'.repeat(43));
      expectErrorPage(await otherBrowser.press(shownPage, 'approve'), UNKNOWN_PAGE);
    });

    it('without the value of a page, or with the value of another page', async () => {
      const { page: foreignPage } = await page();
      const [, foreignValue = ''] = /name="confirmation" value="([^"]+)"/.exec(foreignPage.text) ?? [];
      const [, ownValue = ''] = /name="confirmation" value="([^"]+)"/.exec(shownPage.text) ?? [];
      const mixedValue = `${ownValue.split('.')[0]}.${foreignValue.split('.')[1]}`;
      for (const confirmation of ['', 'guessed', foreignValue, mixedValue]) {
        expectErrorPage(await browser.press(shownPage, 'approve', { confirmation }), UNKNOWN_PAGE);
      }
    });

    it('with an unknown value', async () => {
      for (const decision of ['perhaps', '']) {
        expectErrorPage(await browser.press(shownPage, decision), 'the decision is missing');
      }
    });

    it('at another tenant', async () => {
      const { wallet: otherWallet } = await world.createIssuingTenant('other', { upstream: world.upstream(), ...DEFAULT_CONFIRMATION });
      const text = shownPage.text.replace(wallet.server, otherWallet.server);
      expectErrorPage(await browser.press({ ...shownPage, text }, 'approve'), UNKNOWN_PAGE);
    });

    it('after the expiry of the request', async () => {
      expectErrorPage(await withClockAdvanced(1801, () => browser.press(shownPage, 'approve')), UNKNOWN_PAGE);
    });
  });

  it('cannot bypass the page by the callback or the first address', async () => {
    const browser = new Browser();
    const address = await wallet.startAuthorization({ scope: 'card' });
    const callbackUrl = await wallet.logIn(world.provider, browser, address);
    expect((await browser.visit(callbackUrl)).status).to.equal(200);
    expectErrorPage(await browser.visit(callbackUrl), UNKNOWN_LOGIN);
    expectErrorPage(await browser.visit(address), 'the request_uri');
  });

  it('creates one code and one session for any number of approvals', async () => {
    const { browser, page: shownPage } = await page();
    const before = JSON.parse(await sessions());
    const responses = await callInParallel(30, () => browser.press(shownPage, 'approve'));
    expect(responses.filter(({ status }) => status === 303)).to.have.length(1);
    expect(responses.filter(({ status }) => status === 400)).to.have.length(29);
    expect(JSON.parse(await sessions())).to.have.length(before.length + 1);
  });

  it('is deleted with the decision: no record of the login remains', async () => {
    const readStored = async (shownPage: BrowserResponse) => {
      const [, id = ''] = /name="confirmation" value="([^".]+)\./.exec(shownPage.text) ?? [];
      const { container } = world.service.service;
      return (
        await container
          .get(Store)
          .read('acme' as TenantId)
          .authorization(id)
      )?.authorization;
    };
    for (const decision of ['approve', 'deny']) {
      const { browser, page: shownPage } = await page();
      expect((await readStored(shownPage))?.identity).to.include({ sub: 'alice' });
      expect((await browser.press(shownPage, decision)).status).to.equal(303);
      expect(await readStored(shownPage), decision).to.not.have.any.keys('identity', 'upstream');
    }
  });
});

describe('login for a request that any client may push', () => {
  let world: ChainedWorld;
  let token: string;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme']);
    ({ token, wallet } = await world.createIssuingTenant('acme', { upstream: world.upstream(), ...DEFAULT_CONFIRMATION }));
  });
  after(() => world.close());

  describe('that fails shows the user the cause, and a button to the wallet instead of a redirect:', () => {
    const expectReason = (visit: BrowserResponse, status: number, reason: string, error: string) => {
      expect([visit.status, visit.location]).to.deep.equal([status, undefined]);
      expect(visit.text).to.include('<html').and.include(reason);
      expect(visit.text).to.match(/<a [^>]*id="approve"[^>]*>Back to <bdi>evil\.example<\/bdi><\/a>/);
      const [, href = ''] = /id="approve"[^>]* href="([^"]+)"/.exec(visit.text) ?? [];
      const { origin, pathname, searchParams } = new URL(href.replaceAll('&#38;', '&'));
      expect(`${origin}${pathname}`).to.equal('https://evil.example/take');
      const { error_description, ...parameters } = Object.fromEntries(searchParams);
      expect(error_description).to.equal(reason);
      expect(parameters).to.deep.equal({
        ...{ all: 'this', error, state: AUTHORIZATION_REQUEST.state },
        iss: `${wallet.issuer}/chained-as`,
      });
    };

    const errors: readonly [string, number, string, string][] = [
      ['access_denied', 400, 'the user was not logged in', 'access_denied'],
      ['temporarily_unavailable', 503, 'the login failed', 'temporarily_unavailable'],
      ['login_required', 400, 'the login failed', 'server_error'],
    ];
    for (const [error, status, reason, passed] of errors) {
      it(`${error} of the provider`, async () => {
        const browser = new Browser();
        const address = await wallet.startAuthorization({ scope: 'card', redirect_uri: EVIL });
        const callbackUrl = await wallet.logIn(world.provider, browser, address, { deny: error });
        expectReason(await browser.visit(callbackUrl), status, reason, passed);
        expectErrorPage(await browser.visit(callbackUrl), UNKNOWN_LOGIN);
      });
    }

    it('an unavailable provider, until it is back', async () => {
      const badProvider = await MisbehavingProvider.start();
      const unavailableLogin = { upstream: { issuer: badProvider.issuer, clientId: 'client' }, ...DEFAULT_CONFIRMATION };
      await badProvider.close();
      try {
        await world.configure(token, unavailableLogin);
        const browser = new Browser();
        const address = await wallet.startAuthorization({ scope: 'card', redirect_uri: EVIL });
        expectReason(await browser.visit(address), 503, 'the login is unavailable at present', 'temporarily_unavailable');
        expect(browser.lines).to.deep.equal([]);
        await world.configure(token, { upstream: world.upstream(), ...DEFAULT_CONFIRMATION });
        const { status, location } = await withClockAdvanced(90, () => browser.visit(address));
        expect([status, location?.origin]).to.deep.equal([302, new URL(world.provider.issuer).origin]);
      } finally {
        await world.configure(token, { upstream: world.upstream(), ...DEFAULT_CONFIRMATION });
      }
    });

    it('metadata of another server, and a code that the provider rejects', async () => {
      const badProvider = await MisbehavingProvider.start();
      try {
        badProvider.respondAt('/.well-known/openid-configuration', { json: { issuer: 'https://evil.example' } });
        const upstream = { issuer: badProvider.issuer, clientId: 'client' };
        await world.configure(token, { upstream, ...DEFAULT_CONFIRMATION });
        const address = await wallet.startAuthorization({ scope: 'card', redirect_uri: EVIL });
        expectReason(await new Browser().visit(address), 400, 'the login failed', 'server_error');
      } finally {
        await world.configure(token, { upstream: world.upstream(), ...DEFAULT_CONFIRMATION });
        await badProvider.close();
      }
      const browser = new Browser();
      const address = await wallet.startAuthorization({ scope: 'card', redirect_uri: EVIL });
      const callbackUrl = new URL(await wallet.logIn(world.provider, browser, address));
      callbackUrl.searchParams.set('code', 'made-up');
      expectReason(await browser.visit(callbackUrl.href), 400, 'the login failed', 'server_error');
    });
  });

  it('redirects to the wallet at once if the operator disabled the page', async () => {
    await world.configure(token, { upstream: world.upstream(), confirmUnverifiedWallets: false });
    try {
      const browser = new Browser();
      const address = await wallet.startAuthorization({ scope: 'card' });
      const answer = await browser.visit(await wallet.logIn(world.provider, browser, address));
      expect(answer.status).to.equal(302);
      expect(redirectParameters(answer.location)).to.have.property('code');
    } finally {
      await world.configure(token, { upstream: world.upstream(), ...DEFAULT_CONFIRMATION });
    }
  });

  describe('with an authenticated wallet, in contrast,', () => {
    let provider: WalletProvider;
    before(async () => {
      provider = await WalletProvider.start();
      await configure(world.upstream());
    });
    after(async () => {
      await world.configure(token, { upstream: world.upstream(), ...DEFAULT_CONFIRMATION });
      await provider.close();
    });
    const configure = (upstream: object, by = provider.registered([AUTHORIZATION_REQUEST.redirect_uri])) =>
      world.configure(token, { upstream, ...DEFAULT_CONFIRMATION }, by);
    const push = async (form: Record<string, string> = {}) => {
      const { body } = await world.service.call('POST', '/acme/chained-as/challenge');
      const pushResponse = await wallet.par(
        { scope: 'card', ...form },
        {
          DPoP: dpopProof(wallet.dpopKey, `${wallet.server}/par`),
          ...provider.headers(newKey(), wallet.server, body.attestation_challenge),
        },
      );
      return pushResponse;
    };
    const beginLogin = async (form: Record<string, string> = {}) => {
      const pushResponse = await push(form);
      expect(pushResponse.status, pushResponse.text).to.equal(201);
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: pushResponse.body.request_uri });
      return `${wallet.server}/authorize?${query}`;
    };

    it('returns the code to the wallet at once', async () => {
      const browser = new Browser();
      const answer = await browser.visit(await wallet.logIn(world.provider, browser, await beginLogin()));
      expect(answer.status, answer.text).to.equal(302);
      expect(redirectParameters(answer.location)).to.have.property('code');
    });

    it('shows the target if the redirect URI of the wallet is not registered', async () => {
      for (const by of [
        provider.registered([AUTHORIZATION_REQUEST.redirect_uri]),
        provider.registered(['https://other.example/cb']),
        provider.configuration(),
      ]) {
        await configure(world.upstream(), by);
        const browser = new Browser();
        const address = await beginLogin({ redirect_uri: EVIL });
        const visit = await browser.visit(await wallet.logIn(world.provider, browser, address));
        expect([visit.status, visit.location], visit.text).to.deep.equal([200, undefined]);
        expect(visit.text).to.include('<strong id="destination">evil.example</strong>');
        expect((await browser.press(visit, 'approve')).location?.origin).to.equal('https://evil.example');
      }
      await configure(world.upstream());
    });

    it('rejects a wallet name that another provider of the lists must not attest', async () => {
      const otherCa = await certify({ name: 'Another Wallet CA', ca: true });
      await configure(world.upstream(), provider.registered([AUTHORIZATION_REQUEST.redirect_uri], otherCa));
      const rejection = await push();
      expect([rejection.status, rejection.body.error], rejection.text).to.deep.equal([400, 'invalid_client_attestation']);
      // Also by the certificate that signs attestations
      await configure(world.upstream(), provider.registered([AUTHORIZATION_REQUEST.redirect_uri], provider.signer));
      expect((await push()).status).to.equal(201);
      await configure(world.upstream());
    });

    it('returns errors by redirect', async () => {
      const browser = new Browser();
      const callbackUrl = await wallet.logIn(world.provider, browser, await beginLogin(), { deny: 'access_denied' });
      expect(redirectParameters((await browser.visit(callbackUrl)).location)).to.deep.equal(
        errorRedirectParameters(wallet, 'access_denied'),
      );
      await configure({ issuer: 'http://127.0.0.1:9', clientId: 'client' });
      const { location } = await new Browser().visit(await beginLogin());
      expect(redirectParameters(location)).to.deep.equal(errorRedirectParameters(wallet, 'temporarily_unavailable'));
    });
  });
});
