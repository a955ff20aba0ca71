import { expect } from 'chai';
import sinon from 'sinon';
import { CreateNonce } from '../../../application/issuance/create-nonce.ts';
import { C_NONCE } from '../../../application/issuance/holder-keys.ts';
import { readChallenge } from '../../../domain/oauth/challenge.ts';
import type { IssuanceRequest } from '../../../domain/sessions/session.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const NOBODY = 'nobody' as TenantId;

let world: WalletWorld;

describe('Before a wallet asks', () => {
  before(async () => {
    world = await WalletWorld.open();
  });
  afterEach(() => sinon.restore());

  describe('FetchOffer', () => {
    const fetch = (publicId: string, tenantId = ACME) =>
      world.fetchOffer.execute(tenantId, publicId as PublicId);

    it('hands the offer out and notes the first fetch only', async () => {
      const { session } = await anOffer(world);
      const request = session.request as IssuanceRequest;
      expect(await fetch(session.publicId)).to.deep.equal(request.offer);
      const fetched = await world.session(session.id);
      expect(fetched).to.deep.include({ status: 'fetched', version: 2 });
      expect(await fetch(session.publicId)).to.deep.equal(request.offer);
      expect(await world.session(session.id)).to.deep.equal(fetched);
    });

    it('finds nothing under a name that nobody gave', async () => {
      expect(await endOf(fetch('a name that is not there'))).to.equal('not_found');
    });

    it('finds nothing at another tenant', async () => {
      const { session } = await anOffer(world);
      expect(await endOf(fetch(session.publicId, NOBODY))).to.equal('not_found');
    });

    it('finds nothing once the time of the offer is over', async () => {
      const { session } = await anOffer(world, { expiresIn: 60 });
      expect(await world.later(60, () => endOf(fetch(session.publicId)))).to.equal('not_found');
      expect((await world.session(session.id)).status).to.equal('active');
    });

    for (const visits of [0, 1]) {
      it(`finds nothing of an offer that another process ended after ${visits} visits here`, async () => {
        const { session } = await anOffer(world);
        for (let visit = 0; visit < visits; visit++) await fetch(session.publicId);
        const failed = { id: session.id, anytime: ['active', 'fetched'], to: 'failed' } as const;
        await world.store.commit(ACME, { session: failed }, world.clock.now());
        expect(await endOf(fetch(session.publicId))).to.equal('not_found');
      });
    }

    it('shows no presentation request', async () => {
      await world.verifies();
      const { publicId } = await world.request();
      expect(await endOf(fetch(publicId))).to.equal('not_found');
    });

    it('finds nothing at a tenant that another process suspended', async () => {
      const { session } = await anOffer(world);
      await world.change({ status: 'suspended' });
      expect(await endOf(fetch(session.publicId))).to.equal('not_found');
      await world.change({ status: 'active' });
      expect((await world.session(session.id)).status).to.equal('active');
    });
  });

  describe('CreateNonce', () => {
    it('makes a nonce of this tenant that lasts five minutes, and writes nothing', async () => {
      const commit = sinon.spy(world.store, 'commit');
      const { cNonce: nonce } = await world.createNonce.execute(ACME);
      const read = (tenantId: TenantId, seconds = 0) =>
        readChallenge(
          world.settings.nonceKeys,
          tenantId,
          C_NONCE,
          new Date(world.clock.time + seconds * 1000),
          nonce,
        );
      expect(read(ACME)?.expiresAt.getTime()).to.equal(world.clock.time + 300_000);
      expect([read(NOBODY), read(ACME, 300)]).to.deep.equal([undefined, undefined]);
      expect(commit.callCount).to.equal(0);
      expect((await world.createNonce.execute(ACME)).cNonce).not.to.equal(nonce);
    });

    it('makes one for DPoP proofs with it, where the tenant uses any', async () => {
      expect((await world.createNonce.execute(ACME)).dpopNonce).to.be.a('string');
    });

    it('makes none for a tenant that is unknown or suspended', async () => {
      expect(await endOf(world.createNonce.execute(NOBODY))).to.equal('not_found');
      await world.change({ status: 'suspended' });
      const elsewhere = new CreateNonce(world.elsewhere());
      expect(await endOf(elsewhere.execute(ACME))).to.equal('not_found');
      await world.change({ status: 'active' });
    });
  });
});
