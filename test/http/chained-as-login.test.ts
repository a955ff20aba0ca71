import { expect } from 'chai';
import {
  Browser,
  type ChainedWallet,
  ChainedWorld,
  errorRedirectParameters,
  expectErrorPage,
  redirectParameters,
  UNKNOWN_LOGIN,
  withClockAdvanced,
} from '../support/chained-world.ts';
import { MisbehavingProvider } from '../support/misbehaving-provider.ts';
import { AUTHORIZATION_REQUEST, CODE_VERIFIER, dpopProof, RawWallet } from '../support/raw-wallet.ts';
import { CONFIDENTIAL_CLIENT } from '../support/upstream-provider.ts';

describe('a login at the upstream provider', () => {
  let world: ChainedWorld;
  let token: string;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme', 'other']);
    ({ token, wallet } = await world.createIssuingTenant('acme'));
  });
  after(() => world.close());

  describe('that the user does not complete', () => {
    const errors: readonly [string, string][] = [
      ['access_denied', 'access_denied'],
      ['temporarily_unavailable', 'temporarily_unavailable'],
      ['login_required', 'server_error'],
      ['invalid_scope', 'server_error'],
    ];
    for (const [error, expected] of errors) {
      // issuance N33
      it(`reports ${expected} to the wallet for ${error}, once`, async () => {
        const browser = new Browser();
        const address = await wallet.startAuthorization({ scope: 'card' });
        const callbackUrl = await wallet.logIn(world.provider, browser, address, { deny: error });
        const { status, location } = await browser.visit(callbackUrl);
        expect(status).to.equal(302);
        expect(redirectParameters(location)).to.deep.equal(errorRedirectParameters(wallet, expected));
        expect(location?.href).to.not.include('did%20not').and.not.include('did+not');
        expectErrorPage(await browser.visit(callbackUrl), UNKNOWN_LOGIN);
        expectErrorPage(await browser.visit(address), 'the request_uri');
      });
    }

    it('issues no code for a code that the provider rejects', async () => {
      const browser = new Browser();
      const callbackUrl = new URL(await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' })));
      callbackUrl.searchParams.set('code', 'made-up');
      expect(redirectParameters((await browser.visit(callbackUrl.href)).location)).to.deep.equal(
        errorRedirectParameters(wallet, 'server_error'),
      );
    });

    it('reports that the session of the offer finished during the login', async () => {
      const { session, issuer_state } = await world.offer(token, wallet, 'card');
      const browser = new Browser();
      const callbackUrl = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card', issuer_state }));
      expect((await world.service.call('DELETE', `/session/${session}`, { token })).status).to.equal(200);
      expect(redirectParameters((await browser.visit(callbackUrl)).location)).to.deep.equal(
        errorRedirectParameters(wallet, 'access_denied'),
      );
    });
  });

  // issuance N32
  describe('rejects on a page, and changes nothing', () => {
    let browser: Browser;
    let callbackUrl: URL;

    beforeEach(async () => {
      browser = new Browser();
      callbackUrl = new URL(await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' })));
    });
    afterEach(async () => {
      expect(redirectParameters((await browser.visit(callbackUrl.href)).location)).to.have.property('code');
    });
    const withChanges = (change: (url: URL) => void) => {
      const url = new URL(callbackUrl);
      change(url);
      return url.href;
    };

    it('another browser', async () => {
      expectErrorPage(await new Browser().visit(callbackUrl.href), UNKNOWN_LOGIN);
      const otherBrowser = new Browser();
      await wallet.logIn(world.provider, otherBrowser, await wallet.startAuthorization({ scope: 'card' }));
      expectErrorPage(await otherBrowser.visit(callbackUrl.href), UNKNOWN_LOGIN);
    });

    it('a cookie with another value', async () => {
      const otherBrowser = new Browser();
      for (const name of browser.cookies.keys()) otherBrowser.cookies.set(name, 'x'.repeat(43));
      expectErrorPage(await otherBrowser.visit(callbackUrl.href), UNKNOWN_LOGIN);
    });

    const states: readonly [string, (state: string) => string | undefined][] = [
      ['an unknown state', () => `${'a'.repeat(22)}.${'b'.repeat(43)}`],
      ['a state of another login', (state) => `${state.split('.')[0]}.${'b'.repeat(43)}`],
      ['an unknown state', () => 'xyz'],
      ['no state', () => undefined],
    ];
    for (const [name, change] of states) {
      for (const parameter of ['code', 'error']) {
        it(`${name}, with ${parameter}`, async () => {
          const url = withChanges(({ searchParams }) => {
            const state = change(searchParams.get('state') ?? '');
            searchParams.delete('state');
            searchParams.delete('code');
            if (state !== undefined) searchParams.set('state', state);
            searchParams.set(parameter, 'access_denied');
          });
          expectErrorPage(await browser.visit(url), UNKNOWN_LOGIN);
        });
      }
    }

    it('a response of another server, or without issuer (RFC 9207)', async () => {
      for (const parameter of ['code', 'error']) {
        const urlOfOtherServer = withChanges(({ searchParams }) => {
          searchParams.delete('code');
          searchParams.set(parameter, 'access_denied');
          searchParams.set('iss', 'https://evil.example');
        });
        expectErrorPage(await browser.visit(urlOfOtherServer), UNKNOWN_LOGIN);
        const urlWithoutIssuer = withChanges(({ searchParams }) => searchParams.delete('iss'));
        expectErrorPage(await browser.visit(urlWithoutIssuer), UNKNOWN_LOGIN);
      }
    });

    it('an empty response, or a repeated parameter', async () => {
      expectErrorPage(await browser.visit(withChanges(({ searchParams }) => searchParams.delete('code'))), UNKNOWN_LOGIN);
      const repeated = await browser.visit(withChanges(({ searchParams }) => searchParams.append('state', 'x')));
      expect([repeated.status, repeated.location]).to.deep.equal([400, undefined]);
    });

    it('a tenant without this login', async () => {
      const { wallet: otherWallet } = await world.createIssuingTenant('other', { upstream: world.upstream() });
      const url = callbackUrl.href.replace(wallet.server, otherWallet.server);
      expectErrorPage(await browser.visit(url), UNKNOWN_LOGIN);
      // A complete login at that tenant does not help either.
      const otherCallback = new URL(
        await otherWallet.logIn(world.provider, browser, await otherWallet.startAuthorization({ scope: 'card' })),
      );
      otherCallback.searchParams.set('state', callbackUrl.searchParams.get('state') ?? '');
      expectErrorPage(await browser.visit(otherCallback.href), UNKNOWN_LOGIN);
    });
  });

  it('accepts a response once', async () => {
    const browser = new Browser();
    const callbackUrl = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' }));
    const cookiesBefore = new Map(browser.cookies);
    expect((await browser.visit(callbackUrl)).status).to.equal(302);
    for (const [name, value] of cookiesBefore) browser.cookies.set(name, value);
    expectErrorPage(await browser.visit(callbackUrl), UNKNOWN_LOGIN);
  });

  it('issues one code for concurrent responses', async () => {
    const browser = new Browser();
    const callbackUrl = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' }));
    const before = world.provider.hits('/token');
    const responses = await Promise.all(Array.from({ length: 5 }, () => browser.visit(callbackUrl)));
    expect(responses.map(({ status }) => status).toSorted()).to.deep.equal([302, 400, 400, 400, 400]);
    const [redirect] = responses.filter(({ location }) => location !== undefined);
    expect(redirectParameters(redirect?.location)).to.have.property('code');
    expect(world.provider.hits('/token') - before, 'the code is redeemed once').to.equal(1);
  });

  // issuance N29
  it('deletes a login after half an hour, and a request after a minute', async () => {
    const browser = new Browser();
    const address = await wallet.startAuthorization({ scope: 'card' });
    const callbackUrl = await wallet.logIn(world.provider, browser, address);
    const unopenedLogin = await wallet.startAuthorization({ scope: 'card' });
    expectErrorPage(await withClockAdvanced(61, () => browser.visit(unopenedLogin)), 'the request_uri');
    expectErrorPage(await withClockAdvanced(1801, () => browser.visit(address)), 'the request_uri');
    expectErrorPage(await withClockAdvanced(1801, () => browser.visit(callbackUrl)), UNKNOWN_LOGIN);
    expect((await browser.visit(callbackUrl)).status).to.equal(302);
  });

  it('lets a user who logged in before the expiry restart the login until the request expires', async () => {
    const browser = new Browser();
    const address = await wallet.startAuthorization({ scope: 'card' });
    expect((await browser.visit(address)).status).to.equal(302);
    const { status, location } = await withClockAdvanced(1700, () => browser.visit(address));
    expect([status, location?.origin]).to.deep.equal([302, new URL(world.provider.issuer).origin]);
    const callbackUrl = await world.provider.login(location?.href ?? '');
    expect(redirectParameters((await browser.visit(callbackUrl.href)).location)).to.have.property('code');
  });

  // issuance N28, N29
  it('opens pushed requests only, for the client that pushed them', async () => {
    const browser = new Browser();
    const address = new URL(await wallet.startAuthorization({ scope: 'card' }));
    expectErrorPage(await browser.visit(`${wallet.server}/authorize?response_type=code`), 'push');
    const otherUrl = new URL(address);
    otherUrl.searchParams.set('client_id', 'https://other.example');
    expectErrorPage(await browser.visit(otherUrl.href), 'the request_uri');
    // The built-in server does not know the request, and vice versa.
    expectErrorPage(await browser.visit(address.href.replace('/chained-as', '')), 'the request_uri');
    const { issuer_state } = await world.offer(token, wallet, 'card');
    const builtIn = (await new RawWallet(world.service, 'acme').par({ issuer_state, scope: 'card' })).body;
    address.searchParams.set('request_uri', builtIn.request_uri);
    expectErrorPage(await browser.visit(address.href), 'the request_uri');
    expect(browser.lines).to.deep.equal([]);
  });

  describe('with a provider that fails', () => {
    let badProvider: MisbehavingProvider;
    beforeEach(async () => {
      badProvider = await MisbehavingProvider.start();
    });
    afterEach(async () => {
      await badProvider.close();
      await world.configure(token, { upstream: world.upstream() });
    });
    const start = async () => {
      await world.configure(token, { upstream: { issuer: badProvider.issuer, clientId: 'client' } });
      const browser = new Browser();
      return { browser, answer: await browser.visit(await wallet.startAuthorization({ scope: 'card' })) };
    };
    /** The callback of the provider for a login request. */
    const callbackFrom = (loginUrl: URL | undefined) => `${wallet.server}/callback?code=c&state=${loginUrl?.searchParams.get('state')}`;

    it('reports an unreachable provider to the wallet', async () => {
      await badProvider.close();
      const { browser, answer } = await start();
      expect(answer.status).to.equal(302);
      expect(redirectParameters(answer.location)).to.deep.equal(errorRedirectParameters(wallet, 'temporarily_unavailable'));
      expect(browser.lines).to.deep.equal([]);
    });

    it('reports an error to the wallet if the metadata belong to another server', async () => {
      badProvider.respondAt('/.well-known/openid-configuration', { json: { issuer: 'https://evil.example' } });
      expect(redirectParameters((await start()).answer.location)).to.deep.equal(errorRedirectParameters(wallet, 'server_error'));
    });

    const tokens: readonly [string, object][] = [
      ['no nonce', { nonce: undefined }],
      ['another nonce', { nonce: 'n-2' }],
      ['another audience', { aud: 'other-client' }],
      ['another issuer', { iss: 'https://evil.example' }],
      ['an expiry in the past', { exp: 1 }],
      ['no subject', { sub: undefined }],
    ];
    for (const [name, claims] of tokens) {
      // issuance N34
      it(`issues no code for an ID token with ${name}`, async () => {
        const { browser, answer } = await start();
        const nonce = answer.location?.searchParams.get('nonce') ?? '';
        badProvider.respondAt('/token', { json: { id_token: badProvider.token({ claims: { nonce, ...claims } }) } });
        const { location } = await browser.visit(callbackFrom(answer.location));
        expect(redirectParameters(location)).to.deep.equal(errorRedirectParameters(wallet, 'server_error'));
      });
    }

    it('accepts the same token without the fault', async () => {
      const { browser, answer } = await start();
      const nonce = answer.location?.searchParams.get('nonce') ?? '';
      badProvider.respondAt('/token', { json: { id_token: badProvider.token({ claims: { nonce } }) } });
      const { location } = await browser.visit(callbackFrom(answer.location));
      expect(redirectParameters(location)).to.have.property('code');
    });

    it('asks the wallet to retry if the provider becomes unavailable', async () => {
      const { browser, answer } = await start();
      await badProvider.close();
      const { location } = await browser.visit(callbackFrom(answer.location));
      expect(redirectParameters(location)).to.deep.equal(errorRedirectParameters(wallet, 'temporarily_unavailable'));
    });

    it('sends a code only to the provider of the request', async () => {
      const { browser, answer } = await start();
      await world.configure(token, { upstream: world.upstream() });
      const before = [badProvider.countRequests('/token'), world.provider.hits('/token')];
      const { location } = await browser.visit(callbackFrom(answer.location));
      expect(redirectParameters(location)).to.deep.equal(errorRedirectParameters(wallet, 'server_error'));
      expect([badProvider.countRequests('/token'), world.provider.hits('/token')]).to.deep.equal(before);
    });
  });
});

