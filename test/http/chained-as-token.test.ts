import { expect } from 'chai';
import { Browser, type ChainedWallet } from '../support/chained-wallet.ts';
import { ChainedWorld } from '../support/chained-world.ts';
import { created, offerBody } from '../support/populated.ts';
import { CLIENT_ID, dpopProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const WALLET_URL = 'https://wallet.example/cb';

describe('wallets at the chained authorization server', () => {
  let world: ChainedWorld;
  let token: string;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme', 'short']);
    ({ token, wallet } = await world.openTenant('acme'));
  });
  after(() => world.close());

  describe('at the token endpoint', () => {
    const expectError = async (
      answer: Promise<{ status: number; body: { error: string } }>,
      error: string,
    ) => {
      const { status, body } = await answer;
      expect([status, body.error]).to.deep.equal([400, error]);
    };

    it('knows no pre-authorized codes (N37)', async () => {
      const { uri } = await created(world.service, token, '/issuer/offer', offerBody('card'));
      const code = await wallet.code(uri);
      const grant_type = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
      await expectError(
        world.service.call('POST', '/acme/chained-as/token', {
          form: { grant_type, 'pre-authorized_code': code },
        }),
        'unsupported_grant_type',
      );
      expect((await wallet.redeem(code)).status).to.equal(200);
    });

    it('takes a code once, from the wallet and with the key and the verifier of the request', async () => {
      const code = await wallet.chainedCode(world.provider, { scope: 'card' });
      await expectError(wallet.redeemCode(code, { code_verifier: 'v'.repeat(43) }), 'invalid_grant');
      await expectError(wallet.redeemCode(code, { client_id: 'https://other.example' }), 'invalid_grant');
      await expectError(wallet.redeemCode(code, { redirect_uri: WALLET_URL }), 'invalid_grant');
      const other = { DPoP: dpopProof(newKey(), `${wallet.server}/token`) };
      await expectError(wallet.redeemCode(code, {}, other), 'invalid_grant');
      await expectError(wallet.redeemCode(code, {}, {}), 'invalid_dpop_proof');
      // Neither the built-in server nor a proof for it.
      await expectError(new RawWallet(world.service, 'acme').redeemCode(code), 'invalid_grant');
      const there = { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/token`) };
      await expectError(wallet.redeemCode(code, {}, there), 'invalid_dpop_proof');
      const redeemed = await wallet.redeemCode(code);
      expect(redeemed.status, redeemed.text).to.equal(200);
      await expectError(wallet.redeemCode(code), 'invalid_grant');
      const answer = await wallet.request(redeemed.body.access_token, 'card');
      expect([answer.status, answer.body.error], 'revoked with the code').to.deep.equal([
        401,
        'invalid_token',
      ]);
    });

    it('gives a bearer token where the tenant wants it, and never a long one', async () => {
      const { wallet: plain } = await world.openTenant(
        'short',
        { upstream: world.upstream(), requireDPoP: false, token: { lifetimeSeconds: 60 } },
        { dPopRequired: true },
      );
      const redeem = async (headers: Record<string, string>) => {
        const address = await plain.par({ scope: 'card' }, headers);
        const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: address.body.request_uri });
        const browser = new Browser();
        const back = await plain.logIn(world.provider, browser, `${plain.server}/authorize?${query}`);
        const code = (await browser.visit(back)).location?.searchParams.get('code') ?? '';
        return plain.redeemCode(code, {}, headers);
      };
      const bearer = await redeem({});
      expect(bearer.body).to.include({ token_type: 'Bearer', expires_in: 60 });
      const headers = { Authorization: `Bearer ${bearer.body.access_token}` };
      expect((await plain.request('', 'card', { headers })).status).to.equal(200);
    });
  });

  describe('with wallets that must be attested', () => {
    let walletProvider: WalletProvider;
    let attested: ChainedWallet;

    before(async () => {
      walletProvider = await WalletProvider.start();
      await world.configure(token, { upstream: world.upstream() }, walletProvider.configuration());
      attested = wallet;
    });
    after(async () => {
      await world.configure(token, { upstream: world.upstream() });
      await walletProvider.close();
    });
    const challenge = async (path = '/acme/chained-as/challenge'): Promise<string> =>
      (await world.service.call('POST', path)).body.attestation_challenge;
    const proof = (endpoint: string) => ({
      DPoP: dpopProof(attested.dpopKey, `${attested.server}/${endpoint}`),
    });

    it('takes an attested wallet from its request to its token, and no other installation', async () => {
      const instance = newKey();
      const headers = async (endpoint: string, key = instance) => ({
        ...proof(endpoint),
        ...walletProvider.headers(key, attested.server, await challenge()),
      });
      const pushed = await attested.par({ scope: 'card' }, await headers('par'));
      expect(pushed.status, pushed.text).to.equal(201);
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: pushed.body.request_uri });
      const browser = new Browser();
      const back = await attested.logIn(world.provider, browser, `${attested.server}/authorize?${query}`);
      const code = (await browser.visit(back)).location?.searchParams.get('code') ?? '';
      const bare = await attested.redeemCode(code);
      expect([bare.status, bare.body.error]).to.deep.equal([401, 'invalid_client']);
      const other = await attested.redeemCode(code, {}, await headers('token', newKey()));
      expect([other.status, other.body.error]).to.deep.equal([400, 'invalid_grant']);
      const redeemed = await attested.redeemCode(code, {}, await headers('token'));
      expect(redeemed.status, redeemed.text).to.equal(200);
    });

    it('refuses a request without attestation, or with one that does not hold (N13)', async () => {
      const bare = await attested.par({ scope: 'card' });
      expect([bare.status, bare.body.error]).to.deep.equal([401, 'invalid_client']);
      const instance = newKey();
      const good = walletProvider.headers(instance, attested.server, await challenge());
      const forged = walletProvider.headers(newKey(), attested.server, await challenge());
      const bends: readonly [Record<string, string>, string][] = [
        [{ ...good, 'OAuth-Client-Attestation-PoP': forged['OAuth-Client-Attestation-PoP'] ?? '' }, 'invalid_client_attestation'], // biome-ignore format: one case
        // Made for the built-in server of the tenant
        [walletProvider.headers(instance, attested.issuer, await challenge()), 'invalid_client_attestation'],
        [walletProvider.headers(instance, attested.server, await challenge('/acme/challenge')), 'use_attestation_challenge'], // biome-ignore format: one case
        [walletProvider.headers(instance, attested.server, undefined), 'use_attestation_challenge'],
      ];
      for (const [headers, error] of bends) {
        const answer = await attested.par({ scope: 'card' }, { ...proof('par'), ...headers });
        expect([answer.status, answer.body.error]).to.deep.equal([400, error]);
      }
      const unproven = { DPoP: dpopProof(newKey(), `${attested.issuer}/par`) };
      const answer = await attested.par({ scope: 'card' }, { ...unproven, ...good });
      expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_dpop_proof']);
    });
  });
});
