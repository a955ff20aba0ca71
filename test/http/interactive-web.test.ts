import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { decisionPurpose } from '../../application/oauth/decide-authorization.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { createChallenge } from '../../domain/oauth/challenge.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { Browser, withClockAdvanced } from '../support/chained-world.ts';
import {
  expectError,
  expectErrorPage,
  Issuer,
  openCustomerPage,
  type RequiredInteraction,
  returnFromPage,
  startWebStep,
} from '../support/interactive-authorization.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, newKey } from '../support/raw-wallet.ts';
import { createTenant } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

/** The approval token of the page that asks about the wallet of this authorization. */
function approvalOf({ service, id }: Issuer, { authSession }: RequiredInteraction): string {
  const [key] = service.service.container.get(ServiceSettings).nonceKeys;
  if (key === undefined) throw new Error('no key');
  const purpose = decisionPurpose(authSession.split('.')[0] ?? '');
  return createChallenge(key, id as TenantId, purpose, new Date(), randomBytes(10));
}

describe('interactive web page before an issuance', () => {
  let issuer: Issuer;

  before(async () => {
    issuer = await Issuer.open();
  });
  after(() => issuer.close());
  beforeEach(() => issuer.backend.clearCalls());

  const beginOnPage = async (configuration?: string) => {
    const { interaction: asked, ...others } = await startWebStep(issuer, configuration);
    return { ...others, interaction: asked };
  };

  // issuance N141
  it('that is not the last continues with the code verifier of the wallet that began', async () => {
    const { wallet, interaction } = await beginOnPage('tour');
    const { back } = await wallet.visit(interaction);
    expect(back.searchParams.get('code'), 'the browser gets no code').to.equal(null);
    for (const verifier of ['', 'x'.repeat(43)]) {
      expectError(await wallet.resume(back, verifier), 'invalid_grant');
    }
    const second = wallet.expectWebStep(await wallet.resume(back));
    expectError(await wallet.resume(back), 'invalid_session');
    wallet.codeFrom((await wallet.visit(second)).back);
  });

  it('that is the last returns a code, which only the wallet that began redeems', async () => {
    const { wallet, interaction } = await beginOnPage();
    const { back } = await wallet.visit(interaction);
    expect(back.searchParams.get('auth_session'), 'no further interaction').to.equal(null);
    expectError(await wallet.resume(new URL(`https://x.example/?auth_session=${interaction.authSession}`)), 'invalid_session');
    const code = wallet.codeFrom(back);
    for (const code_verifier of ['', 'x'.repeat(43)]) {
      const rejection = await issuer.wallet().redeemCode(code, { code_verifier });
      expectError(rejection, 'invalid_grant');
    }
    const token = await wallet.redeemCode(code);
    expect(token.status, token.text).to.equal(200);
    expect((await wallet.request(token.body.access_token, 'visitor')).status).to.equal(200);
  });

  it('cannot be skipped by continuing directly, by a presentation or by an approval', async () => {
    const { wallet, interaction } = await beginOnPage();
    const returnUrl = new URL(`https://x.example/?auth_session=${interaction.authSession}`);
    expectError(await wallet.resume(returnUrl), 'invalid_request');
    expectError(await wallet.respond(interaction, { vp_token: {} }), 'invalid_request');
    const decision_token = approvalOf(issuer, interaction);
    for (const decision of ['approve', 'deny']) {
      const form = { client_id: CLIENT_ID, request_uri: interaction.requestUri, decision, decision_token };
      expectErrorPage(await issuer.service.call('POST', `/${issuer.id}/authorize`, { form }));
    }
    wallet.codeFrom((await wallet.visit(interaction)).back);
    const tourRequest = await beginOnPage('tour');
    const { back } = await tourRequest.wallet.visit(tourRequest.interaction);
    const authSession = back.searchParams.get('auth_session') ?? '';
    expectError(await tourRequest.wallet.respond({ ...tourRequest.interaction, authSession }, {}), 'invalid_request');
    tourRequest.wallet.expectWebStep(await tourRequest.wallet.resume(back));
  });

  it('can be reloaded until the user has returned', async () => {
    const { wallet, interaction } = await beginOnPage();
    const [onePage, otherPage] = [await openCustomerPage(wallet, interaction), await openCustomerPage(wallet, interaction)];
    expect(onePage.href).to.equal(otherPage.href);
    const { back } = await wallet.visit(interaction);
    expectErrorPage(await wallet.browse(interaction));
    expectErrorPage(await returnFromPage(wallet.browser, onePage));
    wallet.codeFrom(back);
  });

  it('accepts a user who opened it before its expiry and returned to it later', async () => {
    const { wallet, interaction } = await beginOnPage();
    const unopenedRequest = await beginOnPage();
    const page = await openCustomerPage(wallet, interaction);
    await withClockAdvanced(120, async () => {
      expect((await openCustomerPage(wallet, interaction)).href).to.equal(page.href);
      expectErrorPage(await unopenedRequest.wallet.browse(unopenedRequest.interaction));
    });
  });

  it('must be opened within a minute of the request, regardless of the duration of earlier steps', async () => {
    const { wallet, interaction } = await beginOnPage();
    const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
    const stored = (await steps.authorization(interaction.authSession.split('.')[0] ?? ''))?.authorization;
    const storedInteraction = stored?.interaction;
    if (stored === undefined || storedInteraction?.pending === undefined) throw new Error('nothing is pending');
    const twoMinutesAgo = new Date(Date.now() - 120_000);
    const slowAuthorization = { ...stored, createdAt: twoMinutesAgo, version: stored.version + 1 };
    await steps.commit({ authorization: slowAuthorization, uses: [] });
    await wallet.visit(interaction);
    const lateInteraction = { ...storedInteraction, pending: { ...storedInteraction.pending, since: twoMinutesAgo } };
    // One step for the question, one for the browser that was redirected, and one for its return.
    const lateAuthorization = { ...slowAuthorization, interaction: lateInteraction, version: slowAuthorization.version + 4 };
    expect(await steps.commit({ authorization: lateAuthorization, uses: [] })).to.include({ done: true });
    expectErrorPage(await wallet.browse(interaction));
  });

  it('has an id that is valid for no other purpose', async () => {
    const { wallet, interaction } = await beginOnPage();
    const page = await openCustomerPage(wallet, interaction);
    const visit = page.searchParams.get('visit') ?? '';
    expectError(await wallet.resume(new URL(`https://x.example/?auth_session=${visit}`)), 'invalid_session');
    for (const identifier of [interaction.authSession, `${visit.slice(0, -3)}abc`, 'guessed', '']) {
      const path = `/${issuer.id}/interactive-authorization/return?auth_session=${identifier}`;
      expectErrorPage(await wallet.browser.visit(`${issuer.service.address}${path}`));
    }
    await createTenant(issuer.service, 'elsewhere');
    const foreignUrl = page.searchParams.get('return_to')?.replace('/acme/', '/elsewhere/') ?? '';
    const headers = { Cookie: wallet.browser.cookie };
    expectErrorPage(await issuer.service.call('GET', foreignUrl, { headers }));
    expectErrorPage(await wallet.browse(interaction, 'https://other.example'));
    wallet.codeFrom((await wallet.visit(interaction)).back);
  });

  it('invalidates the previous session of the wallet', async () => {
    const { wallet, interaction } = await beginOnPage();
    const { back } = await wallet.visit(interaction);
    const before = new URL(`https://x.example/?auth_session=${interaction.authSession}`);
    expectError(await wallet.resume(before), 'invalid_session');
    wallet.codeFrom(back);
  });

  it('fails the authorization when the user cancels on it', async () => {
    const { wallet, interaction } = await beginOnPage();
    const page = await openCustomerPage(wallet, interaction);
    const returnResponse = await returnFromPage(wallet.browser, page, '&error=cancelled');
    expect(returnResponse.status).to.equal(302);
    const { error_description: _, ...sent } = Object.fromEntries(new URL(returnResponse.headers.get('location') ?? '').searchParams);
    expect(sent).to.deep.equal({ keep: 'this', error: 'access_denied', state: 'state of the wallet', iss: wallet.issuer });
    expectErrorPage(await returnFromPage(wallet.browser, page));
    expectError(await wallet.resume(new URL(`https://x.example/?auth_session=${interaction.authSession}`)), 'invalid_session');
  });

  describe('that the backend has to confirm', () => {
    before(() => {
      const { url } = issuer.backend;
      return issuer.addBadge('member', [{ type: 'redirect_to_web', url: `${url}/join/{auth_session}`, callbackUrl: `${url}/joined` }]);
    });

    it('succeeds when the backend confirms it, and asks the backend once', async () => {
      issuer.backend.on('/joined', (response) => response.writeHead(204).end());
      const { wallet, interaction, session } = await beginOnPage('member');
      const page = await openCustomerPage(wallet, interaction);
      expectErrorPage(await returnFromPage(new Browser(), page));
      expect(issuer.backend.calls, 'the backend is not called for unknown visits').to.have.length(0);
      const headers = { Cookie: wallet.browser.cookie };
      const address = page.searchParams.get('return_to') ?? '';
      const responses = await Promise.all(Array.from({ length: 20 }, () => issuer.service.call('GET', address, { headers })));
      const [redirect, ...otherRedirects] = responses.filter(({ status }) => status === 302);
      expect(otherRedirects).to.deep.equal([]);
      wallet.codeFrom(new URL(redirect?.headers.get('location') ?? ''));
      const [call, ...otherCalls] = issuer.backend.callsTo('/joined');
      expect(otherCalls).to.have.length(0);
      const visit = page.pathname.replace('/join/', '');
      expect(call?.body).to.deep.equal({ session, auth_session: visit });
      expect(call?.headers['idempotency-key']).to.match(/^[\w-]{22,}$/);
    });

    it('fails the authorization on any other answer of the backend', async () => {
      const statuses = [403, 500, 302];
      for (const status of statuses) {
        issuer.backend.on('/joined', (response) => response.writeHead(status, { Location: '/' }).end());
        const { wallet, interaction, session } = await beginOnPage('member');
        const { page, back } = await wallet.visit(interaction);
        expect(back.searchParams.get('error')).to.equal('access_denied');
        expect(back.searchParams.get('code')).to.equal(null);
        expect(back.searchParams.get('error_description')).to.not.include(String(status));
        issuer.backend.on('/joined', { json: {} });
        expectErrorPage(await returnFromPage(wallet.browser, page));
        expect(JSON.stringify((await issuer.session(session)).report)).to.match(/web step/);
      }
      expect(issuer.backend.callsTo('/joined')).to.have.length(statuses.length);
    });
  });
});

