import { expect } from 'chai';
import sinon from 'sinon';
import { hashCode, PreAuthorizedCodeGrant } from '../../../application/oauth/pre-authorized-code-grant.ts';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { MAX_TX_CODE_ATTEMPTS } from '../../../domain/oauth/grant.ts';
import { PRE_AUTHORIZED_CODE_GRANT } from '../../../domain/oauth/token-request.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { type PublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, type CreatedOffer, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

const TX = { tx_code: '402917' };

describe('PreAuthorizedCodeGrant', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.putCredential({ id: 'pass' });
  });
  afterEach(() => sinon.restore());

  const storedGrant = async ({ code }: CreatedOffer) => {
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    if (grant === undefined) throw new Error('no such grant');
    return grant;
  };
  const redeemInOtherProcess = (code: string) =>
    new PreAuthorizedCodeGrant(world.otherProcess()).answer(ACME, wallet.createOAuthRequest('token'), {
      grantType: PRE_AUTHORIZED_CODE_GRANT,
      code,
      txCode: undefined,
      requestedIds: undefined,
    });

  it('answers with a token that is bound to the key of the wallet, and records the wallet', async () => {
    const offer = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body, dpopNonce } = await wallet.redeem(offer.code);
    const jkt = thumbprint(wallet.key.jwk as PublicJwk);
    expect(body).to.include({ token_type: 'DPoP', expires_in: 1800 });
    expect(body).not.to.have.property('authorization_details');
    expect(dpopNonce).to.be.a('string');
    const { id, consumedAt, holder, generation, revokedAt, expiresAt } = await storedGrant(offer);
    expect(decode(body.access_token).payload).to.deep.include({
      iss: wallet.issuer,
      grant_id: id,
      issuer_state: offer.session.publicId,
      credential_configuration_ids: ['card', 'pass'],
      cnf: { jkt },
    });
    const refreshableUntil = world.seconds + 2_592_000;
    expect(holder).to.deep.equal({ identifiers: false, keyThumbprint: jkt, refreshableUntil });
    expect([consumedAt, generation, revokedAt]).to.deep.equal([world.clock.now(), 0, null]);
    expect(expiresAt.getTime()).to.equal((refreshableUntil + 1800) * 1000);
    expect((await world.session(offer.session.id)).status).to.equal('active');
  });

  it('narrows the token to the requested credentials, and returns identifiers', async () => {
    const offer = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body } = await wallet.redeem(offer.code, { requestedIds: ['pass'] });
    const [details, ...rest] = body.authorization_details ?? [];
    expect([details?.['credential_identifiers'], rest]).to.deep.equal([['pass'], []]);
    expect((await storedGrant(offer)).holder).to.deep.include({ identifiers: true, configurationIds: ['pass'] });
  });

  it('needs no key if the tenant binds no tokens, and then returns no refresh token', async () => {
    await world.putIssuance({ dPopRequired: false });
    const { code } = await anOffer(world);
    const { body } = await wallet.redeem(code, { request: wallet.createOAuthRequest('token', {}, { dpop: [] }) });
    expect(body).to.include({ token_type: 'Bearer', expires_in: 300 });
    expect(body).not.to.have.property('refresh_token');
    await world.putIssuance();
  });

  it('accepts proofs of configured algorithms', async () => {
    await world.putIssuance({ algorithms: ['ES384'] });
    const { code } = await anOffer(world);
    expect(await outcomeOf(wallet.redeem(code))).to.equal('invalid_dpop_proof');
    await world.putIssuance({ algorithms: ['ES256'] });
    expect(await outcomeOf(wallet.redeem(code)), 'nothing was consumed').to.equal('done');
    await world.putIssuance();
  });

  type RejectionCase = readonly [description: string, code: FailureCode, call: (offer: CreatedOffer) => Promise<unknown>, offer?: object];
  const rejections: readonly RejectionCase[] = [
    ['an unknown code', 'invalid_grant', () => wallet.redeem('unknown')],
    ['a code that has expired', 'invalid_grant', ({ code }) => world.afterSeconds(60, () => wallet.redeem(code)), { expiresIn: 60 }],
    ['a transaction code that was not requested', 'invalid_request', ({ code }) => wallet.redeem(code, { txCode: '1234' })],
    ['a missing transaction code', 'invalid_request', ({ code }) => wallet.redeem(code), TX],
    ['more than the code is for', 'invalid_authorization_details', ({ code }) => wallet.redeem(code, { requestedIds: ['pass'] })],
    [
      'no DPoP proof',
      'invalid_dpop_proof',
      ({ code }) => wallet.redeem(code, { request: wallet.createOAuthRequest('token', {}, { dpop: [] }) }),
    ],
    [
      'a DPoP proof for another address',
      'invalid_dpop_proof',
      ({ code }) => wallet.redeem(code, { request: wallet.createOAuthRequest('par') }),
    ],
    [
      'an unknown DPoP nonce',
      'use_dpop_nonce',
      ({ code }) => {
        const dpop = [wallet.dpop('token', { payload: { nonce: 'abc' } })];
        return wallet.redeem(code, { request: wallet.createOAuthRequest('token', {}, { dpop }) });
      },
    ],
    [
      'a DPoP proof that was used',
      'invalid_dpop_proof',
      async ({ code }) => {
        const request = wallet.createOAuthRequest('token');
        await wallet.redeem((await anOffer(world)).code, { request });
        return wallet.redeem(code, { request });
      },
    ],
    [
      'a registered client without authentication',
      'invalid_client',
      async ({ code }) => {
        const registered = { client_id: 'bank', jwks: { keys: [newKey().jwk] } };
        await world.putIssuance({ walletClients: [registered] });
        return wallet.redeem(code, { request: wallet.createOAuthRequest('token', { client_id: 'bank' }) });
      },
    ],
    [
      'a wallet without the attestation that is required',
      'invalid_client',
      async ({ code }) => {
        await world.putIssuance({ walletAttestationRequired: true });
        return wallet.redeem(code);
      },
    ],
    [
      'a session that another process ended',
      'invalid_grant',
      async ({ code, session: { id } }) => {
        const change = { id, anytime: ['active'], to: 'failed' } as const;
        await world.store.commit(ACME, { session: change }, world.clock.now());
        return wallet.redeem(code);
      },
    ],
  ];
  for (const [description, code, call, offer] of rejections) {
    it(`rejects ${description}, and does not consume the code`, async () => {
      const createdOffer = await anOffer(world, offer);
      const before = await storedGrant(createdOffer);
      expect(await outcomeOf(call(createdOffer).finally(() => world.putIssuance()))).to.equal(code);
      expect(await storedGrant(createdOffer)).to.deep.equal(before);
    });
  }

  it('rejects an authorization code', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const code = await wallet.approve(await wallet.push({ issuer_state: session.publicId }));
    expect(await outcomeOf(wallet.redeem(code))).to.equal('invalid_grant');
  });

  it('fails for an unknown tenant', async () => {
    const { code } = await anOffer(world);
    const unknownTenant = new Wallet(world, 'unknown' as TenantId);
    expect(await outcomeOf(unknownTenant.redeem(code))).to.equal('not_found');
  });

  it('allows a few wrong transaction codes, and then rejects even the right one', async () => {
    const [firstOffer, secondOffer] = [await anOffer(world, TX), await anOffer(world, TX)];
    const redeemWithWrongCode = async ({ code }: CreatedOffer, times: number) => {
      const attempts = Array.from({ length: times }, () => outcomeOf(wallet.redeem(code, { txCode: '0000' })));
      expect(new Set(await Promise.all(attempts))).to.deep.equal(new Set(['invalid_grant']));
    };
    await redeemWithWrongCode(firstOffer, MAX_TX_CODE_ATTEMPTS - 1);
    expect((await storedGrant(firstOffer)).attempts).to.equal(MAX_TX_CODE_ATTEMPTS - 1);
    expect(await outcomeOf(wallet.redeem(firstOffer.code, { txCode: TX.tx_code }))).to.equal('done');
    await redeemWithWrongCode(secondOffer, MAX_TX_CODE_ATTEMPTS + 3);
    expect((await storedGrant(secondOffer)).attempts).to.equal(MAX_TX_CODE_ATTEMPTS);
    expect(await outcomeOf(wallet.redeem(secondOffer.code, { txCode: TX.tx_code }))).to.equal('invalid_grant');
  });

  describe('with a repeated code', () => {
    const isUnrevoked = async (offer: CreatedOffer) => (await storedGrant(offer)).revokedAt === null;
    const expectInvalidGrant = async (work: Promise<unknown>) => expect(await outcomeOf(work)).to.equal('invalid_grant');

    it('revokes nothing, for any wallet that sends it', async () => {
      const offer = await anOffer(world);
      const token = await wallet.token(offer);
      await expectInvalidGrant(new Wallet(world).redeem(offer.code));
      expect(await isUnrevoked(offer)).to.equal(true);
      expect(await outcomeOf(wallet.issue(token))).to.equal('done');
    });

    it('returns the same unchanged grant to the same wallet', async () => {
      const offer = await anOffer(world, TX);
      const first = await wallet.redeem(offer.code, { txCode: TX.tx_code });
      const before = await storedGrant(offer);
      const retry = await world.afterSeconds(59, () => wallet.redeem(offer.code, { txCode: TX.tx_code }));
      expect(await storedGrant(offer)).to.deep.equal(before);
      expect(retry.body.refresh_token).to.equal(first.body.refresh_token);
      const [firstPayload, secondPayload] = [first, retry].map(({ body }) => decode(body.access_token).payload);
      expect(secondPayload?.['grant_id']).to.equal(firstPayload?.['grant_id']);
      expect(await outcomeOf(world.afterSeconds(59, () => wallet.issue(retry.body.access_token)))).to.equal('done');
      expect(await outcomeOf(wallet.issue(first.body.access_token))).to.equal('done');
    });

    it('returns the same answer only for the same narrowed token', async () => {
      const offer = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
      await wallet.redeem(offer.code, { requestedIds: ['pass'] });
      await expectInvalidGrant(wallet.redeem(offer.code));
      await expectInvalidGrant(wallet.redeem(offer.code, { requestedIds: ['card'] }));
      const { body } = await wallet.redeem(offer.code, { requestedIds: ['pass'] });
      expect(body.authorization_details).to.have.length(1);
    });

    it('rejects the code after a minute, or once its answer was used', async () => {
      const [expiredOffer, issuedOffer, revokedOffer] = [
        await anOffer(world),
        await anOffer(world),
        await anOffer(world),
        await anOffer(world),
      ];
      await wallet.redeem(expiredOffer.code);
      await expectInvalidGrant(world.afterSeconds(60, () => wallet.redeem(expiredOffer.code)));
      await wallet.issue(await wallet.token(issuedOffer));
      await expectInvalidGrant(wallet.redeem(issuedOffer.code));
      await wallet.redeem(revokedOffer.code);
      const { id } = await storedGrant(revokedOffer);
      await world.store.commit(ACME, { grant: { id, act: 'revoke' } }, world.clock.now());
      await expectInvalidGrant(wallet.redeem(revokedOffer.code));
    });

    it('rejects another transaction code, and a request without a key', async () => {
      const offer = await anOffer(world, TX);
      await wallet.redeem(offer.code, { txCode: TX.tx_code });
      await expectInvalidGrant(wallet.redeem(offer.code, { txCode: '0000' }));
      await expectInvalidGrant(wallet.redeem(offer.code));
      expect((await storedGrant(offer)).attempts).to.equal(0);
      await world.putIssuance({ dPopRequired: false });
      const { code } = await anOffer(world);
      const redeemWithoutKey = () => wallet.redeem(code, { request: wallet.createOAuthRequest('token', {}, { dpop: [] }) });
      await redeemWithoutKey();
      await expectInvalidGrant(redeemWithoutKey());
      await world.putIssuance();
    });

    it('consumes its proof each time', async () => {
      const { code } = await anOffer(world);
      const request = wallet.createOAuthRequest('token');
      await wallet.redeem(code, { request });
      expect(await outcomeOf(wallet.redeem(code, { request }))).to.equal('invalid_dpop_proof');
    });

    it('detects the repetition even if this process has cached the code as unused', async () => {
      const [ownOffer, otherOffer] = [await anOffer(world), await anOffer(world)];
      await redeemInOtherProcess(ownOffer.code);
      expect(await outcomeOf(wallet.redeem(ownOffer.code))).to.equal('done');
      await redeemInOtherProcess(otherOffer.code);
      await expectInvalidGrant(new Wallet(world).redeem(otherOffer.code));
    });

    it('returns tokens to one of many concurrent wallets', async () => {
      const { code } = await anOffer(world);
      const outcomes = await Promise.all([1, 2, 3].map(() => outcomeOf(new Wallet(world).redeem(code))));
      expect(outcomes.sort()).to.deep.equal(['done', 'invalid_grant', 'invalid_grant']);
    });
  });

  it('reads nothing while everything is cached, and commits once', async () => {
    const { code } = await anOffer(world);
    const [read, commit] = [sinon.spy(world.store, 'read'), sinon.spy(world.store, 'commit')];
    await wallet.redeem(code);
    expect([read.callCount, commit.callCount]).to.deep.equal([0, 1]);
  });
});

