import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { Browser } from '../support/chained-wallet.ts';
import { Issuer } from '../support/interactive-issuer.ts';
import { askPage, expectError, expectErrorPage, goBack, pageOf } from '../support/interactive-page.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, newKey } from '../support/raw-wallet.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

describe('The browser that goes to a page before an issuance', () => {
  let issuer: Issuer;

  before(async () => {
    issuer = await Issuer.open();
  });
  after(() => issuer.close());

  const ask = (configuration?: string) => askPage(issuer, configuration);

  describe('is the one that the wallet opened, which', () => {
    it('is sent to the wallet, also after others came and were not', async () => {
      const { wallet, asked } = await ask();
      const page = await pageOf(wallet, asked);
      const guessing = new Browser();
      for (const name of wallet.browser.cookies.keys()) guessing.cookies.set(name, 'x'.repeat(43));
      const other = new Browser();
      await wallet.browse((await ask()).asked, CLIENT_ID, other);
      for (const stranger of [new Browser(), guessing, other]) {
        for (const more of ['', '&error=cancelled']) expectErrorPage(await goBack(stranger, page, more));
      }
      const here = new URL(`https://x.example/?auth_session=${asked.authSession}`);
      expectError(await wallet.resume(here), 'invalid_request');
      const { location } = await goBack(wallet.browser, page);
      wallet.codeFrom(location ?? here);
    });

    it('is the last one of several', async () => {
      const { wallet, asked } = await ask();
      const page = await pageOf(wallet, asked);
      const first = [...wallet.browser.cookies];
      await pageOf(wallet, asked);
      const before = new Browser();
      for (const [name, value] of first) before.cookies.set(name, value);
      expect([...wallet.browser.cookies]).to.not.deep.equal(first);
      expectErrorPage(await goBack(before, page));
      const last = new Browser();
      await wallet.browse(asked, CLIENT_ID, last);
      expectErrorPage(await goBack(wallet.browser, page));
      const { location } = await goBack(last, page);
      wallet.codeFrom(location ?? page);
    });

    it('comes back from nowhere before it was sent', async () => {
      const { asked } = await ask();
      const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
      const id = asked.authSession.split('.')[0] ?? '';
      const pending = (await steps.authorization(id))?.authorization?.interaction?.pending;
      if (pending?.kind !== 'web') throw new Error('no page is pending');
      const path = `/${issuer.id}/interactive-authorization/return?auth_session=${pending.pageHandle}`;
      for (const Cookie of ['', `vidimus-visit-${id}=`, `vidimus-visit-${id}=${'x'.repeat(43)}`]) {
        expectErrorPage(await issuer.service.call('GET', path, { headers: { Cookie } }));
      }
    });

    it('gets a cookie that goes nowhere else, until it is back', async () => {
      const { wallet, asked } = await ask();
      await wallet.visit(asked);
      const [line = '', spent = ''] = wallet.browser.lines.slice(1);
      expect(line).to.match(/^vidimus-visit-[\w-]{22}=[\w-]{43}; /);
      const [path, age = '', ...others] = line.split('; ').slice(1);
      expect([path, ...others]).to.deep.equal([
        'Path=/acme/interactive-authorization',
        'HttpOnly',
        'SameSite=Lax',
      ]);
      expect(Number(age.replace('Max-Age=', ''))).to.be.within(1700, 1800);
      expect(spent).to.match(
        /^vidimus-visit-[\w-]{22}=; Path=\/acme\/interactive-authorization; Max-Age=0; /,
      );
      expect(wallet.browser.cookie).to.not.include('vidimus-visit');
    });
  });

  describe('of a wallet that proved nothing', () => {
    it('is asked first, and told where the answer goes', async () => {
      const { wallet, asked } = await ask();
      const shown = await wallet.open(asked);
      expect([shown.status, shown.location]).to.deep.equal([200, undefined]);
      expect(shown.text)
        .to.include('not verified')
        .and.include('<strong id="destination">wallet.example</strong>');
      expect(shown.text, 'the page is not told yet').to.not.include(issuer.backend.url);
      expectErrorPage(await wallet.browser.press(shown, 'perhaps'));
      const sent = await wallet.browser.press(shown, 'approve');
      expect(sent.status).to.equal(303);
      expect(sent.location?.href.startsWith(`${issuer.backend.url}/page?visit=`)).to.equal(true);
      const { location } = await goBack(wallet.browser, sent.location ?? new URL(wallet.issuer));
      wallet.codeFrom(location ?? new URL(wallet.issuer));
    });

    it('goes to the wallet when the user says no, and the request is over', async () => {
      const { wallet, asked } = await ask();
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

    it('is the one that was asked, and answers with what stood on its page', async () => {
      const { wallet, asked } = await ask();
      const shown = await wallet.open(asked);
      const other = await ask();
      const stranger = new Browser();
      await other.wallet.open(other.asked, CLIENT_ID, stranger);
      for (const decision of ['approve', 'deny']) {
        for (const browser of [new Browser(), stranger])
          expectErrorPage(await browser.press(shown, decision));
        for (const decision_token of ['', 'guessed'])
          expectErrorPage(await wallet.browser.press(shown, decision, { decision_token }));
      }
      expect((await wallet.browser.press(shown, 'approve')).status).to.equal(303);
    });

    it('does not come back when it was asked and has not answered', async () => {
      const { wallet, asked } = await ask();
      const page = await pageOf(wallet, asked);
      const user = new Browser();
      await wallet.open(asked, CLIENT_ID, user);
      expectErrorPage(await goBack(user, page));
      expectErrorPage(await goBack(wallet.browser, page));
      wallet.codeFrom((await wallet.visit(asked)).back);
    });
  });

  describe('of a wallet that proved who it is', () => {
    const display = [{ name: 'Acme', locale: 'en' }];
    let provider: WalletProvider;

    before(async () => {
      provider = await WalletProvider.start();
      const registered = provider.registered([AUTHORIZATION_REQUEST.redirect_uri]);
      const attestation = { ...registered, walletAttestationRequired: false };
      await issuer.write('/issuer/config', { display, ...attestation });
    });
    after(async () => {
      await issuer.write('/issuer/config', { display });
      await provider.close();
    });

    it('is asked first where the wallet would have it sent to an address that is not registered', async () => {
      const wallet = issuer.wallet();
      const { body } = await issuer.service.call('POST', `/${issuer.id}/challenge`);
      const headers = provider.headers(newKey(), wallet.issuer, body.attestation_challenge);
      const { uri } = await issuer.offer('visitor');
      const redirect_uri = 'https://evil.example/take';
      const begun = await wallet.begin(uri, { scope: 'visitor', redirect_uri }, headers);
      const { status, location, text } = await wallet.open(wallet.asksWeb(begun));
      expect([status, location]).to.deep.equal([200, undefined]);
      expect(text).to.include('<strong id="destination">evil.example</strong>');
    });

    it('goes at once, and is still the only one that comes back', async () => {
      const [wallet, instance] = [issuer.wallet(), newKey()];
      const attested = async () => {
        const { body } = await issuer.service.call('POST', `/${issuer.id}/challenge`);
        return provider.headers(instance, wallet.issuer, body.attestation_challenge);
      };
      const { uri } = await issuer.offer('visitor');
      const asked = wallet.asksWeb(await wallet.begin(uri, { scope: 'visitor' }, await attested()));
      const { status, location: page = new URL(wallet.issuer) } = await wallet.open(asked);
      expect([status, page.origin]).to.deep.equal([302, issuer.backend.url]);
      expectErrorPage(await goBack(new Browser(), page));
      const { location } = await goBack(wallet.browser, page);
      const code = wallet.codeFrom(location);
      const stranger = await wallet.redeemCode(code);
      expect([stranger.status, stranger.body.error], 'a wallet that proves less').to.deep.equal([
        400,
        'invalid_grant',
      ]);
    });
  });
});

describe('The browser that goes to a page before an issuance, behind https and a path', () => {
  it('has its cookies go nowhere else, and never in the open', async () => {
    const issuer = await Issuer.open({ PUBLIC_URL: 'https://issuer.example/base' });
    try {
      const display = [{ name: 'Acme', locale: 'en' }];
      await issuer.write('/issuer/config', { display, builtInAs: { walletInitiated: true } });
      const wallet = issuer.wallet();
      const asked = wallet.asksWeb(await wallet.begin(undefined, { scope: 'visitor' }));
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
