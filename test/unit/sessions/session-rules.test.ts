import { expect } from 'chai';
import { cancelled } from '../../../domain/sessions/cancellation.ts';
import { listedFailure, walletFailure } from '../../../domain/sessions/failure-code.ts';
import { nameAnswer } from '../../../domain/sessions/kept-answer.ts';
import { redelivery } from '../../../domain/sessions/redelivery.ts';
import {
  awaitsResponseCode,
  type Delivery,
  type Session,
  statusAt,
} from '../../../domain/sessions/session.ts';
import { advance, isUnfetched, noted, overdue } from '../../../domain/sessions/session-change.ts';
import { namesIn, publicIdOf, SessionReference } from '../../../domain/sessions/session-search.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Json } from '../../../domain/shared/json.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const SESSION = {
  ...{ id: 's', version: 3, status: 'active', expiresAt: at(60), claimedAt: null, outcome: null },
} as unknown as Session;
const session = (change: object = {}) => ({ ...SESSION, ...change }) as Session;

const ended = <T>(work: () => T): T | string => {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) return `${error.code}: ${error.message}`;
    throw error;
  }
};

describe('The status of a session', () => {
  const waiting = { awaiting: {} };

  it('is what the clock says, unless it had ended before', () => {
    const told = (change: object) => statusAt(session(change), NOW);
    expect(told({})).to.equal('active');
    expect(told({ expiresAt: NOW })).to.equal('expired');
    expect(told({ expiresAt: NOW, status: 'completed' })).to.equal('completed');
    expect(told({ expiresAt: NOW, outcome: waiting })).to.equal('failed');
    expect(told({ expiresAt: NOW, outcome: { ...waiting, responseCodeUsedAt: 'x' } })).to.equal('expired');
    expect([awaitsResponseCode(null), awaitsResponseCode({}), awaitsResponseCode(waiting)]).to.deep.equal([
      false,
      false,
      true,
    ]);
  });

  it('is written down as such: without what nobody came for', () => {
    expect(overdue(session())).to.include({ to: 'expired', version: 3 }).and.not.have.property('outcome');
    const outcome = { awaiting: { credentials: [{ id: 'card' }] }, redirectUri: 'https://shop.example/' };
    const change = overdue(session({ outcome }));
    expect(change.to).to.equal('failed');
    expect(change.outcome).to.have.all.keys('failure', 'redirectUri');
  });

  it('changes as long as it has not ended', () => {
    expect(ended(() => advance(session(), 'complete'))).to.deep.equal({
      ...{ id: 's', anytime: ['active', 'fetched'], to: 'completed' },
    });
    expect(ended(() => advance(session(), 'fail', {}))).to.have.property('outcome');
    expect(ended(() => advance(session({ status: 'expired' }), 'fail'))).to.match(/^conflict: .*expired/);
    expect([isUnfetched(session()), isUnfetched(session({ status: 'fetched' }))]).to.deep.equal([
      true,
      false,
    ]);
  });

  it('moves with what is noted of it where it still can', () => {
    expect(noted(session(), {}, 'fail').to).to.equal('failed');
    for (const change of [noted(session({ status: 'completed' }), {}, 'fail'), noted(session(), {})]) {
      expect(change).to.not.have.property('to');
      expect(change.anytime).to.include('failed');
    }
  });

  it('is cancelled before it has ended, and before a wallet answered', () => {
    expect(ended(() => cancelled(session(), NOW))).to.deep.include({ to: 'failed', unanswered: true });
    expect(ended(() => cancelled(session({ expiresAt: NOW }), NOW))).to.match(/^conflict: .*expired already/);
    expect(ended(() => cancelled(session({ claimedAt: NOW }), NOW))).to.match(/^conflict: a wallet has/);
  });
});

