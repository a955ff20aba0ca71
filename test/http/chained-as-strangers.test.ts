import { expect } from 'chai';
import { BentProvider } from '../support/bent-provider.ts';
import { Browser, type ChainedWallet, type Visit } from '../support/chained-wallet.ts';
import { answered, ChainedWorld, expectPage, later, told, UNKNOWN_LOGIN } from '../support/chained-world.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, dpopProof, newKey } from '../support/raw-wallet.ts';
import { certify } from '../support/test-certificates.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const EVIL = 'https://evil.example/take?all=this';
/** As a tenant has it that says nothing about unverified wallets. */
const asItComes = { confirmUnverifiedWallets: undefined };

describe('a login for whoever pushed a request', () => {
  let world: ChainedWorld;
  let token: string;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme']);
    ({ token, wallet } = await world.openTenant('acme', { upstream: world.upstream(), ...asItComes }));
  });
  after(() => world.close());

  describe('that fails shows the user why, and a button back to the wallet in place of a redirect:', () => {
    const expectReason = (shown: Visit, status: number, reason: string, error: string) => {
      expect([shown.status, shown.location]).to.deep.equal([status, undefined]);
      expect(shown.text).to.include('<html').and.include(reason);
      expect(shown.text).to.match(/<a [^>]*id="approve"[^>]*>Back to <bdi>evil\.example<\/bdi><\/a>/);
      const [, href = ''] = /id="approve"[^>]* href="([^"]+)"/.exec(shown.text) ?? [];
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
        const address = await wallet.begin({ scope: 'card', redirect_uri: EVIL });
        const back = await wallet.logIn(world.provider, browser, address, { deny: error });
        expectReason(await browser.visit(back), status, reason, passed);
        expectPage(await browser.visit(back), UNKNOWN_LOGIN);
      });
    }

    it('a provider that is away, until it is back', async () => {
      const bad = await BentProvider.start();
      const away = { upstream: { issuer: bad.issuer, clientId: 'client' }, ...asItComes };
      await bad.close();
      try {
        await world.configure(token, away);
        const browser = new Browser();
        const address = await wallet.begin({ scope: 'card', redirect_uri: EVIL });
        expectReason(
          await browser.visit(address),
          503,
          'the login cannot be reached at the moment',
          'temporarily_unavailable',
        );
        expect(browser.lines).to.deep.equal([]);
        await world.configure(token, { upstream: world.upstream(), ...asItComes });
        const { status, location } = await later(90, () => browser.visit(address));
        expect([status, location?.origin]).to.deep.equal([302, new URL(world.provider.issuer).origin]);
      } finally {
        await world.configure(token, { upstream: world.upstream(), ...asItComes });
      }
    });

    it('metadata of another server, and a code that the provider does not take', async () => {
      const bad = await BentProvider.start();
      try {
        bad.on('/.well-known/openid-configuration', { json: { issuer: 'https://evil.example' } });
        const upstream = { issuer: bad.issuer, clientId: 'client' };
        await world.configure(token, { upstream, ...asItComes });
        const address = await wallet.begin({ scope: 'card', redirect_uri: EVIL });
        expectReason(await new Browser().visit(address), 400, 'the login failed', 'server_error');
      } finally {
        await world.configure(token, { upstream: world.upstream(), ...asItComes });
        await bad.close();
      }
      const browser = new Browser();
      const address = await wallet.begin({ scope: 'card', redirect_uri: EVIL });
      const back = new URL(await wallet.logIn(world.provider, browser, address));
      back.searchParams.set('code', 'made-up');
      expectReason(await browser.visit(back.href), 400, 'the login failed', 'server_error');
    });
  });

  it('goes to the wallet at once where the operator switched the page off', async () => {
    await world.configure(token, { upstream: world.upstream(), confirmUnverifiedWallets: false });
    try {
      const browser = new Browser();
      const address = await wallet.begin({ scope: 'card' });
      const answer = await browser.visit(await wallet.logIn(world.provider, browser, address));
      expect(answer.status).to.equal(302);
      expect(told(answer.location)).to.have.property('code');
    } finally {
      await world.configure(token, { upstream: world.upstream(), ...asItComes });
    }
  });

  describe('unlike one for a wallet that proved who it is,', () => {
    let provider: WalletProvider;
    before(async () => {
      provider = await WalletProvider.start();
      await configure(world.upstream());
    });
    after(async () => {
      await world.configure(token, { upstream: world.upstream(), ...asItComes });
      await provider.close();
    });
    const configure = (upstream: object, by = provider.registered([AUTHORIZATION_REQUEST.redirect_uri])) =>
      world.configure(token, { upstream, ...asItComes }, by);
    const push = async (form: Record<string, string> = {}) => {
      const { body } = await world.service.call('POST', '/acme/chained-as/challenge');
      const pushed = await wallet.par(
        { scope: 'card', ...form },
        {
          DPoP: dpopProof(wallet.dpopKey, `${wallet.server}/par`),
          ...provider.headers(newKey(), wallet.server, body.attestation_challenge),
        },
      );
      return pushed;
    };
    const begin = async (form: Record<string, string> = {}) => {
      const pushed = await push(form);
      expect(pushed.status, pushed.text).to.equal(201);
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: pushed.body.request_uri });
      return `${wallet.server}/authorize?${query}`;
    };

    it('which gets its code at once', async () => {
      const browser = new Browser();
      const answer = await browser.visit(await wallet.logIn(world.provider, browser, await begin()));
      expect(answer.status, answer.text).to.equal(302);
      expect(told(answer.location)).to.have.property('code');
    });

    it('but to an address that is not registered for it: the user sees where the browser goes', async () => {
      for (const by of [
        provider.registered([AUTHORIZATION_REQUEST.redirect_uri]),
        provider.registered(['https://other.example/cb']),
        provider.configuration(),
      ]) {
        await configure(world.upstream(), by);
        const browser = new Browser();
        const address = await begin({ redirect_uri: EVIL });
        const shown = await browser.visit(await wallet.logIn(world.provider, browser, address));
        expect([shown.status, shown.location], shown.text).to.deep.equal([200, undefined]);
        expect(shown.text).to.include('<strong id="destination">evil.example</strong>');
        expect((await browser.press(shown, 'approve')).location?.origin).to.equal('https://evil.example');
      }
      await configure(world.upstream());
    });

    it('whose name another provider of the lists may not attest', async () => {
      const stranger = await certify({ name: 'Another Wallet CA', ca: true });
      await configure(world.upstream(), provider.registered([AUTHORIZATION_REQUEST.redirect_uri], stranger));
      const refused = await push();
      expect([refused.status, refused.body.error], refused.text).to.deep.equal([
        400,
        'invalid_client_attestation',
      ]);
      // By the certificate that signs attestations, too
      await configure(
        world.upstream(),
        provider.registered([AUTHORIZATION_REQUEST.redirect_uri], provider.signer),
      );
      expect((await push()).status).to.equal(201);
      await configure(world.upstream());
    });

    it('which is told of failures', async () => {
      const browser = new Browser();
      const back = await wallet.logIn(world.provider, browser, await begin(), { deny: 'access_denied' });
      expect(told((await browser.visit(back)).location)).to.deep.equal(answered(wallet, 'access_denied'));
      await configure({ issuer: 'http://127.0.0.1:9', clientId: 'client' });
      const { location } = await new Browser().visit(await begin());
      expect(told(location)).to.deep.equal(answered(wallet, 'temporarily_unavailable'));
    });
  });
});
