import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { Browser, type ChainedWallet, payloadOf, type Visit } from '../support/chained-wallet.ts';
import { answered, ChainedWorld, expectPage, later, told, UNKNOWN_LOGIN } from '../support/chained-world.ts';
import { times } from '../support/raced-services.ts';
import { CLIENT_ID } from '../support/raw-wallet.ts';

const EVIL = 'https://evil.example/take?all=this';
const UNKNOWN_PAGE = 'this page is unknown, answered, or of another browser';
/** As a tenant has it that says nothing about unverified wallets. */
const asItComes = { confirmUnverifiedWallets: undefined };

describe('a login for a wallet that proved nothing', () => {
  let world: ChainedWorld;
  let token: string;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme', 'other']);
    ({ token, wallet } = await world.openTenant('acme', { upstream: world.upstream(), ...asItComes }));
  });
  after(() => world.close());

  /** The user opens the link of whoever pushed the request, and is logged in. */
  const page = async (form: Record<string, string> = {}) => {
    const browser = new Browser();
    const back = await wallet.logIn(world.provider, browser, await wallet.begin({ scope: 'card', ...form }));
    return { browser, back, page: await browser.visit(back) };
  };
  const sessions = async () => (await world.service.call('GET', '/session', { token })).text;

  describe('ends on a page', () => {
    it('in place of a redirect, which says what would go where, before there is a code', async () => {
      const before = await sessions();
      const { page: shown } = await page({ redirect_uri: EVIL });
      expect([shown.status, shown.location]).to.deep.equal([200, undefined]);
      expect(shown.headers.get('content-type')).to.equal('text/html; charset=utf-8');
      expect(shown.text).to.include('<span>Badge</span>').and.include('Acme');
      expect(shown.text).to.include('not verified').and.include(`>${CLIENT_ID}</bdi>`);
      expect(shown.text).to.include('<strong id="destination">evil.example</strong>');
      expect(shown.text).to.include('id="approve"').and.include('id="deny"');
      expect(shown.text).to.not.match(/<script|<img|<link|src=/);
      expect(shown.headers.get('content-security-policy'))
        .to.include("default-src 'none'")
        .and.include("frame-ancestors 'none'");
      expect(shown.headers.get('cache-control')).to.include('no-store');
      expect(shown.headers.get('referrer-policy')).to.equal('no-referrer');
      expect(await sessions(), 'no session yet').to.equal(before);
    });

    it('that names the scheme of an app', async () => {
      const { page: shown } = await page({ redirect_uri: 'eudi-openid4ci://login.bank.example' });
      expect(shown.text).to.include('<strong id="destination">eudi-openid4ci:</strong>');
    });

    it('whose words a client cannot choose', async () => {
      const client_id = '"><script>alert(1)</script>';
      const pushed = await wallet.par({ scope: 'card', client_id });
      const query = new URLSearchParams({ client_id, request_uri: pushed.body.request_uri });
      const browser = new Browser();
      const back = await wallet.logIn(world.provider, browser, `${wallet.server}/authorize?${query}`);
      const { status, text } = await browser.visit(back);
      expect(status).to.equal(200);
      expect(text).to.include('&#60;script&#62;').and.not.include('<script');
    });
  });

  it('leads to a credential of the user once approved, and takes the cookie away', async () => {
    const { browser, page: shown } = await page({ scope: 'badge' });
    const answer = await browser.press(shown, 'approve');
    expect(answer.status, answer.text).to.equal(303);
    expect(told(answer.location)).to.include({ state: 'state of the wallet', iss: wallet.server });
    expect(browser.cookies.size).to.equal(0);
    const redeemed = await wallet.redeemCode(answer.location?.searchParams.get('code') ?? '');
    expect(redeemed.status, redeemed.text).to.equal(200);
    expect(payloadOf(redeemed.body.access_token).sub).to.equal('alice');
    const credential = await wallet.request(redeemed.body.access_token, 'badge');
    expect(credential.status, credential.text).to.equal(200);
    expect(payloadOf(credential.body.credentials[0].credential)).to.include({ given_name: 'Alice' });
  });

  it('tells the wallet when the user denies, and nothing after that', async () => {
    const { browser, page: shown } = await page();
    const kept = new Map(browser.cookies);
    const denied = await browser.press(shown, 'deny');
    expect(denied.status).to.equal(303);
    expect(told(denied.location)).to.deep.equal(answered(wallet, 'access_denied'));
    for (const [name, value] of kept) browser.cookies.set(name, value);
    expectPage(await browser.press(shown, 'approve'), UNKNOWN_PAGE);
  });

  it('says that the offer is over when it ended while the page was open', async () => {
    const { session, issuer_state } = await world.offer(token, wallet, 'card');
    const { browser, page: shown } = await page({ issuer_state });
    expect((await world.service.call('DELETE', `/session/${session}`, { token })).status).to.equal(200);
    const { location } = await browser.press(shown, 'approve');
    expect(told(location)).to.deep.equal(answered(wallet, 'access_denied'));
  });

  describe('refuses an answer, and changes nothing,', () => {
    let browser: Browser;
    let shown: Visit;

    beforeEach(async () => {
      ({ browser, page: shown } = await page());
    });
    afterEach(async () => {
      expect(told((await browser.press(shown, 'approve')).location)).to.have.property('code');
    });

    it('of another browser', async () => {
      expectPage(await new Browser().press(shown, 'approve'), UNKNOWN_PAGE);
      const { browser: other } = await page();
      expectPage(await other.press(shown, 'approve'), UNKNOWN_PAGE);
      expectPage(await other.press(shown, 'deny'), UNKNOWN_PAGE);
    });

    it('with a cookie of another value', async () => {
      const other = new Browser();
      for (const name of browser.cookies.keys()) other.cookies.set(name, 'x'.repeat(43));
      expectPage(await other.press(shown, 'approve'), UNKNOWN_PAGE);
    });

    it('of no page, or of another one', async () => {
      const { page: foreign } = await page();
      const [, theirs = ''] = /name="confirmation" value="([^"]+)"/.exec(foreign.text) ?? [];
      const [, ours = ''] = /name="confirmation" value="([^"]+)"/.exec(shown.text) ?? [];
      const mixed = `${ours.split('.')[0]}.${theirs.split('.')[1]}`;
      for (const confirmation of ['', 'guessed', theirs, mixed]) {
        expectPage(await browser.press(shown, 'approve', { confirmation }), UNKNOWN_PAGE);
      }
    });

    it('that is neither of the two', async () => {
      for (const decision of ['perhaps', '']) {
        expectPage(await browser.press(shown, decision), 'the decision is missing');
      }
    });

    it('at another tenant', async () => {
      const { wallet: other } = await world.openTenant('other', {
        upstream: world.upstream(),
        ...asItComes,
      });
      const text = shown.text.replace(wallet.server, other.server);
      expectPage(await browser.press({ ...shown, text }, 'approve'), UNKNOWN_PAGE);
    });

    it('after the end of the request', async () => {
      expectPage(await later(1801, () => browser.press(shown, 'approve')), UNKNOWN_PAGE);
    });
  });

  it('cannot be finished past the page: not by its callback nor by its first address', async () => {
    const browser = new Browser();
    const address = await wallet.begin({ scope: 'card' });
    const back = await wallet.logIn(world.provider, browser, address);
    expect((await browser.visit(back)).status).to.equal(200);
    expectPage(await browser.visit(back), UNKNOWN_LOGIN);
    expectPage(await browser.visit(address), 'the request_uri');
  });

  it('gives one code, however often the button is pressed, and one session', async () => {
    const { browser, page: shown } = await page();
    const before = JSON.parse(await sessions());
    const answers = await times(30, () => browser.press(shown, 'approve'));
    expect(answers.filter(({ status }) => status === 303)).to.have.length(1);
    expect(answers.filter(({ status }) => status === 400)).to.have.length(29);
    expect(JSON.parse(await sessions())).to.have.length(before.length + 1);
  });

  it('is forgotten with its answer: nobody keeps who logged in', async () => {
    const stored = async (shown: Visit) => {
      const [, id = ''] = /name="confirmation" value="([^".]+)\./.exec(shown.text) ?? [];
      const { container } = world.service.service;
      return (
        await container
          .get(Store)
          .read('acme' as TenantId)
          .authorization(id)
      )?.authorization;
    };
    for (const decision of ['approve', 'deny']) {
      const { browser, page: shown } = await page();
      expect((await stored(shown))?.identity).to.include({ sub: 'alice' });
      expect((await browser.press(shown, decision)).status).to.equal(303);
      expect(await stored(shown), decision).to.not.have.any.keys('identity', 'upstream');
    }
  });
});
