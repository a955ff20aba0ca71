import { expect } from 'chai';
import sinon from 'sinon';
import { ShowOfferPage } from '../../../application/sessions/show-offer-page.ts';
import { offerPageId } from '../../../domain/sessions/offer-page.ts';
import type { IssuanceRequest, Session, SessionStatus } from '../../../domain/sessions/session.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const NOBODY = 'nobody' as TenantId;

describe('The page of an offer or a request', () => {
  let world: WalletWorld;
  before(async () => {
    world = await WalletWorld.open();
  });
  afterEach(() => sinon.restore());

  const pageOf = ({ publicId }: { readonly publicId: PublicId }, tenantId = ACME) => {
    const [key] = world.settings.nonceKeys;
    if (key === undefined) throw new Error('no key');
    return offerPageId(key, tenantId, publicId);
  };
  const show = (page: string, tenantId = ACME) => new ShowOfferPage(world).execute(tenantId, page);
  const end = ({ id }: Session, to: SessionStatus, code?: string) => {
    const change = { id, anytime: ['active', 'fetched'], to } as const;
    const outcome = code === undefined ? {} : { outcome: { failure: { code, message: '' } } };
    return world.store.commit(ACME, { session: { ...change, ...outcome } as never }, world.clock.now());
  };

  it('invites to what can still be taken, and changes nothing', async () => {
    const { session } = await anOffer(world);
    const commit = sinon.spy(world.store, 'commit');
    const page = await show(pageOf(session));
    const { offerUrl } = session.request as IssuanceRequest;
    expect(page).to.deep.include({ standing: 'open', kind: 'issuance' });
    expect(page.standing === 'open' && page.invitation.link).to.equal(offerUrl);
    expect(commit.callCount).to.equal(0);
    expect((await world.session(session.id)).status).to.equal('active');
  });

  it('is had by its whole address alone, and at its own tenant', async () => {
    const { session } = await anOffer(world);
    const page = pageOf(session);
    for (const [address, tenantId] of [
      [session.publicId, ACME],
      [`${session.publicId}.${'A'.repeat(22)}`, ACME],
      [pageOf(session, NOBODY), ACME],
      [page, NOBODY],
    ] as const)
      expect(await endOf(show(address, tenantId))).to.equal('not_found');
  });

  it('says how it stands, and nothing else, once it is over', async () => {
    const ENDS = [
      ['completed', undefined, 'used'],
      ['failed', 'cancelled', 'cancelled'],
      ['failed', 'claims_unavailable', 'over'],
    ] as const;
    for (const [status, code, standing] of ENDS) {
      const { session } = await anOffer(world);
      await end(session, status, code);
      const page = await show(pageOf(session));
      expect(Object.keys(page).sort(), standing).to.deep.equal(['look', 'standing']);
      expect(page.standing).to.equal(standing);
    }
    const { session } = await anOffer(world, { expiresIn: 60 });
    const late = await world.later(60, () => show(pageOf(session)));
    expect(late.standing).to.equal('expired');
  });
});
