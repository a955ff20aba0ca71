import { expect } from 'chai';
import {
  Browser,
  ChainedWallet,
  ChainedWorld,
  expectErrorPage,
  payloadOf,
  redirectParameters,
  UNKNOWN_LOGIN,
} from '../support/chained-world.ts';
import { MisbehavingProvider } from '../support/misbehaving-provider.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { CLIENT_ID, dpopProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService } from '../support/test-service.ts';
import { CONFIDENTIAL_CLIENT } from '../support/upstream-provider.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const config = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] };

describe('the chained authorization server', () => {
  let world: ChainedWorld;
  let token: string;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme']);
    ({ token, wallet } = await world.createIssuingTenant('acme'));
  });
  after(() => world.close());
  beforeEach(() => world.backend.clearCalls());

  const accessToken = async (form: Record<string, string>): Promise<string> => {
    const answer = await wallet.redeemCode(await wallet.chainedCode(world.provider, form));
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.access_token;
  };

  describe('from an authorization request to a credential', () => {
    it('logs in the user of an offer, and passes the identity to the backend', async () => {
      const { session, issuer_state, authorization_server } = await world.offer(token, wallet, 'badge', {
        authorization_server: wallet.server,
      });
      expect(authorization_server).to.equal(wallet.server);
      const tokens = await wallet.redeemCode(await wallet.chainedCode(world.provider, { issuer_state, scope: 'badge' }));
      expect(tokens.status, tokens.text).to.equal(200);
      expect(tokens.headers.get('cache-control')).to.equal('no-store');
      expect(tokens.body).to.include({ token_type: 'DPoP', expires_in: 3600, scope: 'badge' });
      const claims = payloadOf(tokens.body.access_token);
      expect(claims).to.include({ iss: wallet.server, aud: wallet.issuer, sub: 'alice', client_id: CLIENT_ID, issuer_state });
      expect(claims.exp - claims.iat).to.equal(3600);
      const credential = await wallet.request(tokens.body.access_token, 'badge');
      expect(credential.status, credential.text).to.equal(200);
      expect(payloadOf(credential.body.credentials[0].credential)).to.include({ given_name: 'Alice' });
      const [call] = world.backend.callsTo('/claims');
      expect(call?.body.session).to.equal(session);
      const { identity } = call?.body ?? {};
      expect(identity).to.include({ iss: world.provider.issuer, sub: 'alice' });
      // The claims of both tokens; a claim of the ID token wins over the same claim of the access token.
      expect(identity.token_claims).to.include({ department: 'R&D', given_name: 'Alice' });
      const sessionResponse = await world.service.call('GET', `/session/${session}`, { token });
      expect(sessionResponse.body.status).to.equal('completed');
    });

    it('uses a separate session for a wallet-initiated flow', async () => {
      const text = await accessToken({ scope: 'badge' });
      const { issuer_state, sub } = payloadOf(text);
      expect(sub).to.equal('alice');
      expect(issuer_state).to.match(/^[\w-]{22,}$/);
      const credential = await wallet.request(text, 'badge');
      expect(credential.status, credential.text).to.equal(200);
      const session = world.backend.callsTo('/claims')[0]?.body.session;
      const sessionResponse = await world.service.call('GET', `/session/${session}`, { token });
      expect(sessionResponse.body).to.include({ status: 'completed', kind: 'issuance' });
      expect(sessionResponse.body.configurationIds).to.deep.equal(['badge']);
    });

    it('returns identifiers for authorization_details, and refreshes tokens', async () => {
      const details = [{ type: 'openid_credential', credential_configuration_id: 'card' }];
      const code = await wallet.chainedCode(world.provider, { authorization_details: JSON.stringify(details) });
      const tokens = await wallet.redeemCode(code);
      expect(tokens.body.authorization_details).to.deep.equal([{ ...details[0], credential_identifiers: ['card'] }]);
      const refresh = { grant_type: 'refresh_token', refresh_token: tokens.body.refresh_token };
      const unnamedResponse = await world.service.call('POST', '/acme/chained-as/token', {
        form: refresh,
        headers: { DPoP: dpopProof(wallet.dpopKey, `${wallet.server}/token`) },
      });
      // The wallet is identified by the token alone here, and the token belongs to a named wallet.
      expect([unnamedResponse.status, unnamedResponse.body.error]).to.deep.equal([400, 'invalid_grant']);
      const namedResponse = await world.service.call('POST', '/acme/chained-as/token', {
        form: { ...refresh, client_id: CLIENT_ID },
        headers: { DPoP: dpopProof(wallet.dpopKey, `${wallet.server}/token`) },
      });
      expect(namedResponse.status, namedResponse.text).to.equal(200);
      expect(payloadOf(namedResponse.body.access_token)).to.include({ iss: wallet.server, sub: 'alice' });
    });

    it('passes no data of the wallet to the provider, and only required data to the wallet', async () => {
      const browser = new Browser();
      const { location } = await browser.visit(await wallet.startAuthorization({ scope: 'card' }));
      const loginParameters = Object.fromEntries(location?.searchParams ?? []);
      expect(loginParameters).to.include({
        response_type: 'code',
        client_id: CONFIDENTIAL_CLIENT.clientId,
        redirect_uri: `${wallet.server}/callback`,
        scope: 'openid profile',
        code_challenge_method: 'S256',
      });
      expect(location?.href).to.not.match(/wallet|_IhBZY88woJ6oD5MlABM04Aap43i2LzsA14HBhVnfos/i);
      const callbackUrl = await world.provider.login(location?.href ?? '');
      const answer = await browser.visit(callbackUrl.href);
      expect(answer.status).to.equal(302);
      expect(Object.keys(redirectParameters(answer.location)).toSorted()).to.deep.equal(['code', 'iss', 'state']);
      expect(redirectParameters(answer.location)).to.include({ state: 'state of the wallet', iss: wallet.server });
    });

    it('binds the login to the browser by a cookie with a narrow path, and deletes it', async () => {
      const browser = new Browser();
      const callbackUrl = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' }));
      const [line = ''] = browser.lines;
      expect(line).to.match(/^vidimus-login-[\w-]{22}=[\w-]{43}; /);
      expect(line.split('; ').slice(1)).to.deep.equal(['Path=/acme/chained-as', 'Max-Age=1800', 'HttpOnly', 'SameSite=Lax']);
      expect((await browser.visit(callbackUrl)).status).to.equal(302);
      expect(browser.cookies.size).to.equal(0);
    });

    it('keeps several logins of one browser apart', async () => {
      const browser = new Browser();
      const first = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' }));
      const second = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' }));
      for (const callbackUrl of [first, second])
        expect(redirectParameters((await browser.visit(callbackUrl)).location)).to.have.property('code');
    });

    // issuance N30
    it('may be opened again before the login is finished; then the newest visit counts', async () => {
      const browser = new Browser();
      const address = await wallet.startAuthorization({ scope: 'card' });
      const olderCallback = await wallet.logIn(world.provider, browser, address);
      const newerCallback = await wallet.logIn(world.provider, browser, address);
      expectErrorPage(await browser.visit(olderCallback), UNKNOWN_LOGIN);
      expect(redirectParameters((await browser.visit(newerCallback)).location)).to.have.property('code');
      expectErrorPage(await browser.visit(address), 'the request_uri is unknown, expired or used');
    });
  });

  it('invalidates its grants when the tenant disables it', async () => {
    const text = await accessToken({ scope: 'card' });
    expect((await wallet.request(text, 'card')).status).to.equal(200);
    await world.configure(token, { enabled: false, upstream: world.upstream() });
    const rejection = await wallet.request(text, 'card');
    expect([rejection.status, rejection.body.error]).to.deep.equal([401, 'invalid_token']);
    await world.configure(token, { upstream: world.upstream() });
    expect((await wallet.request(text, 'card')).status).to.equal(200);
  });

  it('marks its offers so that they are not used at the server without a login', async () => {
    const builtIn = new RawWallet(world.service, 'acme');
    const { issuer_state } = await world.offer(token, wallet, 'card', { authorization_server: wallet.server });
    const rejection = await builtIn.par({ issuer_state, scope: 'card' });
    expect([rejection.status, rejection.body.error]).to.deep.equal([400, 'invalid_request']);
    // The name of a session in a token is no issuer state either.
    const ownState = payloadOf(await accessToken({ scope: 'card' })).issuer_state;
    expect((await builtIn.par({ issuer_state: ownState, scope: 'card' })).status).to.equal(400);
    expect((await wallet.par({ issuer_state: ownState, scope: 'card' })).status).to.equal(201);
    const openOffer = await world.offer(token, wallet, 'card');
    expect((await builtIn.par({ issuer_state: openOffer.issuer_state, scope: 'card' })).status).to.equal(400);
    expect((await wallet.par({ issuer_state: openOffer.issuer_state, scope: 'card' })).status).to.equal(201);
    const offerWithServer = await world.offer(token, wallet, 'card', { authorization_server: builtIn.issuer });
    expect((await builtIn.par({ issuer_state: offerWithServer.issuer_state, scope: 'card' })).status).to.equal(201);
  });

  it('rejects a request for more credentials than a session can count', async () => {
    const { token: tokenOfMany, wallet: otherWallet } = await world.createIssuingTenant('many', { upstream: world.upstream() });
    for (let i = 0; i <= 30; i++) {
      const card = { id: `card-${i}`, config: { ...config, scope: 'all' }, vct: 'urn:card:1', claims: {} };
      await createResource(world.service, tokenOfMany, '/issuer/credentials', card);
    }
    const rejection = await otherWallet.par({ scope: 'all' });
    expect([rejection.status, rejection.body.error]).to.deep.equal([400, 'invalid_scope']);
    await world.service.call('DELETE', '/issuer/credentials/card-30', { token: tokenOfMany });
    expect((await otherWallet.par({ scope: 'all' })).status).to.equal(201);
  });

  describe('publishes', () => {
    it('its endpoints at both well-known addresses', async () => {
      const suffixMetadata = await world.service.call('GET', '/acme/chained-as/.well-known/oauth-authorization-server');
      const insertedMetadata = await world.service.call('GET', '/.well-known/oauth-authorization-server/acme/chained-as');
      expect([suffixMetadata.status, suffixMetadata.headers.get('content-type')]).to.deep.equal([200, 'application/json']);
      expect(insertedMetadata.text).to.equal(suffixMetadata.text);
      const { server } = wallet;
      expect(suffixMetadata.body).to.include({
        issuer: server,
        authorization_endpoint: `${server}/authorize`,
        pushed_authorization_request_endpoint: `${server}/par`,
        token_endpoint: `${server}/token`,
        challenge_endpoint: `${server}/challenge`,
        jwks_uri: `${server}/.well-known/jwks.json`,
        require_pushed_authorization_requests: true,
        authorization_response_iss_parameter_supported: true,
      });
      expect(suffixMetadata.body.grant_types_supported).to.deep.equal(['authorization_code', 'refresh_token']);
      const issuer = await world.service.call('GET', '/.well-known/openid-credential-issuer/acme');
      expect(issuer.body.authorization_servers).to.include(server);
    });

    it('the configured signing key', async () => {
      const chain = await createResource(world.service, token, '/key-chain', { id: 'chained', usages: ['signing'] });
      await world.configure(token, { upstream: world.upstream(), token: { signingKeyId: chain.id } });
      const text = await accessToken({ scope: 'card' });
      const [header = ''] = text.split('.');
      const { kid, typ } = JSON.parse(Buffer.from(header, 'base64url').toString());
      expect(typ).to.equal('at+jwt');
      const { keys } = (await world.service.call('GET', '/acme/chained-as/.well-known/jwks.json')).body;
      const key = keys.find((entry: { kid: string }) => entry.kid === kid);
      expect(key).to.include({ use: 'sig', alg: 'ES256' }).and.not.have.property('d');
      expect((await wallet.request(text, 'card')).status).to.equal(200);
      await world.configure(token, { upstream: world.upstream() });
      const { kid: currentKid } = JSON.parse(
        Buffer.from((await accessToken({ scope: 'card' })).split('.')[0] ?? '', 'base64url').toString(),
      );
      expect(currentKid).to.not.equal(kid);
    });

    it('nothing for a tenant without it, or with it disabled', async () => {
      const paths: readonly [string, string][] = [
        ['POST', '/par'],
        ['GET', '/authorize?client_id=a&request_uri=urn:ietf:params:oauth:request_uri:x'],
        ['GET', '/callback?code=a&state=b'],
        ['POST', '/confirm'],
        ['POST', '/token'],
        ['POST', '/challenge'],
        ['GET', '/.well-known/jwks.json'],
        ['GET', '/.well-known/oauth-authorization-server'],
      ];
      const tenantWithout = await createTenant(world.service, 'off');
      await createTenant(world.service, 'without');
      await world.configure(tenantWithout.token, { enabled: false, upstream: world.upstream() });
      for (const tenant of ['without', 'off', 'no-such-tenant']) {
        const insertedMetadata = await world.service.call('GET', `/.well-known/oauth-authorization-server/${tenant}/chained-as`);
        expect(insertedMetadata.status).to.equal(404);
        for (const [method, path] of paths) {
          const form = { grant_type: 'authorization_code', code: 'x', client_id: 'x', response_type: 'code' };
          const answer = await world.service.call(method, `/${tenant}/chained-as${path}`, { ...(method === 'POST' && { form }) });
          expect(answer.status, `${tenant} ${method} ${path}`).to.equal(404);
        }
      }
    });

    it('no secret of the upstream client', async () => {
      const { text } = await world.service.call('GET', '/issuer/config', { token });
      expect(text).to.not.include(CONFIDENTIAL_CLIENT.clientSecret);
    });

    // issuance N10
    it('POST endpoints only for wallets', async () => {
      for (const path of ['par', 'token', 'challenge']) {
        const answer = await world.service.call('GET', `/acme/chained-as/${path}`);
        expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'POST']);
      }
    });
  });
});

