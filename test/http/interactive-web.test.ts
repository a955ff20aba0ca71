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

/** What the page that asks about the wallet of this authorization carries. */
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

  const ask = (configuration?: string) => startWebStep(issuer, configuration);

  // issuance N141
  it('that is not the last continues with the code verifier of the wallet that began', async () => {
    const { wallet, interaction: asked } = await ask('tour');
    const { back } = await wallet.visit(asked);
    expect(back.searchParams.get('code'), 'the browser carries no code').to.equal(null);
    for (const verifier of ['', 'x'.repeat(43)]) {
      expectError(await wallet.resume(back, verifier), 'invalid_grant');
    }
    const second = wallet.expectWebStep(await wallet.resume(back));
    expectError(await wallet.resume(back), 'invalid_session');
    wallet.codeFrom((await wallet.visit(second)).back);
  });

  it('that is the last returns a code, which only the wallet that began redeems', async () => {
    const { wallet, interaction: asked } = await ask();
    const { back } = await wallet.visit(asked);
    expect(back.searchParams.get('auth_session'), 'nothing is left to ask').to.equal(null);
    expectError(await wallet.resume(new URL(`https://x.example/?auth_session=${asked.authSession}`)), 'invalid_session');
    const code = wallet.codeFrom(back);
    for (const code_verifier of ['', 'x'.repeat(43)]) {
      const refused = await issuer.wallet().redeemCode(code, { code_verifier });
      expectError(refused, 'invalid_grant');
    }
    const token = await wallet.redeemCode(code);
    expect(token.status, token.text).to.equal(200);
    expect((await wallet.request(token.body.access_token, 'visitor')).status).to.equal(200);
  });

  it('cannot be skipped by continuing directly, by a presentation or by an approval', async () => {
    const { wallet, interaction: asked } = await ask();
    const here = new URL(`https://x.example/?auth_session=${asked.authSession}`);
    expectError(await wallet.resume(here), 'invalid_request');
    expectError(await wallet.respond(asked, { vp_token: {} }), 'invalid_request');
    const decision_token = approvalOf(issuer, asked);
    for (const decision of ['approve', 'deny']) {
      const form = { client_id: CLIENT_ID, request_uri: asked.requestUri, decision, decision_token };
      expectErrorPage(await issuer.service.call('POST', `/${issuer.id}/authorize`, { form }));
    }
    wallet.codeFrom((await wallet.visit(asked)).back);
    const tour = await ask('tour');
    const { back } = await tour.wallet.visit(tour.interaction);
    const authSession = back.searchParams.get('auth_session') ?? '';
    expectError(await tour.wallet.respond({ ...tour.interaction, authSession }, {}), 'invalid_request');
    tour.wallet.expectWebStep(await tour.wallet.resume(back));
  });

  it('can be reloaded until the user has returned', async () => {
    const { wallet, interaction: asked } = await ask();
    const [one, other] = [await openCustomerPage(wallet, asked), await openCustomerPage(wallet, asked)];
    expect(one.href).to.equal(other.href);
    const { back } = await wallet.visit(asked);
    expectErrorPage(await wallet.browse(asked));
    expectErrorPage(await returnFromPage(wallet.browser, one));
    wallet.codeFrom(back);
  });

  it('accepts a user who opened it in time and returned to it later', async () => {
    const { wallet, interaction: asked } = await ask();
    const unopened = await ask();
    const page = await openCustomerPage(wallet, asked);
    await withClockAdvanced(120, async () => {
      expect((await openCustomerPage(wallet, asked)).href).to.equal(page.href);
      expectErrorPage(await unopened.wallet.browse(unopened.interaction));
    });
  });

  it('must be opened within a minute of the request, regardless of the duration of earlier steps', async () => {
    const { wallet, interaction: asked } = await ask();
    const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
    const found = (await steps.authorization(asked.authSession.split('.')[0] ?? ''))?.authorization;
    const { interaction } = found ?? {};
    if (found === undefined || interaction?.pending === undefined) throw new Error('nothing is pending');
    const longAgo = new Date(Date.now() - 120_000);
    const slow = { ...found, createdAt: longAgo, version: found.version + 1 };
    await steps.commit({ authorization: slow, uses: [] });
    await wallet.visit(asked);
    const late = { ...interaction, pending: { ...interaction.pending, since: longAgo } };
    // A step for the question, one for the browser that was sent, one for its return.
    const written = { ...slow, interaction: late, version: slow.version + 4 };
    expect(await steps.commit({ authorization: written, uses: [] })).to.include({ done: true });
    expectErrorPage(await wallet.browse(asked));
  });

  it('has an id that is valid for no other purpose', async () => {
    const { wallet, interaction: asked } = await ask();
    const page = await openCustomerPage(wallet, asked);
    const visit = page.searchParams.get('visit') ?? '';
    expectError(await wallet.resume(new URL(`https://x.example/?auth_session=${visit}`)), 'invalid_session');
    for (const guessed of [asked.authSession, `${visit.slice(0, -3)}abc`, 'guessed', '']) {
      const path = `/${issuer.id}/interactive-authorization/return?auth_session=${guessed}`;
      expectErrorPage(await wallet.browser.visit(`${issuer.service.address}${path}`));
    }
    await createTenant(issuer.service, 'elsewhere');
    const elsewhere = page.searchParams.get('return_to')?.replace('/acme/', '/elsewhere/') ?? '';
    const headers = { Cookie: wallet.browser.cookie };
    expectErrorPage(await issuer.service.call('GET', elsewhere, { headers }));
    expectErrorPage(await wallet.browse(asked, 'https://other.example'));
    wallet.codeFrom((await wallet.visit(asked)).back);
  });

  it('invalidates the previous session of the wallet', async () => {
    const { wallet, interaction: asked } = await ask();
    const { back } = await wallet.visit(asked);
    const before = new URL(`https://x.example/?auth_session=${asked.authSession}`);
    expectError(await wallet.resume(before), 'invalid_session');
    wallet.codeFrom(back);
  });

  it('ends the authorization when the user cancels on it', async () => {
    const { wallet, interaction: asked } = await ask();
    const page = await openCustomerPage(wallet, asked);
    const returned = await returnFromPage(wallet.browser, page, '&error=cancelled');
    expect(returned.status).to.equal(302);
    const { error_description: _, ...sent } = Object.fromEntries(new URL(returned.headers.get('location') ?? '').searchParams);
    expect(sent).to.deep.equal({ keep: 'this', error: 'access_denied', state: 'state of the wallet', iss: wallet.issuer });
    expectErrorPage(await returnFromPage(wallet.browser, page));
    expectError(await wallet.resume(new URL(`https://x.example/?auth_session=${asked.authSession}`)), 'invalid_session');
  });

  describe('that the backend has to confirm', () => {
    before(() => {
      const { url } = issuer.backend;
      return issuer.addBadge('member', [{ type: 'redirect_to_web', url: `${url}/join/{auth_session}`, callbackUrl: `${url}/joined` }]);
    });

    it('succeeds when the backend confirms it, and asks the backend once', async () => {
      issuer.backend.on('/joined', (response) => response.writeHead(204).end());
      const { wallet, interaction: asked, session } = await ask('member');
      const page = await openCustomerPage(wallet, asked);
      expectErrorPage(await returnFromPage(new Browser(), page));
      expect(issuer.backend.calls, 'nobody is asked for strangers').to.have.length(0);
      const headers = { Cookie: wallet.browser.cookie };
      const address = page.searchParams.get('return_to') ?? '';
      const answers = await Promise.all(Array.from({ length: 20 }, () => issuer.service.call('GET', address, { headers })));
      const [sent, ...more] = answers.filter(({ status }) => status === 302);
      expect(more).to.deep.equal([]);
      wallet.codeFrom(new URL(sent?.headers.get('location') ?? ''));
      const [call, ...others] = issuer.backend.callsTo('/joined');
      expect(others).to.have.length(0);
      const visit = page.pathname.replace('/join/', '');
      expect(call?.body).to.deep.equal({ session, auth_session: visit });
      expect(call?.headers['idempotency-key']).to.match(/^[\w-]{22,}$/);
    });

    it('ends the authorization on any other answer of the backend', async () => {
      const refusals = [403, 500, 302];
      for (const status of refusals) {
        issuer.backend.on('/joined', (response) => response.writeHead(status, { Location: '/' }).end());
        const { wallet, interaction: asked, session } = await ask('member');
        const { page, back } = await wallet.visit(asked);
        expect(back.searchParams.get('error')).to.equal('access_denied');
        expect(back.searchParams.get('code')).to.equal(null);
        expect(back.searchParams.get('error_description')).to.not.include(String(status));
        issuer.backend.on('/joined', { json: {} });
        expectErrorPage(await returnFromPage(wallet.browser, page));
        expect(JSON.stringify((await issuer.session(session)).report)).to.match(/web step/);
      }
      expect(issuer.backend.callsTo('/joined')).to.have.length(refusals.length);
    });
  });
});