for (const form of ['json', 'jwt'] as const) {
  describe(`OpenID provider with scope claims only at the userinfo endpoint (${form})`, () => {
    let world: ChainedWorld;
    let wallet: ChainedWallet;
    let token: string;
    before(async () => {
      world = await ChainedWorld.start(['acme'], form);
      const upstream = { issuer: world.provider.issuer, ...CONFIDENTIAL_CLIENT };
      ({ token, wallet } = await world.createIssuingTenant('acme', { upstream }));
    });
    after(() => world.close());

    const identity = async () => {
      const tokens = await wallet.redeemCode(await wallet.chainedCode(world.provider, { scope: 'badge' }));
      expect(tokens.status, tokens.text).to.equal(200);
      await wallet.request(tokens.body.access_token, 'badge');
      return world.backend.callsTo('/claims').at(-1)?.body.identity;
    };

    it('passes the name of the user to the backend', async () => {
      const { iss, sub, token_claims } = await identity();
      expect([iss, sub]).to.deep.equal([world.provider.issuer, 'alice']);
      expect(token_claims).to.include({ given_name: 'Alice', family_name: 'Adams', aud: CONFIDENTIAL_CLIENT.clientId });
      expect(token_claims).to.have.property('nonce');
      expect(world.provider.hits('/me')).to.equal(1);
    });

    it('gets no userinfo request if that is disabled', async () => {
      const upstream = { issuer: world.provider.issuer, ...CONFIDENTIAL_CLIENT, userinfo: false };
      await world.configure(token, { upstream });
      expect((await identity()).token_claims).not.to.have.any.keys('given_name', 'family_name');
      expect(world.provider.hits('/me')).to.equal(1);
    });
  });
}

