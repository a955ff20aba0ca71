import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import {
  type OfferStanding,
  offerPageId,
  readOfferPageId,
  standingOf,
} from '../../../domain/sessions/offer-page.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import { namesIn } from '../../../domain/sessions/session-search.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { aSession, aWorld } from '../administration/world.ts';

const ACME = 'acme' as TenantId;
const KEYS = ['one', 'two', 'three'].map((text) => createSecretKey(Buffer.from(text.repeat(11))));
const [FIRST, SECOND, THIRD] = KEYS as [(typeof KEYS)[0], (typeof KEYS)[0], (typeof KEYS)[0]];
const ID = 'Zm9vYmFyYmF6cXV4cXV1eA' as PublicId;

describe('The name of an offer page', () => {
  it('leads to what it was made for, also under a former key', () => {
    const page = offerPageId(FIRST, ACME, ID);
    expect(readOfferPageId([FIRST], ACME, page)).to.equal(ID);
    expect(readOfferPageId([SECOND, FIRST], ACME, page)).to.equal(ID);
    expect(readOfferPageId([SECOND, THIRD], ACME, page)).to.equal(undefined);
    expect(readOfferPageId([], ACME, page)).to.equal(undefined);
  });

  it('leads nowhere for another tenant, and where any character is another one', () => {
    const page = offerPageId(FIRST, ACME, ID);
    expect(readOfferPageId([FIRST], 'acm' as TenantId, page)).to.equal(undefined);
    // Two names that would read as one without what stands between them.
    const shifted = offerPageId(FIRST, 'acme a' as TenantId, 'b' as PublicId);
    expect(readOfferPageId([FIRST], ACME, shifted.replace(/^b/, 'a b'))).to.equal(undefined);
    for (let at = 0; at < page.length; at++) {
      for (const other of ['A', '_', '.', '%']) {
        if (page[at] === other) continue;
        const changed = page.slice(0, at) + other + page.slice(at + 1);
        expect(readOfferPageId([FIRST], ACME, changed), changed).to.equal(undefined);
      }
    }
    for (const text of [
      '',
      '.',
      ID,
      `${ID}.`,
      `${page}A`,
      `${page}=`,
      ` ${page}`,
      `${page}\n`,
      'x'.repeat(10_000),
    ]) {
      expect(readOfferPageId([FIRST], ACME, text), text.slice(0, 40)).to.equal(undefined);
    }
  });

  it('is found by who looks for its session', () => {
    const url = `https://issuer.example/acme/offer/${offerPageId(FIRST, ACME, ID)}?lang=de`;
    expect(namesIn(url).publicIds[0]).to.equal(ID);
  });
});

describe('What the page of an offer says', () => {
  const { clock } = aWorld();
  const request = { kind: 'issuance', offerUrl: 'x' } as unknown as NonNullable<Session['request']>;
  const CASES: readonly (readonly [string, Partial<Session>, OfferStanding])[] = [
    ['nobody has fetched', { status: 'active' }, 'open'],
    ['a wallet has fetched', { status: 'fetched' }, 'open'],
    ['was issued', { status: 'completed' }, 'used'],
    ['was issued in part', { status: 'fetched', issuedMask: 2 }, 'used'],
    ['a wallet has answered', { status: 'fetched', claimedAt: new Date(0) }, 'used'],
    ['nobody took in time', { status: 'active', expiresAt: new Date(0) }, 'expired'],
    ['was marked as expired', { status: 'expired' }, 'expired'],
    [
      'was cancelled',
      { status: 'failed', outcome: { failure: { code: 'cancelled', message: 'x' } } },
      'cancelled',
    ],
    ['failed for another reason', { status: 'failed', outcome: null }, 'over'],
    ['has lost what it was about', { status: 'active', request: null }, 'over'],
  ];
  for (const [what, changes, standing] of CASES) {
    it(`of one that ${what} is ${standing}`, () => {
      expect(standingOf(aSession(clock, 1, { request, ...changes }), clock.now())).to.equal(standing);
    });
  }
});
