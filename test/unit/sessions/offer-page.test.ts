import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { ShowOfferPage } from '../../../application/offer-pages/show-offer-page.ts';
import { type OfferStatus, offerPageId, offerStatusOf, parseOfferPageId } from '../../../domain/sessions/offer-page.ts';
import type { IssuanceRequest, Session, SessionStatus } from '../../../domain/sessions/session.ts';
import { parseSearchKeys } from '../../../domain/sessions/session-search.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { aSession, aWorld } from '../administrators.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, outcomeOf, WalletWorld } from '../wallet-kit.ts';

const KEYS = ['one', 'two', 'three'].map((text) => createSecretKey(Buffer.from(text.repeat(11))));
const [FIRST, SECOND, THIRD] = KEYS as [(typeof KEYS)[0], (typeof KEYS)[0], (typeof KEYS)[0]];
const ID = 'Zm9vYmFyYmF6cXV4cXV1eA' as PublicId;

describe('name of an offer page', () => {
  const ACME = 'acme' as TenantId;

  it('is resolved to its offer, also under a previous key', () => {
    const page = offerPageId(FIRST, ACME, ID);
    expect(parseOfferPageId([FIRST], ACME, page)).to.equal(ID);
    expect(parseOfferPageId([SECOND, FIRST], ACME, page)).to.equal(ID);
    expect(parseOfferPageId([SECOND, THIRD], ACME, page)).to.equal(undefined);
    expect(parseOfferPageId([], ACME, page)).to.equal(undefined);
  });

  it('is invalid for another tenant, and with any changed character', () => {
    const page = offerPageId(FIRST, ACME, ID);
    expect(parseOfferPageId([FIRST], 'acm' as TenantId, page)).to.equal(undefined);
    // Two pairs of ids with the same text if they were joined without a separator.
    const shifted = offerPageId(FIRST, 'acme a' as TenantId, 'b' as PublicId);
    expect(parseOfferPageId([FIRST], ACME, shifted.replace(/^b/, 'a b'))).to.equal(undefined);
    for (let index = 0; index < page.length; index++) {
      for (const character of ['A', '_', '.', '%']) {
        if (page[index] === character) continue;
        const changed = page.slice(0, index) + character + page.slice(index + 1);
        expect(parseOfferPageId([FIRST], ACME, changed), changed).to.equal(undefined);
      }
    }
    for (const text of ['', '.', ID, `${ID}.`, `${page}A`, `${page}=`, ` ${page}`, `${page}\n`, 'x'.repeat(10_000)]) {
      expect(parseOfferPageId([FIRST], ACME, text), text.slice(0, 40)).to.equal(undefined);
    }
  });

  it('is found by a search with its address', () => {
    const url = `https://issuer.example/acme/offer/${offerPageId(FIRST, ACME, ID)}?lang=de`;
    expect(parseSearchKeys(url).publicIds[0]).to.equal(ID);
  });
});

describe('status on an offer page', () => {
  const { clock } = aWorld();
  const request = { kind: 'issuance', offerUrl: 'x' } as unknown as NonNullable<Session['request']>;
  const CASES: readonly (readonly [string, Partial<Session>, OfferStatus])[] = [
    ['was not fetched', { status: 'active' }, 'open'],
    ['a wallet has fetched', { status: 'fetched' }, 'open'],
    ['was issued', { status: 'completed' }, 'used'],
    ['was issued in part', { status: 'fetched', issuedMask: 2 }, 'used'],
    ['a wallet has answered', { status: 'fetched', claimedAt: new Date(0) }, 'used'],
    ['was not accepted in time', { status: 'active', expiresAt: new Date(0) }, 'expired'],
    ['was marked as expired', { status: 'expired' }, 'expired'],
    ['was cancelled', { status: 'failed', outcome: { failure: { code: 'cancelled', message: 'x' } } }, 'cancelled'],
    ['failed for another reason', { status: 'failed', outcome: null }, 'over'],
    ['has an unknown configuration', { status: 'active', request: null }, 'over'],
  ];
  for (const [description, changes, expected] of CASES) {
    it(`of an offer that ${description} is ${expected}`, () => {
      expect(offerStatusOf(aSession(clock, 1, { request, ...changes }), clock.now())).to.equal(expected);
    });
  }
});

const UNKNOWN_TENANT = 'unknown' as TenantId;

describe('page of an offer or a request', () => {
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
  const endSession = ({ id }: Session, status: SessionStatus, code?: string) => {
    const change = { id, anytime: ['active', 'fetched'], to: status } as const;
    const outcome = code === undefined ? {} : { outcome: { failure: { code, message: '' } } };
    return world.store.commit(ACME, { session: { ...change, ...outcome } as never }, world.clock.now());
  };

  it('shows an open offer, and changes nothing', async () => {
    const { session } = await anOffer(world);
    const commit = sinon.spy(world.store, 'commit');
    const page = await show(pageOf(session));
    const { offerUrl } = session.request as IssuanceRequest;
    expect(page).to.deep.include({ status: 'open', kind: 'issuance' });
    expect(page.status === 'open' && page.invitation.link).to.equal(offerUrl);
    expect(commit.callCount).to.equal(0);
    expect((await world.session(session.id)).status).to.equal('active');
  });

  it('is served only at its complete address, and for its tenant', async () => {
    const { session } = await anOffer(world);
    const page = pageOf(session);
    for (const [address, tenantId] of [
      [session.publicId, ACME],
      [`${session.publicId}.${'A'.repeat(22)}`, ACME],
      [pageOf(session, UNKNOWN_TENANT), ACME],
      [page, UNKNOWN_TENANT],
    ] as const)
      expect(await outcomeOf(show(address, tenantId))).to.equal('not_found');
  });

  it('shows only the status once the offer has ended', async () => {
    const END_STATUSES = [
      ['completed', undefined, 'used'],
      ['failed', 'cancelled', 'cancelled'],
      ['failed', 'claims_unavailable', 'over'],
    ] as const;
    for (const [status, code, expected] of END_STATUSES) {
      const { session } = await anOffer(world);
      await endSession(session, status, code);
      const page = await show(pageOf(session));
      expect(Object.keys(page).sort(), expected).to.deep.equal(['look', 'status']);
      expect(page.status).to.equal(expected);
    }
    const { session } = await anOffer(world, { expiresIn: 60 });
    const expiredPage = await world.afterSeconds(60, () => show(pageOf(session)));
    expect(expiredPage.status).to.equal('expired');
  });
});
