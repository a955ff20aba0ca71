import { expect } from 'chai';
import {
  assertPending,
  type DeferredTransaction,
  deferredStatusAt,
} from '../../../domain/issuance/deferred.ts';
import { claim, issuable, offerOver, spent } from '../../../domain/issuance/issuing.ts';
import { noteNotification, readNotification } from '../../../domain/issuance/notification.ts';
import { renewableAfterwards, renews } from '../../../domain/issuance/renewal.ts';
import type { IssuanceRequest, PostedVerification, Session } from '../../../domain/sessions/session.ts';
import { Failure, OperatorReason } from '../../../domain/shared/failure.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);

const REQUEST: IssuanceRequest = {
  ...{ kind: 'issuance', offerRequest: {}, offer: {}, offerUrl: '' },
  credentialClaims: { pass: { type: 'inline', claims: {} } },
};
/** Of two configurations, of which the first was issued. */
const SESSION = {
  ...{ id: 's', kind: 'issuance', status: 'active', configurationIds: ['card', 'pass'], issuedMask: 1 },
  ...{ createdAt: NOW, expiresAt: at(60), request: REQUEST, outcome: null },
} as unknown as Session;

const ended = (work: () => unknown) => {
  try {
    work();
    return 'done';
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
};

it('an offer that is over says to the operator alone why, where that is another reason', () => {
  expect(offerOver().cause).to.equal(undefined);
  const { message, cause } = offerOver('it gave what it may');
  expect([message, cause instanceof OperatorReason, String(cause)]).to.deep.equal([
    ...['the offer is over', true, 'Error: it gave what it may'],
  ]);
});

describe('A session of which a wallet wants a credential', () => {
  const asked = (change: Partial<Session>, id = 'card', grantId?: string, barred = 0) =>
    ended(() => issuable({ ...SESSION, ...change }, id, NOW, grantId, { issued: 0, barred }));
  const cases: readonly [string, () => string, string][] = [
    ['is right while it lasts', () => asked({}), 'done'],
    ['is right once it has completed', () => asked({ status: 'completed' }), 'done'],
    ['is over when its time is', () => asked({ expiresAt: NOW }), 'the offer is over'],
    ['is over when it failed', () => asked({ status: 'failed' }), 'the offer is over'],
    ['may be renewed after its time', () => asked({ expiresAt: NOW }, 'card', 'g'), 'done'],
    [
      'renews nothing that it never issued',
      () => asked({ expiresAt: NOW }, 'pass', 'g'),
      'the offer is over',
    ],
    [
      'renews nothing for a token of another server',
      () => asked({ expiresAt: NOW }, 'card'),
      'the offer is over',
    ],
    ['is no other one', () => asked({}, 'else'), 'the offer does not cover this credential'],
    [
      'is no verification',
      () => asked({ request: { kind: 'verification' } as PostedVerification }),
      'the offer does not cover this credential',
    ],
    ['of which all was removed may be renewed', () => asked({ request: null }, 'card', 'g'), 'done'],
    [
      'of which all was removed issues nothing new',
      () => asked({ request: null }, 'pass', 'g'),
      'the offer does not cover this credential',
    ],
    ['is over for what was revoked', () => asked({}, 'card', undefined, 1), 'the offer is over'],
    ['is not over for the rest', () => asked({}, 'pass', undefined, 1), 'done'],
  ];
  for (const [what, outcome, expected] of cases) it(what, () => expect(outcome()).to.equal(expected));

  it('is there', () =>
    expect(ended(() => issuable(undefined, 'card', NOW, 'g'))).to.equal('the offer is over'));

  it('has to run in its time, and counts for renewals after it', () => {
    const claimed = (expiresAt: Date) =>
      claim({ ...SESSION, expiresAt }, 'card', spent([], 'g'), {}, NOW).session;
    expect(claimed(at(60))).to.have.property('running');
    expect(claimed(NOW)).to.have.property('anytime').that.includes('expired');
  });

  it('rests on a grant where the token does', () => {
    expect(spent([], undefined)).to.deep.equal({ uses: [] });
    expect(spent([], 'g')).to.deep.equal({ uses: [], unrevoked: 'g' });
  });

  it('can be renewed afterwards for what does not come from its offer', () => {
    const of = (change: Partial<Session>) => renewableAfterwards({ ...SESSION, issuedMask: 3, ...change });
    expect(of({})).to.equal(1);
    expect(of({ request: null })).to.equal(3);
    expect(of({ request: { kind: 'verification' } as PostedVerification })).to.equal(0);
    expect([renews(SESSION, 'card', 'g'), renews(SESSION, 'card', undefined)]).to.deep.equal([true, false]);
  });
});

describe('A deferred transaction', () => {
  const statuses = ['pending', 'ready', 'retrieved', 'failed'] as const;

  it('is expired after its end, unless it was over before', () => {
    const told = (expiresAt: Date) => statuses.map((status) => deferredStatusAt({ status, expiresAt }, NOW));
    expect(told(at(1))).to.deep.equal(statuses);
    expect(told(NOW)).to.deep.equal(['expired', 'expired', 'retrieved', 'failed']);
  });

  it('is decided while it is pending', () => {
    const decided = (status: string, expiresAt = at(1)) =>
      ended(() => assertPending({ status, expiresAt } as DeferredTransaction, NOW));
    expect(decided('pending')).to.equal('done');
    expect(decided('pending', NOW)).to.equal('the transaction is expired');
    expect(decided('ready')).to.equal('the transaction is ready');
  });
});

describe('What a wallet tells of a credential', () => {
  const read = (body: object, type: string | undefined = 'application/json') =>
    ended(() => readNotification(type, Buffer.from(JSON.stringify(body))));
  const good = { notification_id: 'n', event: 'credential_accepted' };

  it('is an event of a credential, with words or without', () => {
    const whole = { ...good, notification_id: 'n'.repeat(200), event_description: 'x'.repeat(1000), more: 1 };
    expect([read(good), read(whole), read(good, 'Application/JSON; charset=utf-8')]).to.deep.equal(
      Array(3).fill('done'),
    );
  });

  const refused: readonly [string, object, string?][] = [
    ['another type of body', good, 'text/plain'],
    ['no identifier', { event: 'credential_accepted' }],
    ['an empty identifier', { ...good, notification_id: '' }],
    ['an identifier that is no text', { ...good, notification_id: 7 }],
    ['an identifier that is too long', { ...good, notification_id: 'n'.repeat(201) }],
    ['an unknown event', { ...good, event: 'credential_lost' }],
    ['words that are no text', { ...good, event_description: 7 }],
    ['words in a list', { ...good, event_description: ['x'] }],
    ['words that are too long', { ...good, event_description: 'x'.repeat(1001) }],
    ['words with a quote', { ...good, event_description: 'a "b"' }],
  ];
  for (const [what, body, type] of refused) {
    it(`is refused with ${what}`, () => expect(read(body, type)).to.not.equal('done'));
  }

  it('is noted once, and not without end', () => {
    const told = (id: string, event: 'credential_accepted' | 'credential_deleted') =>
      ({ id, event, credentialConfigurationId: 'card', at: '' }) as const;
    const first = noteNotification([], told('n', 'credential_accepted')) ?? [];
    expect(noteNotification(first, told('n', 'credential_accepted'))).to.equal(undefined);
    expect(noteNotification(first, told('n', 'credential_deleted'))).to.have.length(2);
    expect(noteNotification(first, told('m', 'credential_accepted'))).to.have.length(2);
    const many = Array.from({ length: 100 }, (_, i) => ({ ...told(`${i}`, 'credential_deleted') }));
    expect(noteNotification(many, told('n', 'credential_accepted'))).to.equal(undefined);
    expect(noteNotification(many.slice(1), told('n', 'credential_accepted'))).to.have.length(100);
  });
});
