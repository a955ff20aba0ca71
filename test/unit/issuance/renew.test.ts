import { expect } from 'chai';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Offered, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const HOUR = 3600;
const TTL = 24 * HOUR;
const CLAIMS = (id: string) => ({ credentialClaims: { [id]: { type: 'inline', claims: { name: 'Eve' } } } });

describe('A credential that is renewed after the session of its offer', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.offers({ id: 'pass' });
    await world.offers({ id: 'asked', claimsWebhook: { url: 'https://backend.example/claims' } });
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = undefined;
  });

  const cleanUp = () => world.store.maintenance.cleanUpSessions(world.clock.now(), 100, { ttlSeconds: TTL });
  const collected = async (offer: object = {}, id = 'card') => {
    const offered = await anOffer(world, { credentialConfigurationIds: [id], ...offer });
    const { body } = await wallet.redeem(offered.code);
    await wallet.issue(body.access_token, { credential_configuration_id: id });
    return { ...offered, refreshToken: body.refresh_token };
  };
  type Collected = Offered & { readonly refreshToken: string | undefined };
  const renew = async ({ refreshToken }: Collected, id = 'card') => {
    const { body } = await wallet.refresh(refreshToken);
    return wallet.issue(body.access_token, { credential_configuration_id: id });
  };

  for (const [what, gone] of [
    ['is over', false],
    ['was removed', true],
  ] as const) {
    it(`comes from its configuration when the session ${what}, as long as its refresh token lives`, async () => {
      const given = await collected();
      await world.later(TTL + HOUR, async () => {
        if (gone) await cleanUp();
        expect((await renew(given)).credentials).to.have.length(1);
      });
      const { batches } = await world.stored(given.session.id).catch(() => ({ batches: [] }));
      expect(batches).to.have.length(2);
    });
  }

  it('is asked for at the webhook of its configuration', async () => {
    world.webhooks.answer = { asked: { name: 'Grace' } };
    const given = await collected({}, 'asked');
    await world.later(TTL + HOUR, async () => {
      await cleanUp();
      expect((await renew(given, 'asked')).credentials).to.have.length(1);
    });
    expect(world.webhooks.calls.map(({ body }) => body['session'])).to.deep.equal([
      given.session.id,
      given.session.id,
    ]);
  });

  it('is not renewed from claims of the offer once its session was removed, whatever the configuration says', async () => {
    const given = await collected(CLAIMS('card'));
    await world.later(TTL + HOUR, async () => {
      expect((await renew(given)).credentials, 'as long as the session is kept').to.have.length(1);
    });
    const other = await collected(CLAIMS('card'));
    await world.later(TTL + HOUR, async () => {
      await cleanUp();
      expect(await endOf(wallet.refresh(other.refreshToken))).to.equal('invalid_grant');
    });
  });

  it('is renewed beside one that came with the offer, which is not', async () => {
    const ids = { credentialConfigurationIds: ['card', 'pass'] };
    const offered = await anOffer(world, { ...ids, ...CLAIMS('pass') });
    const { body } = await wallet.redeem(offered.code);
    for (const credential_configuration_id of ['card', 'pass'])
      await wallet.issue(body.access_token, { credential_configuration_id });
    await world.later(TTL + HOUR, async () => {
      await cleanUp();
      const next = (await wallet.refresh(body.refresh_token)).body.access_token;
      expect(await endOf(wallet.issue(next))).to.equal('done');
      expect(await endOf(wallet.issue(next, { credential_configuration_id: 'pass' }))).to.equal(
        'credential_request_denied',
      );
    });
  });

  it('is not renewed from what this process remembers of an offer that was removed before its time', async () => {
    const ids = { credentialConfigurationIds: ['card', 'pass'] };
    const offered = await anOffer(world, { ...ids, ...CLAIMS('pass') });
    const { body } = await wallet.redeem(offered.code);
    for (const credential_configuration_id of ['card', 'pass'])
      await wallet.issue(body.access_token, { credential_configuration_id });
    const ttlSeconds = 60;
    await world.change({ sessionConfig: { ttlSeconds, cleanupMode: 'full' } });
    await world.later(120, async () => {
      await cleanUp();
      const pass = { credential_configuration_id: 'pass' };
      expect(await endOf(wallet.issue(body.access_token, pass))).to.equal('credential_request_denied');
      expect(await endOf(wallet.issue(body.access_token))).to.equal('done');
    });
    await world.change({ sessionConfig: null });
  });

  it('is not a first one: what nobody collected in time is over', async () => {
    const offered = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body } = await wallet.redeem(offered.code);
    await wallet.issue(body.access_token);
    await world.later(TTL + HOUR, async () => {
      const next = (await wallet.refresh(body.refresh_token)).body.access_token;
      expect(await endOf(wallet.issue(next, { credential_configuration_id: 'pass' }))).to.equal(
        'credential_request_denied',
      );
      expect(await endOf(wallet.issue(next))).to.equal('done');
    });
  });

  it('ends with its refresh token', async () => {
    const given = await collected();
    await world.later(2_592_000 - 1, async () => {
      await cleanUp();
      expect((await renew(given)).credentials).to.have.length(1);
    });
    await world.later(2_592_000, async () => {
      expect(await endOf(wallet.refresh(given.refreshToken))).to.equal('invalid_grant');
    });
  });

  it('keeps no grant for a wallet that gets no refresh token', async () => {
    await world.issues({ dPopRequired: false });
    const { code } = await anOffer(world);
    await wallet.redeem(code, { request: wallet.oauth('token', {}, { dpop: [] }) });
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    expect(grant?.expiresAt.getTime()).to.equal(world.clock.time + 1_800_000);
    await world.issues();
  });
});