describe('the chained authorization server behind https and a path', () => {
  it('limits its cookies to its path and to https', async () => {
    const provider = await MisbehavingProvider.start();
    const service = await startTestService({ PUBLIC_URL: 'https://issuer.example/base' });
    try {
      const call = service.call;
      const { token } = await createTenant(service, 'acme');
      const json = { display: [{ name: 'Acme', locale: 'en' }], chainedAs: { upstream: { issuer: provider.issuer, clientId: 'client' } } };
      expect((await call('POST', '/issuer/config', { token, json })).status).to.equal(201);
      const card = { id: 'card', config, vct: 'urn:card:1', claims: { name: 'Ada' } };
      await createResource(service, token, '/issuer/credentials', card);
      const wallet = new ChainedWallet(service, 'acme');
      const server = 'https://issuer.example/base/acme/chained-as';
      const DPoP = dpopProof(wallet.dpopKey, `${server}/par`);
      const { request_uri } = (await wallet.par({ scope: 'card' }, { DPoP })).body;
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri });
      const browser = new Browser();
      const { location } = await browser.visit(`${service.address}/acme/chained-as/authorize?${query}`);
      expect(location?.searchParams.get('redirect_uri')).to.equal(`${server}/callback`);
      const [line = ''] = browser.lines;
      expect(line).to.match(/^__Host-vidimus-login-[\w-]{22}=/);
      expect(line.split('; ')).to.include.members(['Secure', 'HttpOnly', 'Path=/']);
      const documents = await Promise.all(
        ['/.well-known/oauth-authorization-server/base/acme/chained-as', '/acme/chained-as/.well-known/oauth-authorization-server'].map(
          (path) => call('GET', path),
        ),
      );
      for (const { status, body } of documents) expect([status, body.issuer]).to.deep.equal([200, server]);
    } finally {
      await service.close();
      await provider.close();
    }
  });
});

