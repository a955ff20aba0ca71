import { expect } from 'chai';
import type { TenantCaller } from '../../../application/caller.ts';
import type { CountQuery, OutcomeQuery, SessionCount } from '../../../application/ports/session-rates.ts';
import type { Store } from '../../../application/ports/store.ts';
import { CountSessions, MAX_COUNTED, SessionRatesQuery } from '../../../application/sessions/session-rates.ts';
import { cancelSession } from '../../../domain/sessions/cancellation.ts';
import { identifyRequest } from '../../../domain/sessions/idempotent-response.ts';
import { prepareRedelivery } from '../../../domain/sessions/redelivery.ts';
import { awaitsResponseCode, type Delivery, type Session, type SessionOutcome, statusAt } from '../../../domain/sessions/session.ts';
import { advance, endOverdueSession, isUnfetched, updateOutcome } from '../../../domain/sessions/session-change.ts';
import { parseSearchKeys, publicIdOf, SessionReference } from '../../../domain/sessions/session-search.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Json } from '../../../domain/shared/json.ts';
import { listedFailure, walletFailure } from '../../../domain/shared/session-failure.ts';
import { type AdministrationWorld, anAdministration, aSession, outcomeOf } from '../administrators.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const nowPlus = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const SESSION = {
  ...{ id: 's', version: 3, status: 'active', expiresAt: nowPlus(60), claimedAt: null, outcome: null },
} as unknown as Session;
const session = (change: object = {}) => ({ ...SESSION, ...change }) as Session;

const resultOf = <T>(work: () => T): T | string => {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) return `${error.code}: ${error.message}`;
    throw error;
  }
};

describe('session status', () => {
  const awaitingOutcome = { awaiting: {} };

  it('is expired by the clock, unless it ended before', () => {
    const statusOf = (change: object) => statusAt(session(change), NOW);
    expect(statusOf({})).to.equal('active');
    expect(statusOf({ expiresAt: NOW })).to.equal('expired');
    expect(statusOf({ expiresAt: NOW, status: 'completed' })).to.equal('completed');
    expect(statusOf({ expiresAt: NOW, outcome: awaitingOutcome })).to.equal('failed');
    expect(statusOf({ expiresAt: NOW, outcome: { ...awaitingOutcome, responseCodeUsedAt: 'x' } })).to.equal('expired');
    expect([awaitsResponseCode(null), awaitsResponseCode({}), awaitsResponseCode(awaitingOutcome)]).to.deep.equal([false, false, true]);
  });

  it('is expired without an outcome, and failed with one', () => {
    expect(endOverdueSession(session())).to.include({ to: 'expired', version: 3 }).and.not.have.property('outcome');
    const outcome = { awaiting: { credentials: [{ id: 'card' }] }, redirectUri: 'https://shop.example/' };
    const change = endOverdueSession(session({ outcome }));
    expect(change.to).to.equal('failed');
    expect(change.outcome).to.have.all.keys('failure', 'redirectUri');
  });

  it('changes until it is terminal', () => {
    expect(resultOf(() => advance(session(), 'complete'))).to.deep.equal({
      ...{ id: 's', anytime: ['active', 'fetched'], to: 'completed' },
    });
    expect(resultOf(() => advance(session(), 'fail', {}))).to.have.property('outcome');
    expect(resultOf(() => advance(session({ status: 'expired' }), 'fail'))).to.match(/^conflict: .*expired/);
    expect([isUnfetched(session()), isUnfetched(session({ status: 'fetched' }))]).to.deep.equal([true, false]);
  });

  it('is updated if it is still open', () => {
    expect(updateOutcome(session(), {}, 'fail').to).to.equal('failed');
    for (const change of [updateOutcome(session({ status: 'completed' }), {}, 'fail'), updateOutcome(session(), {})]) {
      expect(change).to.not.have.property('to');
      expect(change.anytime).to.include('failed');
    }
  });

  it('is cancelled before it is terminal, and before a wallet answered', () => {
    expect(resultOf(() => cancelSession(session(), NOW))).to.deep.include({ to: 'failed', unanswered: true });
    expect(resultOf(() => cancelSession(session({ expiresAt: NOW }), NOW))).to.match(/^conflict: .*already expired/);
    expect(resultOf(() => cancelSession(session({ claimedAt: NOW }), NOW))).to.match(/^conflict: a wallet has/);
  });
});

