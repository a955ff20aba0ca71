import { expect } from 'chai';
import { attestationChallenge } from '../../../application/oauth/challenges.ts';
import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { AttestedWallet } from '../attested-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer } from '../wallet.ts';
import { endOf, failureOf, WalletWorld } from '../wallet-kit.ts';

const BROKEN = 'invalid_client_attestation';

/** Attestation-based client authentication, draft 10 sections 5.2 and 7.3. */
describe('A DPoP proof in place of a proof of possession', () => {
  let world: WalletWorld;
  let wallet: AttestedWallet;

  beforeEach(async () => {
    world = await WalletWorld.open();
    wallet = await AttestedWallet.make(world);
    await world.issues(wallet.provider.configuration());
  });

  const challenge = (server = wallet.issuer) => attestationChallenge(world, ACME, server, world.clock.now());
  const combined = (
    payload: object = { nonce: challenge() },
    more: Partial<OAuthRequest> = {},
    key = wallet.instance,
  ): OAuthRequest =>
    wallet.oauth(
      'token',
      {},
      {
        attestationPop: [],
        dpop: [wallet.dpop('token', { key, payload: { ...payload } })],
        ...more,
      },
    );
  const redeem = async (request: OAuthRequest) => wallet.redeem((await anOffer(world)).code, { request });

  it('is taken under the attested key, with a challenge, and binds the tokens to that key', async () => {
    const answer = await redeem(combined());
    const token = JSON.parse(
      Buffer.from(answer.body.access_token.split('.')[1] ?? '', 'base64url').toString(),
    );
    const normal = await redeem(wallet.oauth('token'));
    expect(token.cnf.jkt).to.be.a('string');
    expect(normal.body.access_token).to.be.a('string');
  });

  const refused: readonly [string, () => OAuthRequest, string][] = [
    ['under another key', () => combined(undefined, {}, newKey()), BROKEN],
    [
      'that says the key and is signed by another',
      () => {
        const [header] = wallet.dpop('token', { key: wallet.instance }).split('.');
        const [, payload, signature] = wallet
          .dpop('token', { key: newKey(), payload: { nonce: challenge() } })
          .split('.');
        return combined(undefined, { dpop: [`${header}.${payload}.${signature}`] });
      },
      BROKEN,
    ],
    ['without a challenge', () => combined({}), 'use_attestation_challenge'],
    ['with an invented challenge', () => combined({ nonce: 'x' }), 'use_attestation_challenge'],
    [
      'with the challenge of another server',
      () => combined({ nonce: challenge(`${wallet.issuer}/chained-as`) }),
      'use_attestation_challenge',
    ],
    [
      'for another address',
      () => combined({ nonce: challenge(), htu: 'https://x.example' }),
      'invalid_dpop_proof',
    ],
    ['that is old', () => combined({ nonce: challenge(), iat: world.seconds - 900 }), 'invalid_dpop_proof'],
    [
      'beside another DPoP proof',
      () => {
        const { dpop } = combined();
        return combined(undefined, { dpop: [...dpop, ...dpop] });
      },
      'invalid_dpop_proof',
    ],
    ['where there is none', () => combined(undefined, { dpop: [] }), BROKEN],
    [
      'beside an attestation of another installation',
      () => combined(undefined, { attestation: [wallet.provider.attestation(newKey())] }),
      BROKEN,
    ],
  ];
  for (const [what, request, code] of refused) {
    it(`is refused ${what}`, async () => {
      expect((await failureOf(redeem(request()))).code).to.equal(code);
    });
  }

  it('gets the challenge as DPoP-Nonce when it has none', async () => {
    const { details } = await failureOf(redeem(combined({})));
    expect(details.dpopNonce).to.equal(details.attestationChallenge);
    expect(await endOf(redeem(combined({ nonce: details.dpopNonce })))).to.equal('done');
  });

  describe('where the challenge is optional', () => {
    const configure = (more: object = {}) =>
      world.issues({ ...wallet.provider.configuration(), attestationChallenge: 'optional', ...more });

    it('is taken without a nonce, with a DPoP nonce and with a challenge, once each', async () => {
      await configure();
      const { details } = await failureOf(redeem(combined({ nonce: 'x' })));
      for (const payload of [{}, { nonce: details.dpopNonce }, { nonce: challenge() }]) {
        const request = combined(payload);
        expect(await endOf(redeem(request)), JSON.stringify(payload)).to.equal('done');
        expect(await endOf(redeem(request))).to.equal('invalid_dpop_proof');
      }
    });

    it('follows the rule of the tenant for DPoP nonces', async () => {
      await configure({ dPopNonce: 'required' });
      expect(await endOf(redeem(combined({})))).to.equal('use_dpop_nonce');
      await configure({ dPopNonce: 'off' });
      expect(await endOf(redeem(combined({})))).to.equal('done');
      for (const nonce of ['x', 7])
        expect(await endOf(redeem(combined({ nonce })))).to.equal('use_attestation_challenge');
    });
  });

  it('counts once', async () => {
    const request = combined();
    await redeem(request);
    expect((await failureOf(redeem(request))).code).to.equal('invalid_dpop_proof');
  });

  it('need not be by the attested key where there is a proof of possession, too', async () => {
    const request = wallet.oauth('token', {}, { dpop: [wallet.dpop('token', { key: newKey() })] });
    expect(await endOf(redeem(request))).to.equal('done');
  });

  it('is no way in where a profile goes by draft 07', async () => {
    await world.change({ profile: 'haip' });
    const { code, message } = await failureOf(redeem(combined()));
    expect([code, message]).to.deep.equal([BROKEN, 'send exactly one OAuth-Client-Attestation-PoP header']);
  });

  it('binds what is refreshed to the installation', async () => {
    const { body } = await redeem(combined());
    const refresh = (request: OAuthRequest) => wallet.refresh(body.refresh_token, { request });
    expect((await failureOf(refresh(combined(undefined, {}, newKey())))).code).to.equal(BROKEN);
    expect(await endOf(refresh(combined()))).to.equal('done');
  });
});
