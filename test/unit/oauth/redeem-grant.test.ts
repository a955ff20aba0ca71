import { expect } from 'chai';
import sinon from 'sinon';
import { hashCode, RedeemGrant } from '../../../application/oauth/redeem-grant.ts';
import { MAX_TX_CODE_ATTEMPTS } from '../../../domain/oauth/grant.ts';
import { PRE_AUTHORIZED_CODE_GRANT } from '../../../domain/oauth/token-request.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { type PublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Offered, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const TX = { tx_code: '402917' };

describe('RedeemGrant', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.offers({ id: 'pass' });
  });
  afterEach(() => sinon.restore());

  const stored = async ({ code }: Offered) => {
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    if (grant === undefined) throw new Error('no such grant');
    return grant;
  };
  const elsewhere = (code: string) =>
    new RedeemGrant(world.elsewhere()).execute(ACME, wallet.oauth('token'), {
      grantType: PRE_AUTHORIZED_CODE_GRANT,
      code,
      txCode: undefined,
      wanted: undefined,
    });

  it('answers with a token that is bound to the key of the wallet, and records who redeemed', async () => {
    const offered = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body, dpopNonce } = await wallet.redeem(offered.code);
    const jkt = thumbprint(wallet.key.jwk as PublicJwk);
    expect(body).to.include({ token_type: 'DPoP', expires_in: 1800 });
    expect(body).not.to.have.property('authorization_details');
    expect(dpopNonce).to.be.a('string');
    const { id, consumedAt, holder, generation, revokedAt, expiresAt } = await stored(offered);
    expect(decode(body.access_token).payload).to.deep.include({
      iss: wallet.issuer,
      grant_id: id,
      issuer_state: offered.session.publicId,
      credential_configuration_ids: ['card', 'pass'],
      cnf: { jkt },
    });
    const refreshableUntil = world.seconds + 2_592_000;
    expect(holder).to.deep.equal({ identifiers: false, keyThumbprint: jkt, refreshableUntil });
    expect([consumedAt, generation, revokedAt]).to.deep.equal([world.clock.now(), 0, null]);
    expect(expiresAt.getTime()).to.equal((refreshableUntil + 1800) * 1000);
    expect((await world.session(offered.session.id)).status).to.equal('active');
  });

  it('narrows the token to what the wallet wants, and names identifiers then', async () => {
    const offered = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body } = await wallet.redeem(offered.code, { wanted: ['pass'] });
    const [details, ...others] = body.authorization_details ?? [];
    expect([details?.['credential_identifiers'], others]).to.deep.equal([['pass'], []]);
    expect((await stored(offered)).holder).to.deep.include({ identifiers: true, configurationIds: ['pass'] });
  });

  it('needs no key where the tenant binds no tokens, and then gives no refresh token', async () => {
    await world.issues({ dPopRequired: false });
    const { code } = await anOffer(world);
    const { body } = await wallet.redeem(code, { request: wallet.oauth('token', {}, { dpop: [] }) });
    expect(body).to.include({ token_type: 'Bearer', expires_in: 300 });
    expect(body).not.to.have.property('refresh_token');
    await world.issues();
  });

  type Refused = readonly [
    what: string,
    code: FailureCode,
    ask: (offered: Offered) => Promise<unknown>,
    offer?: object,
  ];
  const refusals: readonly Refused[] = [
    ['a code of nobody', 'invalid_grant', () => wallet.redeem('unknown')],
    [
      'a code whose time is over',
      'invalid_grant',
      ({ code }) => world.later(60, () => wallet.redeem(code)),
      { expiresIn: 60 },
    ],
    [
      'a transaction code that nobody asked for',
      'invalid_request',
      ({ code }) => wallet.redeem(code, { txCode: '1234' }),
    ],
    ['a missing transaction code', 'invalid_request', ({ code }) => wallet.redeem(code), TX],
    [
      'more than the code is for',
      'invalid_authorization_details',
      ({ code }) => wallet.redeem(code, { wanted: ['pass'] }),
    ],
    [
      'no DPoP proof',
      'invalid_dpop_proof',
      ({ code }) => wallet.redeem(code, { request: wallet.oauth('token', {}, { dpop: [] }) }),
    ],
    [
      'a DPoP proof for another address',
      'invalid_dpop_proof',
      ({ code }) => wallet.redeem(code, { request: wallet.oauth('par') }),
    ],
    [
      'a DPoP nonce of somebody',
      'use_dpop_nonce',
      ({ code }) => {
        const dpop = [wallet.dpop('token', { payload: { nonce: 'abc' } })];
        return wallet.redeem(code, { request: wallet.oauth('token', {}, { dpop }) });
      },
    ],
    [
      'a DPoP proof that was used',
      'invalid_dpop_proof',
      async ({ code }) => {
        const request = wallet.oauth('token');
        await wallet.redeem((await anOffer(world)).code, { request });
        return wallet.redeem(code, { request });
      },
    ],
    [
      'a registered client that proves nothing',
      'invalid_client',
      async ({ code }) => {
        const registered = { client_id: 'bank', jwks: { keys: [newKey().jwk] } };
        await world.issues({ walletClients: [registered] });
        return wallet.redeem(code, { request: wallet.oauth('token', { client_id: 'bank' }) });
      },
    ],
    [
      'a wallet without the attestation that is required',
      'invalid_client',
      async ({ code }) => {
        await world.issues({ walletAttestationRequired: true });
        return wallet.redeem(code);
      },
    ],
    [
      'a session that another process ended',
      'invalid_grant',
      async ({ code, session: { id } }) => {
        const failed = { id, anytime: ['active'], to: 'failed' } as const;
        await world.store.commit(ACME, { session: failed }, world.clock.now());
        return wallet.redeem(code);
      },
    ],
  ];
  for (const [what, code, ask, offer] of refusals) {
    it(`refuses ${what}, and leaves the code as it is`, async () => {
      const offered = await anOffer(world, offer);
      const before = await stored(offered);
      expect(await endOf(ask(offered).finally(() => world.issues()))).to.equal(code);
      expect(await stored(offered)).to.deep.equal(before);
    });
  }

  it('refuses an authorization code', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const code = await wallet.approve(await wallet.push({ issuer_state: session.publicId }));
    expect(await endOf(wallet.redeem(code))).to.equal('invalid_grant');
  });

  it('is not found at a tenant that is not there', async () => {
    const { code } = await anOffer(world);
    const nobody = new Wallet(world, 'nobody' as TenantId);
    expect(await endOf(nobody.redeem(code))).to.equal('not_found');
  });

  it('takes a wrong transaction code a few times, and the right one no more after that', async () => {
    const [patient, hasty] = [await anOffer(world, TX), await anOffer(world, TX)];
    const wrong = async ({ code }: Offered, times: number) => {
      const all = Array.from({ length: times }, () => endOf(wallet.redeem(code, { txCode: '0000' })));
      expect(new Set(await Promise.all(all))).to.deep.equal(new Set(['invalid_grant']));
    };
    await wrong(patient, MAX_TX_CODE_ATTEMPTS - 1);
    expect((await stored(patient)).attempts).to.equal(MAX_TX_CODE_ATTEMPTS - 1);
    expect(await endOf(wallet.redeem(patient.code, { txCode: TX.tx_code }))).to.equal('done');
    await wrong(hasty, MAX_TX_CODE_ATTEMPTS + 3);
    expect((await stored(hasty)).attempts).to.equal(MAX_TX_CODE_ATTEMPTS);
    expect(await endOf(wallet.redeem(hasty.code, { txCode: TX.tx_code }))).to.equal('invalid_grant');
  });

  describe('with a code that comes back', () => {
    it('revokes what the code brought', async () => {
      const offered = await anOffer(world);
      const token = await wallet.token(offered);
      expect(await endOf(wallet.redeem(offered.code))).to.equal('invalid_grant');
      expect((await stored(offered)).revokedAt).to.deep.equal(world.clock.now());
      expect(await endOf(wallet.issue(token))).to.equal('invalid_token');
    });

    it('revokes nothing for somebody who does not know the transaction code', async () => {
      const offered = await anOffer(world, TX);
      await wallet.redeem(offered.code, { txCode: TX.tx_code });
      expect(await endOf(wallet.redeem(offered.code, { txCode: '0000' }))).to.equal('invalid_grant');
      expect(await endOf(wallet.redeem(offered.code))).to.equal('invalid_grant');
      expect((await stored(offered)).revokedAt).to.equal(null);
    });

    it('finds out although this process remembers the code as fresh', async () => {
      const offered = await anOffer(world);
      await elsewhere(offered.code);
      expect(await endOf(wallet.redeem(offered.code))).to.equal('invalid_grant');
      expect((await stored(offered)).revokedAt).to.deep.equal(world.clock.now());
    });

    it('gives one token to many who come at the same time', async () => {
      const { code } = await anOffer(world);
      const ends = await Promise.all([1, 2, 3].map(() => endOf(wallet.redeem(code))));
      expect(ends.sort()).to.deep.equal(['done', 'invalid_grant', 'invalid_grant']);
    });
  });

  it('reads nothing while all is remembered, and commits once', async () => {
    const { code } = await anOffer(world);
    const [read, commit] = [sinon.spy(world.store, 'read'), sinon.spy(world.store, 'commit')];
    await wallet.redeem(code);
    expect([read.callCount, commit.callCount]).to.deep.equal([0, 1]);
  });
});