describe('webhook delivery', () => {
  const redeliveryOf = (delivery: Partial<Delivery>, outcome: object = { credentials: [{ id: 'card' }] }) => {
    const fullDelivery = { id: 'd', webhook: 'presentation', at: NOW.toISOString(), result: 'failed', ...delivery };
    return resultOf(() => prepareRedelivery(session({ outcome: { ...outcome, deliveries: [fullDelivery] } }), 'd', nowPlus(59)));
  };

  it('is repeated if it failed or its result is unknown', () => {
    const secondDelivery = redeliveryOf({ detail: 'it said no' });
    expect(secondDelivery).to.deep.equal({
      intent: { id: 'd', webhook: 'presentation', at: nowPlus(59).toISOString(), result: 'pending' },
      content: { credentials: [{ id: 'card' }] },
    });
    expect(redeliveryOf({ result: 'pending', at: nowPlus(-1).toISOString() })).to.have.property('intent');
    expect(redeliveryOf({ told: { event: 'x' } })).to.have.deep.property('content', { event: 'x' });
  });

  const rejectedCases: readonly [string, () => unknown, RegExp][] = [
    ['is unknown', () => resultOf(() => prepareRedelivery(session(), 'd', NOW)), /^not_found/],
    ['was delivered', () => redeliveryOf({ result: 'delivered' }), /^conflict: it was already delivered/],
    ['is in progress', () => redeliveryOf({ result: 'pending' }), /^conflict: it is in progress/],
    ['requested claims', () => redeliveryOf({ webhook: 'claims' }), /^conflict: the wallet no longer waits/],
    ['has a result that is not stored', () => redeliveryOf({}, {}), /^gone/],
  ];
  for (const [description, outcome, expected] of rejectedCases) {
    it(`is not repeated when it ${description}`, () => expect(outcome()).to.match(expected));
  }
});