describe('browser at an interactive web page before an issuance', () => {
  let issuer: Issuer;

  before(async () => {
    issuer = await Issuer.open();
  });
  after(() => issuer.close());

  const beginOnPage = async (configuration?: string) => {
    const { interaction: asked, ...others } = await startWebStep(issuer, configuration);
    return { ...others, interaction: asked };
  };

  describe('that the wallet opened', () => {
    it('is redirected to the wallet, also after other browsers opened the page without being redirected', async () => {
      const { wallet, interaction } = await beginOnPage();
      const page = await openCustomerPage(wallet, interaction);
      const guessingBrowser = new Browser();
      for (const name of wallet.browser.cookies.keys()) guessingBrowser.cookies.set(name, 'x'.repeat(43));
      const otherBrowser = new Browser();
      await wallet.browse((await beginOnPage()).interaction, CLIENT_ID, otherBrowser);
      for (const browser of [new Browser(), guessingBrowser, otherBrowser]) {
        for (const parameters of ['', '&error=cancelled']) expectErrorPage(await returnFromPage(browser, page, parameters));
      }
      const returnUrl = new URL(`https://x.example/?auth_session=${interaction.authSession}`);
      expectError(await wallet.resume(returnUrl), 'invalid_request');
      const { location } = await returnFromPage(wallet.browser, page);
      wallet.codeFrom(location ?? returnUrl);
    });

    it('is the last of several browsers', async () => {
      const { wallet, interaction } = await beginOnPage();
      const page = await openCustomerPage(wallet, interaction);
      const first = [...wallet.browser.cookies];
      await openCustomerPage(wallet, interaction);
      const before = new Browser();
      for (const [name, value] of first) before.cookies.set(name, value);
      expect([...wallet.browser.cookies]).to.not.deep.equal(first);
      expectErrorPage(await returnFromPage(before, page));
      const last = new Browser();
      await wallet.browse(interaction, CLIENT_ID, last);
      expectErrorPage(await returnFromPage(wallet.browser, page));
      const { location } = await returnFromPage(last, page);
      wallet.codeFrom(location ?? page);
    });

    it('cannot return from the page before it was redirected there', async () => {
      const { interaction } = await beginOnPage();
      const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
      const id = interaction.authSession.split('.')[0] ?? '';
      const pending = (await steps.authorization(id))?.authorization?.interaction?.pending;
      if (pending?.kind !== 'web') throw new Error('no page is pending');
      const path = `/${issuer.id}/interactive-authorization/return?auth_session=${pending.pageHandle}`;
      for (const Cookie of ['', `vidimus-visit-${id}=`, `vidimus-visit-${id}=${'x'.repeat(43)}`]) {
        expectErrorPage(await issuer.service.call('GET', path, { headers: { Cookie } }));
      }
    });

    it('gets a cookie that is sent nowhere else until it returns', async () => {
      const { wallet, interaction } = await beginOnPage();
      await wallet.visit(interaction);
      const [line = '', removedCookie = ''] = wallet.browser.lines.slice(1);
      expect(line).to.match(/^vidimus-visit-[\w-]{22}=[\w-]{43}; /);
      const [path, age = '', ...otherAttributes] = line.split('; ').slice(1);
      expect([path, ...otherAttributes]).to.deep.equal(['Path=/acme/interactive-authorization', 'HttpOnly', 'SameSite=Lax']);
      expect(Number(age.replace('Max-Age=', ''))).to.be.within(1700, 1800);
      expect(removedCookie).to.match(/^vidimus-visit-[\w-]{22}=; Path=\/acme\/interactive-authorization; Max-Age=0; /);
      expect(wallet.browser.cookie).to.not.include('vidimus-visit');
    });
  });

  describe('of an unauthenticated wallet', () => {
    it('is asked for consent first and sees the target of the redirect', async () => {
      const { wallet, interaction } = await beginOnPage();
      const page = await wallet.open(interaction);
      expect([page.status, page.location]).to.deep.equal([200, undefined]);
      expect(page.text).to.include('not verified').and.include('<strong id="destination">wallet.example</strong>');
      expect(page.text, 'the page of the backend is not called yet').to.not.include(issuer.backend.url);
      expectErrorPage(await wallet.browser.press(page, 'perhaps'));
      const redirect = await wallet.browser.press(page, 'approve');
      expect(redirect.status).to.equal(303);
      expect(redirect.location?.href.startsWith(`${issuer.backend.url}/page?visit=`)).to.equal(true);
      const { location } = await returnFromPage(wallet.browser, redirect.location ?? new URL(wallet.issuer));
      wallet.codeFrom(location ?? new URL(wallet.issuer));
    });

    it('is redirected to the wallet when the user declines, and the request fails', async () => {
      const { wallet, interaction } = await beginOnPage();
      const page = await wallet.open(interaction);
      const { status, location } = await wallet.browser.press(page, 'deny');
      expect(status).to.equal(303);
      const { error_description: _, ...sent } = Object.fromEntries(location?.searchParams ?? []);
      const { issuer: iss } = wallet;
      const expectedParameters = { keep: 'this', error: 'access_denied', state: 'state of the wallet', iss };
      expect(sent).to.deep.equal(expectedParameters);
      expectErrorPage(await wallet.browser.press(page, 'approve'));
      expectErrorPage(await wallet.open(interaction));
      const returnUrl = new URL(`https://x.example/?auth_session=${interaction.authSession}`);
      expectError(await wallet.resume(returnUrl), 'invalid_session');
    });

    it('must be the browser that showed the question, and returns the values of its page', async () => {
      const { wallet, interaction } = await beginOnPage();
      const page = await wallet.open(interaction);
      const otherRequest = await beginOnPage();
      const otherBrowser = new Browser();
      await otherRequest.wallet.open(otherRequest.interaction, CLIENT_ID, otherBrowser);
      for (const decision of ['approve', 'deny']) {
        for (const browser of [new Browser(), otherBrowser]) expectErrorPage(await browser.press(page, decision));
        for (const decision_token of ['', 'guessed']) expectErrorPage(await wallet.browser.press(page, decision, { decision_token }));
      }
      expect((await wallet.browser.press(page, 'approve')).status).to.equal(303);
    });

    it('cannot return while its consent is pending', async () => {
      const { wallet, interaction } = await beginOnPage();
      const page = await openCustomerPage(wallet, interaction);
      const user = new Browser();
      await wallet.open(interaction, CLIENT_ID, user);
      expectErrorPage(await returnFromPage(user, page));
      expectErrorPage(await returnFromPage(wallet.browser, page));
      wallet.codeFrom((await wallet.visit(interaction)).back);
    });
  });

  describe('of an authenticated wallet', () => {
    const display = [{ name: 'Acme', locale: 'en' }];
    let provider: WalletProvider;

    before(async () => {
      provider = await WalletProvider.start();
      const registered = provider.registered([AUTHORIZATION_REQUEST.redirect_uri]);
      const attestation = { ...registered, walletAttestationRequired: false };
      await issuer.create('/issuer/config', { display, ...attestation });
    });
    after(async () => {
      await issuer.create('/issuer/config', { display });
      await provider.close();
    });

    it('is asked first if the redirect address of the wallet is not registered', async () => {
      const wallet = issuer.wallet();
      const { body } = await issuer.service.call('POST', `/${issuer.id}/challenge`);
      const headers = provider.headers(newKey(), wallet.issuer, body.attestation_challenge);
      const { uri } = await issuer.offer('visitor');
      const redirect_uri = 'https://evil.example/take';
      const response = await wallet.begin(uri, { scope: 'visitor', redirect_uri }, headers);
      const { status, location, text } = await wallet.open(wallet.expectWebStep(response));
      expect([status, location]).to.deep.equal([200, undefined]);
      expect(text).to.include('<strong id="destination">evil.example</strong>');
    });

    it('is redirected at once and is still the only one that can return', async () => {
      const [wallet, instance] = [issuer.wallet(), newKey()];
      const attestationHeaders = async () => {
        const { body } = await issuer.service.call('POST', `/${issuer.id}/challenge`);
        return provider.headers(instance, wallet.issuer, body.attestation_challenge);
      };
      const { uri } = await issuer.offer('visitor');
      const interaction = wallet.expectWebStep(await wallet.begin(uri, { scope: 'visitor' }, await attestationHeaders()));
      const { status, location: page = new URL(wallet.issuer) } = await wallet.open(interaction);
      expect([status, page.origin]).to.deep.equal([302, issuer.backend.url]);
      expectErrorPage(await returnFromPage(new Browser(), page));
      const { location } = await returnFromPage(wallet.browser, page);
      const code = wallet.codeFrom(location);
      const rejection = await wallet.redeemCode(code);
      expect([rejection.status, rejection.body.error], 'a wallet without attestation').to.deep.equal([400, 'invalid_grant']);
    });
  });
});