describe('OpenID provider whose access tokens are not valid at its userinfo endpoint', () => {
  it('logs in no user until userinfo is disabled', async () => {
    const world = await ChainedWorld.start(['acme']);
    try {
      const upstream = { issuer: world.provider.issuer, ...CONFIDENTIAL_CLIENT };
      const { token, wallet } = await world.createIssuingTenant('acme', { upstream });
      const error = await wallet.chainedCode(world.provider, { scope: 'badge' }).catch((error: Error) => error);
      expect(String(error)).to.include('server_error');
      await world.configure(token, { upstream: { ...upstream, userinfo: false } });
      expect(await wallet.chainedCode(world.provider, { scope: 'badge' })).to.be.a('string');
    } finally {
      await world.close();
    }
  });
});

/** The default of HTTP clients on the JDK. */
const JDK_ACCEPT = 'text/html, image/gif, image/jpeg, */*; q=0.2';

describe('The chained authorization server of the published contract', () => {
  let world: ChainedWorld;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme']);
    ({ wallet } = await world.createIssuingTenant('acme'));
  });
  after(() => world.close());

  const postJson = (path: string, json: object) =>
    world.service.call('POST', `/acme/chained-as/${path}`, {
      json,
      headers: { DPoP: dpopProof(wallet.dpopKey, `${wallet.server}/${path}`) },
    });
  const details = [{ type: 'openid_credential', credential_configuration_id: 'card' }];

  it('accepts pushed requests and token requests as JSON with an array of details', async () => {
    const pushResponse = await postJson('par', { ...AUTHORIZATION_REQUEST, authorization_details: details });
    expect(pushResponse.status, pushResponse.text).to.equal(201);
    const code = await wallet.chainedCode(world.provider, { scope: 'card' });
    const { client_id, redirect_uri } = AUTHORIZATION_REQUEST;
    const grant = { grant_type: 'authorization_code', code, code_verifier: CODE_VERIFIER };
    const answer = await postJson('token', { ...grant, client_id, redirect_uri, authorization_details: details });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.authorization_details).to.have.length(1);
  });

  it('describes errors of such a request as JSON', async () => {
    for (const json of [
      { ...AUTHORIZATION_REQUEST, response_type: 7 },
      { ...AUTHORIZATION_REQUEST, scope: null },
    ]) {
      const { status, body } = await postJson('par', json);
      expect([status, typeof body.error]).to.deep.equal([400, 'string']);
    }
  });

  const invalidPaths = ['authorize?client_id=x&request_uri=y', 'authorize', 'callback?state=x&code=y', 'callback'];
  for (const path of invalidPaths) {
    it(`answers ${path} with JSON, and with a page for browsers`, async () => {
      const openWith = (headers: Record<string, string>) => world.service.call('GET', `/acme/chained-as/${path}`, { headers });
      for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5', JDK_ACCEPT]) {
        const { status, headers, body } = await openWith({ accept });
        expect([status, headers.get('content-type')]).to.deep.equal([400, 'application/json']);
        expect(body.error).to.equal('invalid_request');
      }
      const { status, text } = await openWith({ accept: 'text/html,application/xhtml+xml' });
      expect([status, text.includes('<html')]).to.deep.equal([400, true]);
    });
  }

  it('redirects a GET with 302', async () => {
    const answer = await fetch(await wallet.startAuthorization({ scope: 'card' }), { redirect: 'manual' });
    expect(answer.status).to.equal(302);
  });
});