describe('search key of a session', () => {
  const searchedPublicId = (text: string) => parseSearchKeys(text).publicIds[0];

  it('is its public id in every link for wallets, and in its address', () => {
    const address = 'https://vidimus.example/acme/request/abc-1';
    const links = [
      address,
      `openid4vp://?client_id=x&request_uri=${encodeURIComponent(address)}`,
      'https://vidimus.example/acme/response/abc-1?x=y',
      'https://vidimus.example/acme/dc-api/abc-1#z',
      'openid-credential-offer://?credential_offer_uri=https%3A%2F%2Fv.example%2Facme%2Fcredential-offer%2Fabc-1',
    ];
    for (const link of links) expect(searchedPublicId(link), link).to.equal('abc-1');
    for (const text of ['abc-1', 'https://vidimus.example/acme/session/abc-1', 'x:?request_uri=none']) {
      expect(searchedPublicId(text), text).to.equal(text);
    }
  });

  it('is the code in the redirect address of a wallet, or the code itself', () => {
    const { codeHash } = parseSearchKeys('https://wallet.example/cb?code=c-1&state=s');
    expect(parseSearchKeys('c-1').codeHash).to.equal(codeHash);
    expect(parseSearchKeys('https://wallet.example/cb').codeHash).to.not.equal(codeHash);
    expect(parseSearchKeys('n').publicIds).to.deep.equal(['n', publicIdOf('n')]);
  });

  it('is a reference without control characters', () => {
    const isAccepted = (text: string) => SessionReference.safeParse(text).success;
    expect([isAccepted('order 17'), isAccepted('Ünïcode'), isAccepted('a\nb'), isAccepted('a\u0000'), isAccepted('\ud800')]).to.deep.equal([
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('failure that a wallet reports', () => {
  it('has a code of the list, or the code in the message', () => {
    expect(walletFailure('access_denied', 'no')).to.deep.equal({ code: 'access_denied', message: 'no' });
    expect(walletFailure('odd', 'no')).to.deep.equal({ code: 'wallet_error', message: 'odd: no' });
    expect(walletFailure(undefined, 'no')).to.deep.equal({ code: 'wallet_error', message: 'no' });
  });

  it('is listed also if an earlier release stored the text of the wallet', () => {
    const failure = { code: 'malformed', message: 'x' };
    expect(listedFailure(failure)).to.deep.equal(failure);
    expect(listedFailure({ code: 'odd', message: 'x' })).to.deep.equal({ ...{ code: 'wallet_error', message: 'odd: x' } });
  });
});

describe('idempotent request', () => {
  const nameOf = (body: Json, key = 'k') => identifyRequest('client', '/issuer/offer', key, body);
  const body = { a: 1, b: [{ c: null, d: 'x' }, 2] };

  it('is identified by its content in any order of properties', () => {
    expect(nameOf({ b: [{ d: 'x', c: null }, 2], a: 1 })).to.deep.equal(nameOf(body));
    expect(nameOf({ ...body, e: undefined } as unknown as Json)).to.deep.equal(nameOf(body));
    for (const otherBody of [{ ...body, a: 2 }, { ...body, b: [2, { c: null, d: 'x' }] }, [body], 'x', null]) {
      expect(nameOf(otherBody).requestHash).to.not.equal(nameOf(body).requestHash);
    }
    expect(nameOf(['x']).requestHash).to.not.equal(nameOf({ '0': 'x' }).requestHash);
    expect(nameOf(body, 'l').id).to.not.equal(nameOf(body).id);
  });
});

const HOUR = 3_600_000;
const rejectedOutcome = (reason: string): SessionOutcome => ({
  failure: { code: 'presentation_refused', message: reason },
  report: [
    { check: 'issuer_signature', result: 'passed', section: '…' },
    { check: 'status', result: 'failed', reason, section: '…' },
    { check: 'other', result: 'failed', reason: 'told_later', section: '…' },
  ],
});
const failedOutcome = (code: 'cancelled' | 'webhook_failed' | 'malformed'): SessionOutcome => ({
  failure: { code, message: 'of Zyxwvut-Planted' },
});
const attempts = (...codes: readonly string[]): SessionOutcome => ({
  attempts: codes.map((code) => ({ at: '2026-01-01T00:00:00Z', code, reason: 'of Zyxwvut-Planted' })),
});

describe('success rate of the newest sessions', () => {
  let world: AdministrationWorld;
  beforeEach(async () => {
    world = await anAdministration();
  });

  const rates = (query: object = {}, caller: TenantCaller = world.caller(['presentation:manage']), store: Store = world.store) =>
    new CountSessions({ ...world, store }).execute(caller, SessionRatesQuery.parse(query));
  let number = 0;
  /** @param hoursAgo the age in hours */
  const addSession = async (outcome: SessionOutcome | null, hoursAgo = 1, kind: 'issuance' | 'verification' = 'verification') => {
    const createdAt = new Date(world.clock.now().getTime() - hoursAgo * HOUR);
    const session = aSession(world.clock, ++number, {
      ...{ kind, outcome, createdAt, status: outcome?.failure === undefined ? 'completed' : 'failed' },
    });
    await world.store.commit(session.tenantId, { opens: { session } }, world.clock.now());
  };

  it('is counted by kind and status for a day, or for seven days', async () => {
    await addSession(null);
    await addSession(failedOutcome('cancelled'));
    await addSession(null, 30);
    const day = await rates();
    expect(day.outcomes).to.have.deep.members([
      { kind: 'verification', status: 'completed', count: 1 },
      { kind: 'verification', status: 'failed', count: 1 },
    ]);
    expect(day.counted).to.include({ sessions: 2, isComplete: true });
    expect(day.until.getTime() - day.since.getTime()).to.equal(24 * HOUR);
    const week = await rates({ period: '7d' });
    expect(week.counted.sessions).to.equal(3);
    expect(week.until.getTime() - week.since.getTime()).to.equal(7 * 24 * HOUR);
    expect(SessionRatesQuery.safeParse({ period: '8d' }).success).to.equal(false);
  });

  it('contains the five most frequent causes, and for rejected presentations the reason of the first failed check', async () => {
    const outcomes: [SessionOutcome, number][] = [
      [failedOutcome('cancelled'), 3],
      [rejectedOutcome('status_revoked'), 5],
      [rejectedOutcome('nonce_mismatch'), 4],
      [rejectedOutcome('in words that Zyxwvut-Planted wrote'), 2],
      [failedOutcome('malformed'), 1],
      [failedOutcome('webhook_failed'), 1],
    ];
    for (const [outcome, times] of outcomes) for (let index = 0; index < times; index++) await addSession(outcome);
    const { failures, failed: sample, ...rest } = await rates();
    expect(failures).to.deep.equal([
      { code: 'presentation_refused', reason: 'status_revoked', count: 5 },
      { code: 'presentation_refused', reason: 'nonce_mismatch', count: 4 },
      { code: 'cancelled', count: 3 },
      { code: 'presentation_refused', count: 2 },
      { code: 'malformed', count: 1 },
    ]);
    expect(sample).to.include({ sessions: 16, isComplete: true });
    expect(JSON.stringify([failures, rest]), 'no personal data').not.to.include('Zyxwvut');
  });

  it('contains rejected credential requests, and deliveries by result', async () => {
    const issuer = world.caller(['issuance:offer']);
    const delivery = (result: 'delivered' | 'failed' | 'pending', webhook: 'claims' | 'notification' = 'claims') =>
      ({ id: 'x', at: '2026-01-01T00:00:00Z', webhook, result }) as const;
    await addSession(attempts('invalid_proof', 'invalid_proof', 'invalid_nonce'), 1, 'issuance');
    await addSession({ deliveries: [delivery('delivered'), delivery('failed'), delivery('pending', 'notification')] }, 1, 'issuance');
    await addSession({ deliveries: [delivery('delivered')] }, 2, 'issuance');
    const { refusals, deliveries, lookedAt } = await rates({}, issuer);
    expect(refusals).to.deep.equal([
      { code: 'invalid_proof', count: 2 },
      { code: 'invalid_nonce', count: 1 },
    ]);
    expect(deliveries).to.deep.equal([
      { webhook: 'claims', delivered: 2, pending: 0, failed: 1 },
      { webhook: 'notification', delivered: 0, pending: 1, failed: 0 },
    ]);
    expect(lookedAt).to.include({ sessions: 3, isComplete: true });
  });

  it('contains the kinds of the roles', async () => {
    await addSession(failedOutcome('malformed'), 1, 'verification');
    await addSession(attempts('invalid_proof'), 1, 'issuance');
    const issuance = await rates({}, world.caller(['issuance:manage']));
    expect([issuance.counted.sessions, issuance.failures, issuance.refusals.length]).to.deep.equal([1, [], 1]);
    const allRates = await rates({}, world.caller(['issuance:manage', 'presentation:request']));
    expect([allRates.counted.sessions, allRates.failures.length, allRates.refusals.length]).to.deep.equal([2, 1, 1]);
  });

  for (const rights of [{ allowedIssuanceConfigs: ['card'] }, { allowedPresentationConfigs: ['age'] }])
    it(`is not returned to a client with ${Object.keys(rights)}`, async () => {
      expect(await outcomeOf(rates({}, world.caller(['presentation:manage'], rights)))).to.equal('forbidden');
    });

  /** A tenant with more sessions of each kind than the sample. */
  function tenantWithManySessions(outcome: SessionOutcome) {
    const queries: { counts: CountQuery[]; outcomes: OutcomeQuery[] } = { counts: [], outcomes: [] };
    const counts: SessionCount[] = [
      { kind: 'verification', status: 'failed', count: MAX_COUNTED, oldest: new Date(world.clock.now().getTime() - 1_000) },
    ];
    const store = {
      read: () => ({
        sessionCounts: async (query: CountQuery) => {
          queries.counts.push(query);
          return { counts, from: counts[0]?.oldest };
        },
        sessionOutcomes: async (query: OutcomeQuery) => {
          queries.outcomes.push(query);
          return Array.from({ length: query.limit }, (_, index) => ({
            ...{ id: `${queries.outcomes.length}-${index}`, createdAt: world.clock.now(), outcome },
          }));
        },
      }),
    } as unknown as Store;
    return { store, queries };
  }

  it('is computed from the newest sessions if there are many, and is marked as incomplete', async () => {
    const { store, queries } = tenantWithManySessions(failedOutcome('malformed'));
    const { counted, failed: sample, lookedAt, failures } = await rates({}, undefined, store);
    expect([counted.isComplete, sample.isComplete, lookedAt.isComplete]).to.deep.equal([false, false, false]);
    expect([sample.sessions, lookedAt.sessions]).to.deep.equal([1_000, 2_000]);
    expect(failures).to.deep.equal([{ code: 'malformed', count: 1_000 }]);
    expect(queries.counts.map(({ limit }) => limit)).to.deep.equal([MAX_COUNTED]);
    for (const { since, limit } of queries.outcomes) {
      expect(since, 'the oldest counted session').to.deep.equal(counted.from);
      expect(limit).to.equal(25);
    }
  });

  it('decrypts fewer sessions if each has megabytes', async () => {
    const { store, queries } = tenantWithManySessions({ credentials: [{ portrait: 'x'.repeat(2_000_000) }] });
    const { lookedAt } = await rates({}, undefined, store);
    expect(lookedAt).to.include({ sessions: 25, isComplete: false });
    expect(queries.outcomes).to.have.length(2);
  });
});