const WALLET_URL = 'https://wallet.example/cb';

describe('wallets at the chained authorization server', () => {
  let world: ChainedWorld;
  let token: string;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme', 'short']);
    ({ token, wallet } = await world.createIssuingTenant('acme'));
  });
  after(() => world.close());

  describe('at the token endpoint', () => {
    const expectError = async (answer: Promise<{ status: number; body: { error: string } }>, error: string) => {
      const { status, body } = await answer;
      expect([status, body.error]).to.deep.equal([400, error]);
    };

    // issuance N37
    it('rejects pre-authorized codes', async () => {
      const { uri } = await createResource(world.service, token, '/issuer/offer', offerBody('card'));
      const code = await wallet.code(uri);
      const grant_type = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
      await expectError(
        world.service.call('POST', '/acme/chained-as/token', { form: { grant_type, 'pre-authorized_code': code } }),
        'unsupported_grant_type',
      );
      expect((await wallet.redeem(code)).status).to.equal(200);
    });

    it('redeems a code once, with the wallet, the key and the verifier of the request', async () => {
      const code = await wallet.chainedCode(world.provider, { scope: 'card' });
      await expectError(wallet.redeemCode(code, { code_verifier: 'v'.repeat(43) }), 'invalid_grant');
      await expectError(wallet.redeemCode(code, { client_id: 'https://other.example' }), 'invalid_grant');
      await expectError(wallet.redeemCode(code, { redirect_uri: WALLET_URL }), 'invalid_grant');
      const headersOfOtherKey = { DPoP: dpopProof(newKey(), `${wallet.server}/token`) };
      await expectError(wallet.redeemCode(code, {}, headersOfOtherKey), 'invalid_grant');
      await expectError(wallet.redeemCode(code, {}, {}), 'invalid_dpop_proof');
      // Neither the built-in server nor a proof for it is accepted.
      await expectError(new RawWallet(world.service, 'acme').redeemCode(code), 'invalid_grant');
      const headersForBuiltIn = { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/token`) };
      await expectError(wallet.redeemCode(code, {}, headersForBuiltIn), 'invalid_dpop_proof');
      const tokens = await wallet.redeemCode(code);
      expect(tokens.status, tokens.text).to.equal(200);
      await expectError(wallet.redeemCode(code), 'invalid_grant');
      const answer = await wallet.request(tokens.body.access_token, 'card');
      expect([answer.status, answer.body.error], 'the tokens are revoked with the code').to.deep.equal([401, 'invalid_token']);
    });

    it('issues a short-lived bearer token if the tenant configures it', async () => {
      const { wallet: plainWallet } = await world.createIssuingTenant(
        'short',
        { upstream: world.upstream(), requireDPoP: false, token: { lifetimeSeconds: 60 } },
        { dPopRequired: true },
      );
      const redeemCode = async (headers: Record<string, string>) => {
        const address = await plainWallet.par({ scope: 'card' }, headers);
        const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: address.body.request_uri });
        const browser = new Browser();
        const callbackUrl = await plainWallet.logIn(world.provider, browser, `${plainWallet.server}/authorize?${query}`);
        const code = (await browser.visit(callbackUrl)).location?.searchParams.get('code') ?? '';
        return plainWallet.redeemCode(code, {}, headers);
      };
      const bearer = await redeemCode({});
      expect(bearer.body).to.include({ token_type: 'Bearer', expires_in: 60 });
      const headers = { Authorization: `Bearer ${bearer.body.access_token}` };
      expect((await plainWallet.request('', 'card', { headers })).status).to.equal(200);
    });
  });

  describe('with required wallet attestations', () => {
    let walletProvider: WalletProvider;
    let attestedWallet: ChainedWallet;

    before(async () => {
      walletProvider = await WalletProvider.start();
      await world.configure(token, { upstream: world.upstream() }, walletProvider.configuration());
      attestedWallet = wallet;
    });
    after(async () => {
      await world.configure(token, { upstream: world.upstream() });
      await walletProvider.close();
    });
    const challenge = async (path = '/acme/chained-as/challenge'): Promise<string> =>
      (await world.service.call('POST', path)).body.attestation_challenge;
    const proof = (endpoint: string) => ({ DPoP: dpopProof(attestedWallet.dpopKey, `${attestedWallet.server}/${endpoint}`) });

    it('serves an attested wallet from request to token, and no other wallet instance', async () => {
      const instance = newKey();
      const headers = async (endpoint: string, key = instance) => ({
        ...proof(endpoint),
        ...walletProvider.headers(key, attestedWallet.server, await challenge()),
      });
      const pushResponse = await attestedWallet.par({ scope: 'card' }, await headers('par'));
      expect(pushResponse.status, pushResponse.text).to.equal(201);
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: pushResponse.body.request_uri });
      const browser = new Browser();
      const callbackUrl = await attestedWallet.logIn(world.provider, browser, `${attestedWallet.server}/authorize?${query}`);
      const code = (await browser.visit(callbackUrl)).location?.searchParams.get('code') ?? '';
      const withoutAttestation = await attestedWallet.redeemCode(code);
      expect([withoutAttestation.status, withoutAttestation.body.error]).to.deep.equal([401, 'invalid_client']);
      const withOtherKey = await attestedWallet.redeemCode(code, {}, await headers('token', newKey()));
      expect([withOtherKey.status, withOtherKey.body.error]).to.deep.equal([400, 'invalid_grant']);
      const tokens = await attestedWallet.redeemCode(code, {}, await headers('token'));
      expect(tokens.status, tokens.text).to.equal(200);
    });

    // issuance N13
    it('rejects a request without a valid attestation', async () => {
      const withoutAttestation = await attestedWallet.par({ scope: 'card' });
      expect([withoutAttestation.status, withoutAttestation.body.error]).to.deep.equal([401, 'invalid_client']);
      const instance = newKey();
      const validHeaders = walletProvider.headers(instance, attestedWallet.server, await challenge());
      const forgedHeaders = walletProvider.headers(newKey(), attestedWallet.server, await challenge());
      const invalidCases: readonly [Record<string, string>, string][] = [
        [{ ...validHeaders, 'OAuth-Client-Attestation-PoP': forgedHeaders['OAuth-Client-Attestation-PoP'] ?? '' }, 'invalid_client_attestation'], // biome-ignore format: one case
        // An attestation for the built-in server of the tenant
        [walletProvider.headers(instance, attestedWallet.issuer, await challenge()), 'invalid_client_attestation'],
        [walletProvider.headers(instance, attestedWallet.server, await challenge('/acme/challenge')), 'use_attestation_challenge'], // biome-ignore format: one case
        [walletProvider.headers(instance, attestedWallet.server, undefined), 'use_attestation_challenge'],
      ];
      for (const [headers, error] of invalidCases) {
        const answer = await attestedWallet.par({ scope: 'card' }, { ...proof('par'), ...headers });
        expect([answer.status, answer.body.error]).to.deep.equal([400, error]);
      }
      const headersWithoutAttestation = { DPoP: dpopProof(newKey(), `${attestedWallet.issuer}/par`) };
      const answer = await attestedWallet.par({ scope: 'card' }, { ...headersWithoutAttestation, ...validHeaders });
      expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_dpop_proof']);
    });
  });
});
