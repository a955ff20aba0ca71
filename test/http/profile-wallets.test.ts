import { expect } from 'chai';
import { Browser, ChainedWallet, ChainedWorld } from '../support/chained-world.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { CLIENT_ID, dpopProof, newKey, type Overrides, RawWallet } from '../support/raw-wallet.ts';
import type { Answer } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

type Server = 'built-in' | 'chained';
/** What one request lacks or has otherwise. */
type Change = {
  readonly attested?: false;
  readonly attestation?: Overrides;
  readonly pop?: Overrides;
  /** The nonce of the DPoP proof; null for none, and no proof at all without the member. */
  readonly nonce?: string | null;
  readonly dpopKey?: ReturnType<typeof newKey>;
};

const CARD = { scope: 'card' };
const NONCE = /^[A-Za-z0-9_-]{20,}$/;

describe('wallet of a tenant with the profile haip', () => {
  let world: ChainedWorld;
  let provider: WalletProvider;
  let token: string;
  const instance = newKey();
  const dpopKey = newKey();

  before(async () => {
    provider = await WalletProvider.start();
    world = await ChainedWorld.start(['acme']);
    ({ token } = await world.createIssuingTenant('acme'));
    // Nothing of what the profile fills in.
    const { walletAttestationRequired: _filledIn, ...trust } = provider.configuration();
    await world.configure(token, { upstream: world.upstream() }, trust);
    const root = await world.service.rootToken();
    const taken = await world.service.call('PATCH', '/tenant/acme', { token: root, json: { profile: 'haip' } });
    expect(taken.status, taken.text).to.equal(200);
  });
  after(async () => {
    await world.close();
    await provider.close();
  });

  const walletAt = (server: Server): RawWallet =>
    server === 'chained' ? new ChainedWallet(world.service, 'acme') : new RawWallet(world.service, 'acme');
  const issuerOf = (server: Server) => `${world.service.address}/acme${server === 'chained' ? '/chained-as' : ''}`;
  const nonceOf = ({ headers }: Answer) => headers.get('dpop-nonce') ?? '';
  const errorOf = ({ status, body }: Answer) => [status, body?.error];

  /** Header fields of a request to a server that says who the wallet is, and with which key. */
  const headersFor = async (server: Server, endpoint: string, change: Change = {}) => {
    const audience = issuerOf(server);
    const { attestation_challenge: challenge } = (await world.service.call('POST', `${new URL(audience).pathname}/challenge`)).body;
    const payload = change.nonce === null ? {} : { nonce: change.nonce };
    const proof = dpopProof(change.dpopKey ?? dpopKey, `${audience}/${endpoint}`, { payload });
    return {
      ...(change.attested === false
        ? {}
        : provider.headers(instance, audience, challenge, { attestation: change.attestation ?? {}, pop: change.pop ?? {} })),
      ...('nonce' in change && { DPoP: proof }),
    };
  };
  const par = async (server: Server, change?: Change, form: Record<string, string> = CARD) => {
    const { issuer_state } = await world.offer(token, walletAt(server) as ChainedWallet, 'card', {
      authorization_server: issuerOf(server),
    });
    const headers = await headersFor(server, 'par', change);
    return walletAt(server).par({ issuer_state, ...form }, headers);
  };
  /** From a pushed request to a code, by the user's browser. */
  const codeFor = async (server: Server, pushed: Answer): Promise<string> => {
    const { request_uri } = pushed.body;
    if (server === 'built-in') return walletAt(server).authorize(request_uri);
    const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri });
    const browser = new Browser();
    const wallet = walletAt(server) as ChainedWallet;
    const back = await wallet.logIn(world.provider, browser, `${issuerOf(server)}/authorize?${query}`);
    return (await browser.visit(back)).location?.searchParams.get('code') ?? '';
  };
  const collect = async (accessToken: string, bend: { nonce?: string; scheme?: string } = {}) => {
    const wallet = walletAt('built-in');
    const asked = await world.service.call('POST', '/acme/nonce');
    const nonce = 'nonce' in bend ? bend.nonce : nonceOf(asked);
    const headers = wallet.authorization(accessToken, { key: dpopKey, payload: { nonce }, ...(bend.scheme && { scheme: bend.scheme }) });
    return wallet.request(accessToken, 'card', { headers, nonce: asked.body.c_nonce });
  };
  const expectIssued = async (answer: Answer) => {
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.token_type).to.equal('DPoP');
    const issued = await collect(answer.body.access_token);
    expect(issued.status, issued.text).to.equal(200);
    expect(issued.body.credentials).to.have.length(1);
  };
  const preAuthorized = async (change: Change) => {
    const { uri } = await createResource(world.service, token, '/issuer/offer', offerBody('card'));
    const wallet = walletAt('built-in');
    return wallet.redeem(await wallet.code(uri), {}, await headersFor('built-in', 'token', change));
  };

  it('gets a credential with a pre-authorized code once it has a nonce', async () => {
    const { uri } = await createResource(world.service, token, '/issuer/offer', offerBody('card'));
    const wallet = walletAt('built-in');
    const code = await wallet.code(uri);
    const told = await wallet.redeem(code, {}, await headersFor('built-in', 'token', { nonce: null }));
    expect(errorOf(told)).to.deep.equal([400, 'use_dpop_nonce']);
    const headers = await headersFor('built-in', 'token', { nonce: nonceOf(told) });
    await expectIssued(await wallet.redeem(code, {}, headers));
  });

  for (const server of ['built-in', 'chained'] as const) {
    it(`gets a credential with an authorization code of the ${server} server and renews it`, async () => {
      const pushed = await par(server);
      expect(pushed.status, pushed.text).to.equal(201);
      expect(nonceOf(pushed)).to.match(NONCE);
      const code = await codeFor(server, pushed);
      const headers = await headersFor(server, 'token', { nonce: nonceOf(pushed) });
      const answer = await walletAt(server).redeemCode(code, {}, headers);
      await expectIssued(answer);
      const { refresh_token } = answer.body;
      if (refresh_token === undefined) return;
      // Bound to the installation, and not to a key of DPoP.
      const again = { nonce: nonceOf(answer), dpopKey: newKey() };
      const path = `${new URL(issuerOf(server)).pathname}/token`;
      const renewed = await world.service.call('POST', path, {
        form: { grant_type: 'refresh_token', refresh_token },
        headers: await headersFor(server, 'token', again),
      });
      expect(renewed.status, renewed.text).to.equal(200);
      expect([undefined, refresh_token]).to.include(renewed.body.refresh_token);
    });

    const CALLERS: [string, Change, [number, string]][] = [
      ['without attestation', { attested: false }, [401, 'invalid_client']],
      ['with an attestation without an issuer', { attestation: { payload: { iss: undefined } } }, [400, 'invalid_client_attestation']],
      ['with a proof without an issuer', { pop: { payload: { iss: undefined } } }, [400, 'invalid_client_attestation']],
    ];
    for (const [what, change, expected] of CALLERS) {
      it(`is rejected ${what} by the ${server} server at each endpoint`, async () => {
        expect(errorOf(await par(server, change))).to.deep.equal(expected);
        const pushed = await par(server);
        const code = await codeFor(server, pushed);
        const nonce = nonceOf(pushed);
        const bent = await headersFor(server, 'token', { ...change, nonce });
        expect(errorOf(await walletAt(server).redeemCode(code, {}, bent))).to.deep.equal(expected);
        // Nothing was spent by that.
        const good = await headersFor(server, 'token', { nonce });
        expect((await walletAt(server).redeemCode(code, {}, good)).status).to.equal(200);
        if (server === 'chained') return;
        expect(errorOf(await preAuthorized({ ...change, nonce })).slice(0, 2)).to.deep.equal(expected);
        const interactive = await world.service.call('POST', '/acme/interactive-authorization', {
          form: { response_type: 'code', client_id: CLIENT_ID, interaction_types_supported: 'openid4vp_presentation' },
          headers: await headersFor(server, 'interactive-authorization', change),
        });
        expect(errorOf(interactive)).to.deep.equal(expected);
      });
    }

    it(`proves a key with a nonce of the ${server} server for its tokens`, async () => {
      const pushed = await par(server);
      const code = await codeFor(server, pushed);
      const redeem = async (change: Change) => walletAt(server).redeemCode(code, {}, await headersFor(server, 'token', change));
      expect(errorOf(await redeem({})), 'no proof').to.deep.equal([400, 'invalid_dpop_proof']);
      expect(errorOf(await redeem({ nonce: null }))).to.deep.equal([400, 'use_dpop_nonce']);
      expect(errorOf(await redeem({ nonce: 'invented' }))).to.deep.equal([400, 'use_dpop_nonce']);
      expect(errorOf(await par(server, { nonce: null })), 'pushed').to.deep.equal([400, 'use_dpop_nonce']);
      expect((await redeem({ nonce: nonceOf(pushed) })).status).to.equal(200);
    });

    it(`pushes its requests to the ${server} server, with PKCE by S256`, async () => {
      for (const form of [{ code_challenge: '' }, { code_challenge_method: 'plain' }]) {
        const refused = await par(server, {}, { ...CARD, ...form });
        expect(errorOf(refused)).to.deep.equal([400, 'invalid_request']);
      }
      const query = new URLSearchParams({ response_type: 'code', client_id: CLIENT_ID, scope: 'card' });
      const opened = await world.service.call('GET', `${issuerOf(server)}/authorize?${query}`);
      expect(opened.status).to.equal(400);
    });
  }

  it('requests credentials with a bound token and a nonce, and never with a bearer token', async () => {
    const pushed = await par('built-in');
    const headers = await headersFor('built-in', 'token', { nonce: nonceOf(pushed) });
    const answer = await walletAt('built-in').redeemCode(await codeFor('built-in', pushed), {}, headers);
    const { access_token } = answer.body;
    expect(errorOf(await collect(access_token, { scheme: 'Bearer' }))).to.deep.equal([401, 'invalid_token']);
    const bare = await collect(access_token, { nonce: undefined as never });
    expect(errorOf(bare)).to.deep.equal([401, 'use_dpop_nonce']);
    expect(bare.headers.get('www-authenticate')).to.include('DPoP');
    expect(nonceOf(bare)).to.match(NONCE);
    expect((await collect(access_token, { nonce: nonceOf(bare) })).status).to.equal(200);
  });

  it('gets these requirements from the metadata of both servers', async () => {
    for (const path of ['/acme', '/acme/chained-as']) {
      const { body } = await world.service.call('GET', `/.well-known/oauth-authorization-server${path}`);
      expect(body.token_endpoint_auth_methods_supported).to.include('attest_jwt_client_auth');
      expect(body.token_endpoint_auth_methods_supported).to.not.include('none');
      expect(body.code_challenge_methods_supported).to.deep.equal(['S256']);
      expect(body.require_pushed_authorization_requests).to.equal(true);
      expect(body.dpop_signing_alg_values_supported).to.include('ES256');
      expect(body.challenge_endpoint).to.equal(`${body.issuer}/challenge`);
    }
  });
});