describe('browser at an interactive web page before an issuance, behind https and a path', () => {
  it('has cookies that are sent to no other path and never without TLS', async () => {
    const issuer = await Issuer.open({ PUBLIC_URL: 'https://issuer.example/base' });
    try {
      const display = [{ name: 'Acme', locale: 'en' }];
      await issuer.create('/issuer/config', { display, builtInAs: { walletInitiated: true } });
      const wallet = issuer.wallet();
      const interaction = wallet.expectWebStep(await wallet.begin(undefined, { scope: 'visitor' }));
      const page = await wallet.open(interaction);
      const pageText = page.text.replaceAll('https://issuer.example/base', issuer.service.address);
      const { location } = await wallet.browser.press({ ...page, text: pageText }, 'approve');
      const returnTo = new URL(location?.searchParams.get('return_to') ?? '');
      const folder = '/base/acme/interactive-authorization';
      expect(`${returnTo.origin}${returnTo.pathname}`).to.equal(`https://issuer.example${folder}/return`);
      const [cookie = '', line = ''] = wallet.browser.lines;
      expect(cookie).to.match(/^__Host-vidimus-consent-[\w-]{22}=[\w-]{43}; /);
      expect(cookie.split('; ')).to.include.members(['Secure', 'HttpOnly', 'Path=/']);
      expect(line).to.match(/^__Host-vidimus-visit-[\w-]{22}=[\w-]{43}; /);
      expect(line.split('; ')).to.include.members(['Secure', 'HttpOnly', 'SameSite=Lax', 'Path=/']);
      const address = `${issuer.service.address}/acme/interactive-authorization/return${returnTo.search}`;
      expect((await new Browser().visit(address)).status).to.equal(400);
      expect((await wallet.browser.visit(address)).status).to.equal(302);
    } finally {
      await issuer.close();
    }
  });
});