describe('A delivery', () => {
  const made = (delivery: Partial<Delivery>, outcome: object = { credentials: [{ id: 'card' }] }) => {
    const whole = { id: 'd', webhook: 'presentation', at: NOW.toISOString(), result: 'failed', ...delivery };
    return ended(() => redelivery(session({ outcome: { ...outcome, deliveries: [whole] } }), 'd', at(59)));
  };

  it('is made again when it failed, or nobody knows what became of it', () => {
    const again = made({ detail: 'it said no' });
    expect(again).to.deep.equal({
      intent: { id: 'd', webhook: 'presentation', at: at(59).toISOString(), result: 'pending' },
      content: { credentials: [{ id: 'card' }] },
    });
    expect(made({ result: 'pending', at: at(-1).toISOString() })).to.have.property('intent');
    expect(made({ told: { event: 'x' } })).to.have.deep.property('content', { event: 'x' });
  });

  const refused: readonly [string, () => unknown, RegExp][] = [
    ['nobody knows', () => ended(() => redelivery(session(), 'd', NOW)), /^not_found/],
    ['was delivered', () => made({ result: 'delivered' }), /^conflict: it was delivered/],
    ['is under way', () => made({ result: 'pending' }), /^conflict: it is under way/],
    ['asked for claims', () => made({ webhook: 'claims' }), /^conflict: a wallet waited/],
    ['told what is not kept', () => made({}, {}), /^gone/],
  ];
  for (const [what, outcome, expected] of refused) {
    it(`is not made again where it ${what}`, () => expect(outcome()).to.match(expected));
  }
});

describe('What a session is found by', () => {
  const own = (text: string) => namesIn(text).publicIds[0];

  it('is its public id in every link that wallets are given, and in its address', () => {
    const address = 'https://vidimus.example/acme/request/abc-1';
    const links = [
      address,
      `openid4vp://?client_id=x&request_uri=${encodeURIComponent(address)}`,
      'https://vidimus.example/acme/response/abc-1?x=y',
      'https://vidimus.example/acme/dc-api/abc-1#z',
      'openid-credential-offer://?credential_offer_uri=https%3A%2F%2Fv.example%2Facme%2Fcredential-offer%2Fabc-1',
    ];
    for (const link of links) expect(own(link), link).to.equal('abc-1');
    for (const text of ['abc-1', 'https://vidimus.example/acme/session/abc-1', 'x:?request_uri=none']) {
      expect(own(text), text).to.equal(text);
    }
  });

  it('is the code in the address to which a wallet is sent back, or the code itself', () => {
    const { codeHash } = namesIn('https://wallet.example/cb?code=c-1&state=s');
    expect(namesIn('c-1').codeHash).to.equal(codeHash);
    expect(namesIn('https://wallet.example/cb').codeHash).to.not.equal(codeHash);
    expect(namesIn('n').publicIds).to.deep.equal(['n', publicIdOf('n')]);
  });

  it('is a reference without control characters', () => {
    const takes = (text: string) => SessionReference.safeParse(text).success;
    expect([
      takes('order 17'),
      takes('Ünïcode'),
      takes('a\nb'),
      takes('a\u0000'),
      takes('\ud800'),
    ]).to.deep.equal([true, true, false, false, false]);
  });
});

describe('A failure that a wallet reports', () => {
  it('is one of the list, or stands in the message', () => {
    expect(walletFailure('access_denied', 'no')).to.deep.equal({ code: 'access_denied', message: 'no' });
    expect(walletFailure('odd', 'no')).to.deep.equal({ code: 'wallet_error', message: 'odd: no' });
    expect(walletFailure(undefined, 'no')).to.deep.equal({ code: 'wallet_error', message: 'no' });
  });

  it('is listed also where an earlier release stored the words of the wallet', () => {
    const kept = { code: 'malformed', message: 'x' };
    expect(listedFailure(kept)).to.deep.equal(kept);
    expect(listedFailure({ code: 'odd', message: 'x' })).to.deep.equal({
      ...{ code: 'wallet_error', message: 'odd: x' },
    });
  });
});

describe('A request that comes again', () => {
  const name = (body: Json, key = 'k') => nameAnswer('client', '/issuer/offer', key, body);
  const body = { a: 1, b: [{ c: null, d: 'x' }, 2] };

  it('is the same in whatever order its members stand, and no other one', () => {
    expect(name({ b: [{ d: 'x', c: null }, 2], a: 1 })).to.deep.equal(name(body));
    expect(name({ ...body, e: undefined } as unknown as Json)).to.deep.equal(name(body));
    for (const other of [{ ...body, a: 2 }, { ...body, b: [2, { c: null, d: 'x' }] }, [body], 'x', null]) {
      expect(name(other).requestHash).to.not.equal(name(body).requestHash);
    }
    expect(name(['x']).requestHash).to.not.equal(name({ '0': 'x' }).requestHash);
    expect(name(body, 'l').id).to.not.equal(name(body).id);
  });
});
