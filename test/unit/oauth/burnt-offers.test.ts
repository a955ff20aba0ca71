import { expect } from 'chai';
import sinon from 'sinon';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { MAX_TX_CODE_ATTEMPTS } from '../../../domain/oauth/grant.ts';
import type { PublicId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Offered, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const TX = { tx_code: '402917' };
const NOTIFY = { notifyWebhook: { url: 'https://backend.example/notify' } };

describe('An offer of which nothing can come any more', () => {
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
    for (let left = times; left > 0; left--)
      expect(await endOf(wallet.redeem(code, { txCode: '0000' }))).to.equal('invalid_grant');
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
    expect(outcome).to.deep.equal({
      failure: { code: 'tx_code_attempts', message: 'the transaction code was wrong five times' },
    });
    const events = await world.store.read(ACME).sessionEvents(offered.session.id, 0, 10);
    expect(events.at(-1)).to.include({ status: 'failed', version });
    expect(await endOf(wallet.redeem(offered.code, { txCode: TX.tx_code }))).to.equal('invalid_grant');
    expect(told()).to.deep.equal([]);
  });

  it('fails once, however many guess at the same time', async () => {
    const offered = await anOffer(world, { ...TX, ...NOTIFY });
    const all = Array.from({ length: 30 }, () => endOf(wallet.redeem(offered.code, { txCode: '0000' })));
    expect(new Set(await Promise.all(all))).to.deep.equal(new Set(['invalid_grant']));
    expect((await present(offered)).status).to.equal('failed');
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('is told to the webhook of the offer, for each of its credentials, and the call is on record', async () => {
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

  it('is told to the webhook of the configuration otherwise; one that fails changes nothing', async () => {
    world.webhooks.answer = new WebhookError('timeout', 'no answer in time');
    const offered = await anOffer(world, { ...TX, credentialConfigurationIds: ['card', 'told'] });
    await guess(offered);
    expect(told().map(({ url }) => url)).to.deep.equal(['https://backend.example/told']);
    const { status, outcome } = await present(offered);
    expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'tx_code_attempts']);
    expect(outcome?.deliveries?.map(({ result }) => result)).to.deep.equal(['failed']);
  });

  it('counts the attempt of a session that has ended, and leaves that as it is', async () => {
    const offered = await anOffer(world, { ...TX, ...NOTIFY });
    await guess(offered, MAX_TX_CODE_ATTEMPTS - 1);
    const { id } = offered.session;
    const expired = { id, anytime: ['active'], to: 'expired' } as const;
    await world.store.commit(ACME, { session: expired }, world.clock.now());
    await guess(offered, 1);
    expect((await present(offered)).status).to.equal('expired');
    expect(told()).to.deep.equal([]);
  });

  describe('whose tokens were stolen', () => {
    /** As an earlier release did with each use of a refresh token. */
    const replaceTwice = async ({ code }: Offered) => {
      const { id = '' } = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant ?? {};
      for (const generation of [0, 1])
        await world.store.commit(ACME, { grant: { id, act: 'refresh', generation } }, world.clock.now());
    };
    const stolen = async (offered: Offered) => {
      const { body } = await wallet.redeem(offered.code);
      await replaceTwice(offered);
      expect(await endOf(wallet.refresh(body.refresh_token))).to.equal('invalid_grant');
    };

    it('fails, since its code is spent', async () => {
      const offered = await anOffer(world, NOTIFY);
      await stolen(offered);
      const { status, outcome } = await present(offered);
      expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'refresh_token_replayed']);
      expect(world.webhooks.calls).to.have.length(1);
    });

    it('stays completed where it was', async () => {
      const offered = await anOffer(world, NOTIFY);
      const { body } = await wallet.redeem(offered.code);
      await wallet.issue(body.access_token);
      await replaceTwice(offered);
      expect(await endOf(wallet.refresh(body.refresh_token))).to.equal('invalid_grant');
      expect((await present(offered)).status).to.equal('completed');
      expect(told()).to.deep.equal([]);
    });
  });

  it('stays open when an authorization code comes back: another wallet may take it', async () => {
    const offered = await anOffer(world, { flow: 'authorization_code' });
    const code = await wallet.approve(await wallet.push({ issuer_state: offered.session.publicId }));
    await wallet.redeemCode(code);
    expect(await endOf(wallet.redeemCode(code))).to.equal('invalid_grant');
    expect((await present(offered)).status).to.equal('active');
  });

  it('fails when an authorization code comes back of what a wallet began by itself', async () => {
    await world.issues({ builtInAs: { walletInitiated: true } });
    const code = await wallet.approve(await wallet.push());
    const { body } = await wallet.redeemCode(code);
    expect(await endOf(wallet.redeemCode(code))).to.equal('invalid_grant');
    const session = await sessionOf(body.access_token);
    expect([session?.status, session?.outcome?.failure?.code]).to.deep.equal(['failed', 'code_replayed']);
    await world.issues();
  });

  it('is not burnt by another key with an authorization code', async () => {
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
