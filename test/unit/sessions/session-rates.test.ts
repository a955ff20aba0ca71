import { expect } from 'chai';
import type { TenantCaller } from '../../../application/caller.ts';
import type { CountQuery, OutcomeQuery, SessionCount } from '../../../application/ports/session-rates.ts';
import type { Store } from '../../../application/ports/store.ts';
import {
  CountSessions,
  MOST_COUNTED,
  SessionRatesQuery,
} from '../../../application/sessions/session-rates.ts';
import type { SessionOutcome } from '../../../domain/sessions/session.ts';
import { type AdministrationWorld, anAdministration, endOf } from '../administration/kit.ts';
import { aSession } from '../administration/world.ts';

const HOUR = 3_600_000;
const refused = (reason: string): SessionOutcome => ({
  failure: { code: 'presentation_refused', message: reason },
  report: [
    { check: 'issuer_signature', result: 'passed', section: '…' },
    { check: 'status', result: 'failed', reason, section: '…' },
    { check: 'other', result: 'failed', reason: 'told_later', section: '…' },
  ],
});
const failed = (code: 'cancelled' | 'webhook_failed' | 'malformed'): SessionOutcome => ({
  failure: { code, message: 'of Zyxwvut-Planted' },
});
const attempts = (...codes: readonly string[]): SessionOutcome => ({
  attempts: codes.map((code) => ({ at: '2026-01-01T00:00:00Z', code, reason: 'of Zyxwvut-Planted' })),
});

describe('How the newest sessions went', () => {
  let world: AdministrationWorld;
  beforeEach(async () => {
    world = await anAdministration();
  });

  const rates = (
    query: object = {},
    caller: TenantCaller = world.caller(['presentation:manage']),
    store: Store = world.store,
  ) => new CountSessions({ ...world, store }).execute(caller, SessionRatesQuery.parse(query));
  let number = 0;
  /** @param ago hours. */
  const has = async (
    outcome: SessionOutcome | null,
    ago = 1,
    kind: 'issuance' | 'verification' = 'verification',
  ) => {
    const createdAt = new Date(world.clock.now().getTime() - ago * HOUR);
    const session = aSession(world.clock, ++number, {
      ...{ kind, outcome, createdAt, status: outcome?.failure === undefined ? 'completed' : 'failed' },
    });
    await world.store.commit(session.tenantId, { opens: { session } }, world.clock.now());
  };

  it('is told by kind and status for a day, or for seven', async () => {
    await has(null);
    await has(failed('cancelled'));
    await has(null, 30);
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

  it('has the five most frequent causes, of refused presentations with the reason of the first failed check', async () => {
    const many: [SessionOutcome, number][] = [
      [failed('cancelled'), 3],
      [refused('status_revoked'), 5],
      [refused('nonce_mismatch'), 4],
      [refused('in words that Zyxwvut-Planted wrote'), 2],
      [failed('malformed'), 1],
      [failed('webhook_failed'), 1],
    ];
    for (const [outcome, times] of many) for (let turn = 0; turn < times; turn++) await has(outcome);
    const { failures, failed: sample, ...rest } = await rates();
    expect(failures).to.deep.equal([
      { code: 'presentation_refused', reason: 'status_revoked', count: 5 },
      { code: 'presentation_refused', reason: 'nonce_mismatch', count: 4 },
      { code: 'cancelled', count: 3 },
      { code: 'presentation_refused', count: 2 },
      { code: 'malformed', count: 1 },
    ]);
    expect(sample).to.include({ sessions: 16, isComplete: true });
    expect(JSON.stringify([failures, rest]), 'nothing of a person').not.to.include('Zyxwvut');
  });

  it('has the refusals of wallets that came to collect, and deliveries by what came of them', async () => {
    const issuer = world.caller(['issuance:offer']);
    const delivery = (
      result: 'delivered' | 'failed' | 'pending',
      webhook: 'claims' | 'notification' = 'claims',
    ) => ({ id: 'x', at: '2026-01-01T00:00:00Z', webhook, result }) as const;
    await has(attempts('invalid_proof', 'invalid_proof', 'invalid_nonce'), 1, 'issuance');
    await has(
      { deliveries: [delivery('delivered'), delivery('failed'), delivery('pending', 'notification')] },
      1,
      'issuance',
    );
    await has({ deliveries: [delivery('delivered')] }, 2, 'issuance');
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

  it('is about the kinds that the roles are about', async () => {
    await has(failed('malformed'), 1, 'verification');
    await has(attempts('invalid_proof'), 1, 'issuance');
    const issuance = await rates({}, world.caller(['issuance:manage']));
    expect([issuance.counted.sessions, issuance.failures, issuance.refusals.length]).to.deep.equal([
      1,
      [],
      1,
    ]);
    const both = await rates({}, world.caller(['issuance:manage', 'presentation:request']));
    expect([both.counted.sessions, both.failures.length, both.refusals.length]).to.deep.equal([2, 1, 1]);
  });

  for (const rights of [{ allowedIssuanceConfigs: ['card'] }, { allowedPresentationConfigs: ['age'] }])
    it(`is refused to a client with ${Object.keys(rights)}`, async () => {
      expect(await endOf(rates({}, world.caller(['presentation:manage'], rights)))).to.equal('forbidden');
    });

  /** A tenant with more sessions of each kind than anybody looks at. */
  function endless(outcome: SessionOutcome) {
    const asked: { counts: CountQuery[]; outcomes: OutcomeQuery[] } = { counts: [], outcomes: [] };
    const counts: SessionCount[] = [
      {
        kind: 'verification',
        status: 'failed',
        count: MOST_COUNTED,
        oldest: new Date(world.clock.now().getTime() - 1_000),
      },
    ];
    const store = {
      read: () => ({
        sessionCounts: async (query: CountQuery) => {
          asked.counts.push(query);
          return { counts, from: counts[0]?.oldest };
        },
        sessionOutcomes: async (query: OutcomeQuery) => {
          asked.outcomes.push(query);
          return Array.from({ length: query.limit }, (_, index) => ({
            ...{ id: `${asked.outcomes.length}-${index}`, createdAt: world.clock.now(), outcome },
          }));
        },
      }),
    } as unknown as Store;
    return { store, asked };
  }

  it('is that of the newest where there are many, says so, and looks through no others', async () => {
    const { store, asked } = endless(failed('malformed'));
    const { counted, failed: sample, lookedAt, failures } = await rates({}, undefined, store);
    expect([counted.isComplete, sample.isComplete, lookedAt.isComplete]).to.deep.equal([false, false, false]);
    expect([sample.sessions, lookedAt.sessions]).to.deep.equal([1_000, 2_000]);
    expect(failures).to.deep.equal([{ code: 'malformed', count: 1_000 }]);
    expect(asked.counts.map(({ limit }) => limit)).to.deep.equal([MOST_COUNTED]);
    for (const { since, limit } of asked.outcomes) {
      expect(since, 'the oldest that was counted').to.deep.equal(counted.from);
      expect(limit).to.equal(25);
    }
  });

  it('opens fewer where each holds megabytes', async () => {
    const { store, asked } = endless({ credentials: [{ portrait: 'x'.repeat(2_000_000) }] });
    const { lookedAt } = await rates({}, undefined, store);
    expect(lookedAt).to.include({ sessions: 25, isComplete: false });
    expect(asked.outcomes).to.have.length(2);
  });
});