describe('browser at an interactive web page before an issuance', () => {
  let issuer: Issuer;

  before(async () => {
    issuer = await Issuer.open();
  });
  after(() => issuer.close());

  const ask = (configuration?: string) => startWebStep(issuer, configuration);

  describe('that the wallet opened', () => {
    it('is redirected to the wallet, also after other browsers opened the page without being redirected', async () => {
      const { wallet, interaction: asked } = await ask();
      const page = await openCustomerPage(wallet, asked);
      const guessing = new Browser();
      for (const name of wallet.browser.cookies.keys()) guessing.cookies.set(name, 'x'.repeat(43));
      const other = new Browser();
      await wallet.browse((await ask()).interaction, CLIENT_ID, other);
      for (const stranger of [new Browser(), guessing, other]) {
        for (const more of ['', '&error=cancelled']) expectErrorPage(await returnFromPage(stranger, page, more));
      }
      const here = new URL(`https://x.example/?auth_session=${asked.authSession}`);
      expectError(await wallet.resume(here), 'invalid_request');
      const { location } = await returnFromPage(wallet.browser, page);
      wallet.codeFrom(location ?? here);
    });

    it('is the last of several browsers', async () => {
      const { wallet, interaction: asked } = await ask();
      const page = await openCustomerPage(wallet, asked);
      const first = [...wallet.browser.cookies];
      await openCustomerPage(wallet, asked);
      const before = new Browser();
      for (const [name, value] of first) before.cookies.set(name, value);
      expect([...wallet.browser.cookies]).to.not.deep.equal(first);
      expectErrorPage(await returnFromPage(before, page));
      const last = new Browser();
      await wallet.browse(asked, CLIENT_ID, last);
      expectErrorPage(await returnFromPage(wallet.browser, page));
      const { location } = await returnFromPage(last, page);
      wallet.codeFrom(location ?? page);
    });

    it('cannot return from the page before it was redirected there', async () => {
      const { interaction: asked } = await ask();
      const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
      const id = asked.authSession.split('.')[0] ?? '';
      const pending = (await steps.authorization(id))?.authorization?.interaction?.pending;
      if (pending?.kind !== 'web') throw new Error('no page is pending');
      const path = `/${issuer.id}/interactive-authorization/return?auth_session=${pending.pageHandle}`;
      for (const Cookie of ['', `vidimus-visit-${id}=`, `vidimus-visit-${id}=${'x'.repeat(43)}`]) {
        expectErrorPage(await issuer.service.call('GET', path, { headers: { Cookie } }));
      }
    });

    it('gets a cookie that is sent nowhere else until it returns', async () => {
      const { wallet, interaction: asked } = await ask();
      await wallet.visit(asked);
      const [line = '', spent = ''] = wallet.browser.lines.slice(1);
      expect(line).to.match(/^vidimus-visit-[\w-]{22}=[\w-]{43}; /);
      const [path, age = '', ...others] = line.split('; ').slice(1);
      expect([path, ...others]).to.deep.equal(['Path=/acme/interactive-authorization', 'HttpOnly', 'SameSite=Lax']);
      expect(Number(age.replace('Max-Age=', ''))).to.be.within(1700, 1800);
      expect(spent).to.match(/^vidimus-visit-[\w-]{22}=; Path=\/acme\/interactive-authorization; Max-Age=0; /);
      expect(wallet.browser.cookie).to.not.include('vidimus-visit');
    });
  });

  describe('of an unauthenticated wallet', () => {
    it('is asked for consent first and sees the target of the redirect', async () => {
      const { wallet, interaction: asked } = await ask();
      const shown = await wallet.open(asked);
      expect([shown.status, shown.location]).to.deep.equal([200, undefined]);
      expect(shown.text).to.include('not verified').and.include('<strong id="destination">wallet.example</strong>');
      expect(shown.text, 'the page is not told yet').to.not.include(issuer.backend.url);
      expectErrorPage(await wallet.browser.press(shown, 'perhaps'));
      const sent = await wallet.browser.press(shown, 'approve');
      expect(sent.status).to.equal(303);
      expect(sent.location?.href.startsWith(`${issuer.backend.url}/page?visit=`)).to.equal(true);
      const { location } = await returnFromPage(wallet.browser, sent.location ?? new URL(wallet.issuer));
      wallet.codeFrom(location ?? new URL(wallet.issuer));
    });

    it('is redirected to the wallet when the user declines, and the request ends', async () => {
      const { wallet, interaction: asked } = await ask();
      const shown = await wallet.open(asked);
      const { status, location } = await wallet.browser.press(shown, 'deny');
      expect(status).to.equal(303);
      const { error_description: _, ...sent } = Object.fromEntries(location?.searchParams ?? []);
      const { issuer: iss } = wallet;
      const denied = { keep: 'this', error: 'access_denied', state: 'state of the wallet', iss };
      expect(sent).to.deep.equal(denied);
      expectErrorPage(await wallet.browser.press(shown, 'approve'));
      expectErrorPage(await wallet.open(asked));
      const here = new URL(`https://x.example/?auth_session=${asked.authSession}`);
      expectError(await wallet.resume(here), 'invalid_session');
    });

    it('must be the browser that was asked, and returns the values of its page', async () => {
      const { wallet, interaction: asked } = await ask();
      const shown = await wallet.open(asked);
      const other = await ask();
      const stranger = new Browser();
      await other.wallet.open(other.interaction, CLIENT_ID, stranger);
      for (const decision of ['approve', 'deny']) {
        for (const browser of [new Browser(), stranger]) expectErrorPage(await browser.press(shown, decision));
        for (const decision_token of ['', 'guessed']) expectErrorPage(await wallet.browser.press(shown, decision, { decision_token }));
      }
      expect((await wallet.browser.press(shown, 'approve')).status).to.equal(303);
    });

    it('cannot return while its consent is pending', async () => {
      const { wallet, interaction: asked } = await ask();
      const page = await openCustomerPage(wallet, asked);
      const user = new Browser();
      await wallet.open(asked, CLIENT_ID, user);
      expectErrorPage(await returnFromPage(user, page));
      expectErrorPage(await returnFromPage(wallet.browser, page));
      wallet.codeFrom((await wallet.visit(asked)).back);
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
      const begun = await wallet.begin(uri, { scope: 'visitor', redirect_uri }, headers);
      const { status, location, text } = await wallet.open(wallet.expectWebStep(begun));
      expect([status, location]).to.deep.equal([200, undefined]);
      expect(text).to.include('<strong id="destination">evil.example</strong>');
    });

    it('is redirected at once and is still the only one that can return', async () => {
      const [wallet, instance] = [issuer.wallet(), newKey()];
      const attested = async () => {
        const { body } = await issuer.service.call('POST', `/${issuer.id}/challenge`);
        return provider.headers(instance, wallet.issuer, body.attestation_challenge);
      };
      const { uri } = await issuer.offer('visitor');
      const asked = wallet.expectWebStep(await wallet.begin(uri, { scope: 'visitor' }, await attested()));
      const { status, location: page = new URL(wallet.issuer) } = await wallet.open(asked);
      expect([status, page.origin]).to.deep.equal([302, issuer.backend.url]);
      expectErrorPage(await returnFromPage(new Browser(), page));
      const { location } = await returnFromPage(wallet.browser, page);
      const code = wallet.codeFrom(location);
      const stranger = await wallet.redeemCode(code);
      expect([stranger.status, stranger.body.error], 'a wallet that proves less').to.deep.equal([400, 'invalid_grant']);
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
      const asked = wallet.expectWebStep(await wallet.begin(undefined, { scope: 'visitor' }));
      const shown = await wallet.open(asked);
      const here = shown.text.replaceAll('https://issuer.example/base', issuer.service.address);
      const { location } = await wallet.browser.press({ ...shown, text: here }, 'approve');
      const returnTo = new URL(location?.searchParams.get('return_to') ?? '');
      const folder = '/base/acme/interactive-authorization';
      expect(`${returnTo.origin}${returnTo.pathname}`).to.equal(`https://issuer.example${folder}/return`);
      const [question = '', line = ''] = wallet.browser.lines;
      expect(question).to.match(/^__Host-vidimus-consent-[\w-]{22}=[\w-]{43}; /);
      expect(question.split('; ')).to.include.members(['Secure', 'HttpOnly', 'Path=/']);
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