const NOTIFY = { notifyWebhook: { url: 'https://backend.example/notify' } };

describe('offer that can no longer succeed', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.putCredential({ id: 'notified', notificationWebhook: { url: 'https://backend.example/told' } });
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = undefined;
  });
  afterEach(() => sinon.restore());

  const guess = async ({ code }: CreatedOffer, times = MAX_TX_CODE_ATTEMPTS) => {
    for (let remaining = times; remaining > 0; remaining--)
      expect(await outcomeOf(wallet.redeem(code, { txCode: '0000' }))).to.equal('invalid_grant');
  };
  const present = ({ session }: CreatedOffer) => world.session(session.id);
  const notifications = () => world.webhooks.calls.map(({ url, body }) => ({ url, body }));

  const sessionOf = async (accessToken: string) => {
    const publicId = decode(accessToken).payload['issuer_state'] as PublicId;
    return (await world.store.read(ACME).sessionByPublicId(publicId))?.session;
  };

  it('fails with the fifth wrong transaction code, and not before', async () => {
    const offer = await anOffer(world, TX);
    await guess(offer, MAX_TX_CODE_ATTEMPTS - 1);
    expect((await present(offer)).status).to.equal('active');
    await guess(offer, 1);
    const { status, outcome, version } = await present(offer);
    expect(status).to.equal('failed');
    expect(outcome).to.deep.equal({ failure: { code: 'tx_code_attempts', message: 'the transaction code was wrong five times' } });
    const events = await world.store.read(ACME).sessionEvents(offer.session.id, 0, 10);
    expect(events.at(-1)).to.include({ status: 'failed', version });
    expect(await outcomeOf(wallet.redeem(offer.code, { txCode: TX.tx_code }))).to.equal('invalid_grant');
    expect(notifications()).to.deep.equal([]);
  });

  it('fails once, for any number of simultaneous attempts', async () => {
    const offer = await anOffer(world, { ...TX, ...NOTIFY });
    const attempts = Array.from({ length: 30 }, () => outcomeOf(wallet.redeem(offer.code, { txCode: '0000' })));
    expect(new Set(await Promise.all(attempts))).to.deep.equal(new Set(['invalid_grant']));
    expect((await present(offer)).status).to.equal('failed');
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('is sent to the webhook of the offer, for each of its credentials, and the call is recorded', async () => {
    const offer = await anOffer(world, { ...TX, ...NOTIFY, credentialConfigurationIds: ['card', 'notified'] });
    await guess(offer);
    const { deliveries = [] } = (await present(offer)).outcome ?? {};
    expect(deliveries.map(({ webhook, result }) => [webhook, result])).to.deep.equal([
      ['notification', 'delivered'],
      ['notification', 'delivered'],
    ]);
    expect(notifications()).to.have.deep.members(
      ['card', 'notified'].map((credentialConfigurationId, index) => ({
        url: NOTIFY.notifyWebhook.url,
        body: {
          session: offer.session.id,
          notification: {
            id: deliveries[index]?.id,
            event: 'credential_failure',
            credentialConfigurationId,
            eventDescription: 'the transaction code was wrong five times',
          },
        },
      })),
    );
  });

  it('is otherwise sent to the webhook of the configuration; a failed call changes nothing', async () => {
    world.webhooks.answer = new WebhookError('timeout', 'no answer in time');
    const offer = await anOffer(world, { ...TX, credentialConfigurationIds: ['card', 'notified'] });
    await guess(offer);
    expect(notifications().map(({ url }) => url)).to.deep.equal(['https://backend.example/told']);
    const { status, outcome } = await present(offer);
    expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'tx_code_attempts']);
    expect(outcome?.deliveries?.map(({ result }) => result)).to.deep.equal(['failed']);
  });

  it('counts the attempt of an ended session without changing its status', async () => {
    const offer = await anOffer(world, { ...TX, ...NOTIFY });
    await guess(offer, MAX_TX_CODE_ATTEMPTS - 1);
    const { id } = offer.session;
    const expired = { id, anytime: ['active'], to: 'expired' } as const;
    await world.store.commit(ACME, { session: expired }, world.clock.now());
    await guess(offer, 1);
    expect((await present(offer)).status).to.equal('expired');
    expect(notifications()).to.deep.equal([]);
  });

  describe('with stolen tokens', () => {
    /** Replaces the refresh token on each use, like an earlier release. */
    const replaceTwice = async ({ code }: CreatedOffer) => {
      const { id = '' } = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant ?? {};
      for (const generation of [0, 1]) await world.store.commit(ACME, { grant: { id, act: 'refresh', generation } }, world.clock.now());
    };
    const reuseRefreshToken = async (offer: CreatedOffer) => {
      const { body } = await wallet.redeem(offer.code);
      await replaceTwice(offer);
      expect(await outcomeOf(wallet.refresh(body.refresh_token))).to.equal('invalid_grant');
    };

    it('fails, since its code is consumed', async () => {
      const offer = await anOffer(world, NOTIFY);
      await reuseRefreshToken(offer);
      const { status, outcome } = await present(offer);
      expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'refresh_token_replayed']);
      expect(world.webhooks.calls).to.have.length(1);
    });

    it('stays completed if it was completed before', async () => {
      const offer = await anOffer(world, NOTIFY);
      const { body } = await wallet.redeem(offer.code);
      await wallet.issue(body.access_token);
      await replaceTwice(offer);
      expect(await outcomeOf(wallet.refresh(body.refresh_token))).to.equal('invalid_grant');
      expect((await present(offer)).status).to.equal('completed');
      expect(notifications()).to.deep.equal([]);
    });
  });

  it('stays open when an authorization code is replayed: another wallet may use it', async () => {
    const offer = await anOffer(world, { flow: 'authorization_code' });
    const code = await wallet.approve(await wallet.push({ issuer_state: offer.session.publicId }));
    await wallet.redeemCode(code);
    expect(await outcomeOf(wallet.redeemCode(code))).to.equal('invalid_grant');
    expect((await present(offer)).status).to.equal('active');
  });

  it('fails when an authorization code of a wallet-initiated issuance is replayed', async () => {
    await world.putIssuance({ builtInAs: { walletInitiated: true } });
    const code = await wallet.approve(await wallet.push());
    const { body } = await wallet.redeemCode(code);
    expect(await outcomeOf(wallet.redeemCode(code))).to.equal('invalid_grant');
    const session = await sessionOf(body.access_token);
    expect([session?.status, session?.outcome?.failure?.code]).to.deep.equal(['failed', 'code_replayed']);
    await world.putIssuance();
  });

  it('is not ended by another key with an authorization code', async () => {
    await world.putIssuance({ builtInAs: { walletInitiated: true } });
    const code = await wallet.approve(await wallet.push());
    const { body } = await wallet.redeemCode(code);
    const dpop = [wallet.dpop('token', { key: newKey() })];
    const request = wallet.createOAuthRequest('token', { client_id: 'https://wallet.example' }, { dpop });
    expect(await outcomeOf(wallet.redeemCode(code, { request }))).to.equal('invalid_grant');
    const session = await sessionOf(body.access_token);
    expect(session?.status).not.to.equal('failed');
    await world.putIssuance();
  });
});
