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
import { anOffer, endOf, type Offered, Wallet, WalletWorld } from '../wallet-kit.ts';

const TX = { tx_code: '402917' };

describe('PreAuthorizedCodeGrant', () => {
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
    new PreAuthorizedCodeGrant(world.elsewhere()).answer(ACME, wallet.oauth('token'), {
      grantType: PRE_AUTHORIZED_CODE_GRANT,
      code,
      txCode: undefined,
      requestedIds: undefined,
    });

  it('answers with a token that is bound to the key of the wallet, and records the wallet', async () => {
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

  it('narrows the token to the requested credentials, and returns identifiers', async () => {
    const offered = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body } = await wallet.redeem(offered.code, { requestedIds: ['pass'] });
    const [details, ...others] = body.authorization_details ?? [];
    expect([details?.['credential_identifiers'], others]).to.deep.equal([['pass'], []]);
    expect((await stored(offered)).holder).to.deep.include({ identifiers: true, configurationIds: ['pass'] });
  });

  it('needs no key if the tenant binds no tokens, and then returns no refresh token', async () => {
    await world.issues({ dPopRequired: false });
    const { code } = await anOffer(world);
    const { body } = await wallet.redeem(code, { request: wallet.oauth('token', {}, { dpop: [] }) });
    expect(body).to.include({ token_type: 'Bearer', expires_in: 300 });
    expect(body).not.to.have.property('refresh_token');
    await world.issues();
  });

  it('accepts proofs of configured algorithms', async () => {
    await world.issues({ algorithms: ['ES384'] });
    const { code } = await anOffer(world);
    expect(await endOf(wallet.redeem(code))).to.equal('invalid_dpop_proof');
    await world.issues({ algorithms: ['ES256'] });
    expect(await endOf(wallet.redeem(code)), 'nothing was spent').to.equal('done');
    await world.issues();
  });

  type Refused = readonly [what: string, code: FailureCode, ask: (offered: Offered) => Promise<unknown>, offer?: object];
  const refusals: readonly Refused[] = [
    ['an unknown code', 'invalid_grant', () => wallet.redeem('unknown')],
    ['a code that has expired', 'invalid_grant', ({ code }) => world.later(60, () => wallet.redeem(code)), { expiresIn: 60 }],
    ['a transaction code that was not requested', 'invalid_request', ({ code }) => wallet.redeem(code, { txCode: '1234' })],
    ['a missing transaction code', 'invalid_request', ({ code }) => wallet.redeem(code), TX],
    ['more than the code is for', 'invalid_authorization_details', ({ code }) => wallet.redeem(code, { requestedIds: ['pass'] })],
    ['no DPoP proof', 'invalid_dpop_proof', ({ code }) => wallet.redeem(code, { request: wallet.oauth('token', {}, { dpop: [] }) })],
    ['a DPoP proof for another address', 'invalid_dpop_proof', ({ code }) => wallet.redeem(code, { request: wallet.oauth('par') })],
    [
      'an unknown DPoP nonce',
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
    it(`rejects ${what}, and does not consume the code`, async () => {
      const offered = await anOffer(world, offer);
      const before = await stored(offered);
      expect(await endOf(ask(offered).finally(() => world.issues()))).to.equal(code);
      expect(await stored(offered)).to.deep.equal(before);
    });
  }

  it('rejects an authorization code', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const code = await wallet.approve(await wallet.push({ issuer_state: session.publicId }));
    expect(await endOf(wallet.redeem(code))).to.equal('invalid_grant');
  });

  it('fails for an unknown tenant', async () => {
    const { code } = await anOffer(world);
    const nobody = new Wallet(world, 'nobody' as TenantId);
    expect(await endOf(nobody.redeem(code))).to.equal('not_found');
  });

  it('allows a few wrong transaction codes, and then rejects even the right one', async () => {
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

  describe('with a repeated code', () => {
    const unrevoked = async (offered: Offered) => (await stored(offered)).revokedAt === null;
    const spent = async (work: Promise<unknown>) => expect(await endOf(work)).to.equal('invalid_grant');

    it('revokes nothing, for any wallet that sends it', async () => {
      const offered = await anOffer(world);
      const token = await wallet.token(offered);
      await spent(new Wallet(world).redeem(offered.code));
      expect(await unrevoked(offered)).to.equal(true);
      expect(await endOf(wallet.issue(token))).to.equal('done');
    });

    it('returns the same unchanged grant to the same wallet', async () => {
      const offered = await anOffer(world, TX);
      const first = await wallet.redeem(offered.code, { txCode: TX.tx_code });
      const before = await stored(offered);
      const again = await world.later(59, () => wallet.redeem(offered.code, { txCode: TX.tx_code }));
      expect(await stored(offered)).to.deep.equal(before);
      expect(again.body.refresh_token).to.equal(first.body.refresh_token);
      const [one, other] = [first, again].map(({ body }) => decode(body.access_token).payload);
      expect(other?.['grant_id']).to.equal(one?.['grant_id']);
      expect(await endOf(world.later(59, () => wallet.issue(again.body.access_token)))).to.equal('done');
      expect(await endOf(wallet.issue(first.body.access_token))).to.equal('done');
    });

    it('returns the same answer only for the same narrowed token', async () => {
      const offered = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
      await wallet.redeem(offered.code, { requestedIds: ['pass'] });
      await spent(wallet.redeem(offered.code));
      await spent(wallet.redeem(offered.code, { requestedIds: ['card'] }));
      const { body } = await wallet.redeem(offered.code, { requestedIds: ['pass'] });
      expect(body.authorization_details).to.have.length(1);
    });

    it('rejects the code after a minute, or once its answer was used', async () => {
      const [late, issued, revoked] = [await anOffer(world), await anOffer(world), await anOffer(world), await anOffer(world)];
      await wallet.redeem(late.code);
      await spent(world.later(60, () => wallet.redeem(late.code)));
      await wallet.issue(await wallet.token(issued));
      await spent(wallet.redeem(issued.code));
      await wallet.redeem(revoked.code);
      const { id } = await stored(revoked);
      await world.store.commit(ACME, { grant: { id, act: 'revoke' } }, world.clock.now());
      await spent(wallet.redeem(revoked.code));
    });

    it('rejects another transaction code, and a request without a key', async () => {
      const offered = await anOffer(world, TX);
      await wallet.redeem(offered.code, { txCode: TX.tx_code });
      await spent(wallet.redeem(offered.code, { txCode: '0000' }));
      await spent(wallet.redeem(offered.code));
      expect((await stored(offered)).attempts).to.equal(0);
      await world.issues({ dPopRequired: false });
      const { code } = await anOffer(world);
      const unbound = () => wallet.redeem(code, { request: wallet.oauth('token', {}, { dpop: [] }) });
      await unbound();
      await spent(unbound());
      await world.issues();
    });

    it('consumes its proof each time', async () => {
      const { code } = await anOffer(world);
      const request = wallet.oauth('token');
      await wallet.redeem(code, { request });
      expect(await endOf(wallet.redeem(code, { request }))).to.equal('invalid_dpop_proof');
    });

    it('detects the repetition even if this process has cached the code as unused', async () => {
      const [own, foreign] = [await anOffer(world), await anOffer(world)];
      await elsewhere(own.code);
      expect(await endOf(wallet.redeem(own.code))).to.equal('done');
      await elsewhere(foreign.code);
      await spent(new Wallet(world).redeem(foreign.code));
    });

    it('returns tokens to one of many concurrent wallets', async () => {
      const { code } = await anOffer(world);
      const ends = await Promise.all([1, 2, 3].map(() => endOf(new Wallet(world).redeem(code))));
      expect(ends.sort()).to.deep.equal(['done', 'invalid_grant', 'invalid_grant']);
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
    await world.offers({ id: 'told', notificationWebhook: { url: 'https://backend.example/told' } });
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = undefined;
  });
  afterEach(() => sinon.restore());

  const guess = async ({ code }: Offered, times = MAX_TX_CODE_ATTEMPTS) => {
    for (let left = times; left > 0; left--) expect(await endOf(wallet.redeem(code, { txCode: '0000' }))).to.equal('invalid_grant');
  };
  const present = ({ session }: Offered) => world.session(session.id);
  const told = () => world.webhooks.calls.map(({ url, body }) => ({ url, body }));

  const sessionOf = async (accessToken: string) => {
    const publicId = decode(accessToken).payload['issuer_state'] as PublicId;
    return (await world.store.read(ACME).sessionByPublicId(publicId))?.session;
  };

  it('fails with the fifth wrong transaction code, and not before', async () => {
    const offered = await anOffer(world, TX);
    await guess(offered, MAX_TX_CODE_ATTEMPTS - 1);
    expect((await present(offered)).status).to.equal('active');
    await guess(offered, 1);
    const { status, outcome, version } = await present(offered);
    expect(status).to.equal('failed');
    expect(outcome).to.deep.equal({ failure: { code: 'tx_code_attempts', message: 'the transaction code was wrong five times' } });
    const events = await world.store.read(ACME).sessionEvents(offered.session.id, 0, 10);
    expect(events.at(-1)).to.include({ status: 'failed', version });
    expect(await endOf(wallet.redeem(offered.code, { txCode: TX.tx_code }))).to.equal('invalid_grant');
    expect(told()).to.deep.equal([]);
  });

  it('fails once, for any number of simultaneous attempts', async () => {
    const offered = await anOffer(world, { ...TX, ...NOTIFY });
    const all = Array.from({ length: 30 }, () => endOf(wallet.redeem(offered.code, { txCode: '0000' })));
    expect(new Set(await Promise.all(all))).to.deep.equal(new Set(['invalid_grant']));
    expect((await present(offered)).status).to.equal('failed');
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('is sent to the webhook of the offer, for each of its credentials, and the call is recorded', async () => {
    const offered = await anOffer(world, { ...TX, ...NOTIFY, credentialConfigurationIds: ['card', 'told'] });
    await guess(offered);
    const { deliveries = [] } = (await present(offered)).outcome ?? {};
    expect(deliveries.map(({ webhook, result }) => [webhook, result])).to.deep.equal([
      ['notification', 'delivered'],
      ['notification', 'delivered'],
    ]);
    expect(told()).to.have.deep.members(
      ['card', 'told'].map((credentialConfigurationId, index) => ({
        url: NOTIFY.notifyWebhook.url,
        body: {
          session: offered.session.id,
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
    const offered = await anOffer(world, { ...TX, credentialConfigurationIds: ['card', 'told'] });
    await guess(offered);
    expect(told().map(({ url }) => url)).to.deep.equal(['https://backend.example/told']);
    const { status, outcome } = await present(offered);
    expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'tx_code_attempts']);
    expect(outcome?.deliveries?.map(({ result }) => result)).to.deep.equal(['failed']);
  });

  it('counts the attempt of an ended session without changing its status', async () => {
    const offered = await anOffer(world, { ...TX, ...NOTIFY });
    await guess(offered, MAX_TX_CODE_ATTEMPTS - 1);
    const { id } = offered.session;
    const expired = { id, anytime: ['active'], to: 'expired' } as const;
    await world.store.commit(ACME, { session: expired }, world.clock.now());
    await guess(offered, 1);
    expect((await present(offered)).status).to.equal('expired');
    expect(told()).to.deep.equal([]);
  });

  describe('with stolen tokens', () => {
    /** As an earlier release did with each use of a refresh token. */
    const replaceTwice = async ({ code }: Offered) => {
      const { id = '' } = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant ?? {};
      for (const generation of [0, 1]) await world.store.commit(ACME, { grant: { id, act: 'refresh', generation } }, world.clock.now());
    };
    const stolen = async (offered: Offered) => {
      const { body } = await wallet.redeem(offered.code);
      await replaceTwice(offered);
      expect(await endOf(wallet.refresh(body.refresh_token))).to.equal('invalid_grant');
    };

    it('fails, since its code is consumed', async () => {
      const offered = await anOffer(world, NOTIFY);
      await stolen(offered);
      const { status, outcome } = await present(offered);
      expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'refresh_token_replayed']);
      expect(world.webhooks.calls).to.have.length(1);
    });

    it('stays completed if it was completed before', async () => {
      const offered = await anOffer(world, NOTIFY);
      const { body } = await wallet.redeem(offered.code);
      await wallet.issue(body.access_token);
      await replaceTwice(offered);
      expect(await endOf(wallet.refresh(body.refresh_token))).to.equal('invalid_grant');
      expect((await present(offered)).status).to.equal('completed');
      expect(told()).to.deep.equal([]);
    });
  });

  it('stays open when an authorization code is replayed: another wallet may use it', async () => {
    const offered = await anOffer(world, { flow: 'authorization_code' });
    const code = await wallet.approve(await wallet.push({ issuer_state: offered.session.publicId }));
    await wallet.redeemCode(code);
    expect(await endOf(wallet.redeemCode(code))).to.equal('invalid_grant');
    expect((await present(offered)).status).to.equal('active');
  });

  it('fails when an authorization code of a wallet-initiated issuance is replayed', async () => {
    await world.issues({ builtInAs: { walletInitiated: true } });
    const code = await wallet.approve(await wallet.push());
    const { body } = await wallet.redeemCode(code);
    expect(await endOf(wallet.redeemCode(code))).to.equal('invalid_grant');
    const session = await sessionOf(body.access_token);
    expect([session?.status, session?.outcome?.failure?.code]).to.deep.equal(['failed', 'code_replayed']);
    await world.issues();
  });

  it('is not ended by another key with an authorization code', async () => {
    await world.issues({ builtInAs: { walletInitiated: true } });
    const code = await wallet.approve(await wallet.push());
    const { body } = await wallet.redeemCode(code);
    const dpop = [wallet.dpop('token', { key: newKey() })];
    const request = wallet.oauth('token', { client_id: 'https://wallet.example' }, { dpop });
    expect(await endOf(wallet.redeemCode(code, { request }))).to.equal('invalid_grant');
    const session = await sessionOf(body.access_token);
    expect(session?.status).not.to.equal('failed');
    await world.issues();
  });
});
