import { expect } from 'chai';
import sinon from 'sinon';
import type { WalletRequest } from '../../../application/issuance/issue-credential.ts';
import { hashCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { assertPending, type DeferredTransaction, deferredStatusAt } from '../../../domain/issuance/deferred.ts';
import { claim, offerEndedError, requestConsumption, requireIssuable } from '../../../domain/issuance/issuing.ts';
import { appendNotification, parseNotification } from '../../../domain/issuance/notification.ts';
import { mayRenew, renewableMask } from '../../../domain/issuance/renewal.ts';
import type { IssuanceRequest, Session } from '../../../domain/sessions/session.ts';
import { Failure, type FailureCode, OperatorReason } from '../../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { PostedVerification } from '../../../domain/verification/verification-request.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, endOf, type Offered, Wallet, WalletWorld } from '../wallet-kit.ts';

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

it('an ended offer returns a different reason to the operator only', () => {
  expect(offerEndedError().cause).to.equal(undefined);
  const { message, cause } = offerEndedError('it gave what it may');
  expect([message, cause instanceof OperatorReason, String(cause)]).to.deep.equal([
    ...['the offer has ended', true, 'Error: it gave what it may'],
  ]);
});

describe('session of a credential request', () => {
  const asked = (change: Partial<Session>, id = 'card', grantId?: string, barred = 0) =>
    ended(() => requireIssuable({ ...SESSION, ...change }, id, NOW, grantId, { issued: 0, barred }));
  const cases: readonly [string, () => string, string][] = [
    ['is right while it lasts', () => asked({}), 'done'],
    ['is right once it has completed', () => asked({ status: 'completed' }), 'done'],
    ['is over when its time is', () => asked({ expiresAt: NOW }), 'the offer has ended'],
    ['is over when it failed', () => asked({ status: 'failed' }), 'the offer has ended'],
    ['may be renewed after its expiry', () => asked({ expiresAt: NOW }, 'card', 'g'), 'done'],
    ['renews nothing that it never issued', () => asked({ expiresAt: NOW }, 'pass', 'g'), 'the offer has ended'],
    ['renews nothing for a token of another server', () => asked({ expiresAt: NOW }, 'card'), 'the offer has ended'],
    ['is no other one', () => asked({}, 'else'), 'the offer does not cover this credential'],
    [
      'is not a verification',
      () => asked({ request: { kind: 'verification' } as PostedVerification }),
      'the offer does not cover this credential',
    ],
    ['of which all was removed may be renewed', () => asked({ request: null }, 'card', 'g'), 'done'],
    [
      'of which all was removed issues nothing new',
      () => asked({ request: null }, 'pass', 'g'),
      'the offer does not cover this credential',
    ],
    ['is over for what was revoked', () => asked({}, 'card', undefined, 1), 'the offer has ended'],
    ['is not over for the rest', () => asked({}, 'pass', undefined, 1), 'done'],
  ];
  for (const [what, outcome, expected] of cases) it(what, () => expect(outcome()).to.equal(expected));

  it('is required', () => expect(ended(() => requireIssuable(undefined, 'card', NOW, 'g'))).to.equal('the offer has ended'));

  it('must be completed within its lifetime, and allows renewals after it', () => {
    const claimed = (expiresAt: Date) => claim({ ...SESSION, expiresAt }, 'card', requestConsumption([], 'g'), {}, NOW).session;
    expect(claimed(at(60))).to.have.property('running');
    expect(claimed(NOW)).to.have.property('anytime').that.includes('expired');
  });

  it('is checked against the grant of its token, if there is one', () => {
    expect(requestConsumption([], undefined)).to.deep.equal({ uses: [] });
    expect(requestConsumption([], 'g')).to.deep.equal({ uses: [], unrevoked: 'g' });
  });

  it('can be renewed after its end for credentials that do not come from its offer', () => {
    const of = (change: Partial<Session>) => renewableMask({ ...SESSION, issuedMask: 3, ...change });
    expect(of({})).to.equal(1);
    expect(of({ request: null })).to.equal(3);
    expect(of({ request: { kind: 'verification' } as PostedVerification })).to.equal(0);
    expect([mayRenew(SESSION, 'card', 'g'), mayRenew(SESSION, 'card', undefined)]).to.deep.equal([true, false]);
  });
});

describe('deferred transaction', () => {
  const statuses = ['pending', 'ready', 'retrieved', 'failed'] as const;

  it('is expired after its end, unless it ended before', () => {
    const told = (expiresAt: Date) => statuses.map((status) => deferredStatusAt({ status, expiresAt }, NOW));
    expect(told(at(1))).to.deep.equal(statuses);
    expect(told(NOW)).to.deep.equal(['expired', 'expired', 'retrieved', 'failed']);
  });

  it('is decided while it is pending', () => {
    const decided = (status: string, expiresAt = at(1)) => ended(() => assertPending({ status, expiresAt } as DeferredTransaction, NOW));
    expect(decided('pending')).to.equal('done');
    expect(decided('pending', NOW)).to.equal('the transaction is expired');
    expect(decided('ready')).to.equal('the transaction is ready');
  });
});

describe('wallet notification', () => {
  const read = (body: object, type: string | undefined = 'application/json') =>
    ended(() => parseNotification(type, Buffer.from(JSON.stringify(body))));
  const good = { notification_id: 'n', event: 'credential_accepted' };

  it('contains an event of a credential, with or without a description', () => {
    const whole = { ...good, notification_id: 'n'.repeat(200), event_description: 'x'.repeat(1000), more: 1 };
    expect([read(good), read(whole), read(good, 'Application/JSON; charset=utf-8')]).to.deep.equal(Array(3).fill('done'));
  });

  const refused: readonly [string, object, string?][] = [
    ['another type of body', good, 'text/plain'],
    ['no identifier', { event: 'credential_accepted' }],
    ['an empty identifier', { ...good, notification_id: '' }],
    ['an identifier that is not a string', { ...good, notification_id: 7 }],
    ['an identifier that is too long', { ...good, notification_id: 'n'.repeat(201) }],
    ['an unknown event', { ...good, event: 'credential_lost' }],
    ['words that are not a string', { ...good, event_description: 7 }],
    ['words in a list', { ...good, event_description: ['x'] }],
    ['words that are too long', { ...good, event_description: 'x'.repeat(1001) }],
    ['words with a quote', { ...good, event_description: 'a "b"' }],
  ];
  for (const [what, body, type] of refused) {
    it(`is rejected with ${what}`, () => expect(read(body, type)).to.not.equal('done'));
  }

  it('is recorded once, and limited in number', () => {
    const told = (id: string, event: 'credential_accepted' | 'credential_deleted') =>
      ({ id, event, credentialConfigurationId: 'card', at: '' }) as const;
    const first = appendNotification([], told('n', 'credential_accepted')) ?? [];
    expect(appendNotification(first, told('n', 'credential_accepted'))).to.equal(undefined);
    expect(appendNotification(first, told('n', 'credential_deleted'))).to.have.length(2);
    expect(appendNotification(first, told('m', 'credential_accepted'))).to.have.length(2);
    const many = Array.from({ length: 100 }, (_, i) => ({ ...told(`${i}`, 'credential_deleted') }));
    expect(appendNotification(many, told('n', 'credential_accepted'))).to.equal(undefined);
    expect(appendNotification(many.slice(1), told('n', 'credential_accepted'))).to.have.length(100);
  });
});

const NOTIFY = { notifyWebhook: { url: 'https://backend.example/notify' } };

describe('ReceiveNotification', () => {
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
    world.webhooks.beforeAnswer = async () => {};
  });
  afterEach(() => sinon.restore());

  type Given = { readonly session: SessionId; readonly token: string; readonly id: string };
  const issued = async (offer: object = {}, configurationId = 'card'): Promise<Given> => {
    const ids = { credentialConfigurationIds: [configurationId] };
    const offered = await anOffer(world, { ...ids, ...offer });
    const token = await wallet.token(offered);
    const wanted = { credential_configuration_id: configurationId };
    const { notification_id: id } = await wallet.issue(token, wanted);
    return { session: offered.session.id, token, id };
  };
  const asking = ({ token, id }: Given, changes: object = {}, more: Partial<WalletRequest> = {}) =>
    wallet.asking(token, 'notification', { notification_id: id, event: 'credential_accepted', ...changes }, more);
  const execute = (request: WalletRequest, tenantId = ACME) => world.receiveNotification.execute(tenantId, request);
  const outcome = async ({ session }: Given) => (await world.session(session)).outcome;

  it('records the event of the credential', async () => {
    const given = await issued();
    await execute(asking(given, { event_description: 'it is in' }));
    expect(await outcome(given)).to.deep.equal({
      notifications: [
        {
          id: given.id,
          event: 'credential_accepted',
          eventDescription: 'it is in',
          credentialConfigurationId: 'card',
          at: world.clock.now().toISOString(),
        },
      ],
    });
    expect((await world.session(given.session)).status).to.equal('completed');
    expect(world.webhooks.calls).to.deep.equal([]);
  });

  it('is idempotent', async () => {
    const given = await issued(NOTIFY);
    await execute(asking(given));
    const noted = await outcome(given);
    await execute(asking(given));
    expect(await outcome(given)).to.deep.equal(noted);
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('calls the webhook, and records the call before and after it', async () => {
    const given = await issued(NOTIFY);
    const results: unknown[] = [];
    const note = async () => results.push((await outcome(given))?.deliveries?.map(({ result }) => result));
    world.webhooks.beforeAnswer = async () => {
      await note();
    };
    await execute(asking(given, { event: 'credential_deleted' }));
    await note();
    expect(results).to.deep.equal([['pending'], ['delivered']]);
    const notification = { id: given.id, event: 'credential_deleted', credentialConfigurationId: 'card' };
    expect(world.webhooks.calls.map(({ body }) => body)).to.deep.equal([{ session: given.session, notification }]);
  });

  it('calls the webhook of the configuration if the offer names none', async () => {
    await execute(asking(await issued({}, 'told')));
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('succeeds although the backend fails', async () => {
    const given = await issued(NOTIFY);
    world.webhooks.answer = new WebhookError('timeout', 'no answer in time');
    expect(await endOf(execute(asking(given)))).to.equal('done');
    const [delivery] = (await outcome(given))?.deliveries ?? [];
    expect(delivery).to.include({ webhook: 'notification', result: 'failed', detail: 'no answer in time' });
  });

  it('accepts the notification in a process with an outdated configuration', async () => {
    const given = await issued();
    await world.issues();
    const commit = sinon.spy(world.store, 'commit');
    await execute(asking(given));
    expect(await outcome(given)).to.have.property('notifications');
    expect(commit.callCount).to.equal(3);
  });

  type Refused = readonly [what: string, code: FailureCode, ask: (given: Given) => WalletRequest];
  const refusals: readonly Refused[] = [
    ['no token', 'missing_token', (given) => asking(given, {}, { wallet: { authorization: undefined, dpop: [] } })],
    [
      'a proof for another address',
      'invalid_dpop_proof',
      (given) => ({ ...asking(given), wallet: wallet.asking(given.token, 'credential', {}).wallet }),
    ],
    ['a form', 'invalid_notification_request', (given) => asking(given, {}, { contentType: 'text/plain' })],
    ['broken JSON', 'invalid_notification_request', (given) => asking(given, {}, { body: Buffer.from('{') })],
    ['no id', 'invalid_notification_request', (given) => asking(given, { notification_id: undefined })],
    ['an unknown event', 'invalid_notification_request', (given) => asking(given, { event: 'credential_lost' })],
    ['words with quotes', 'invalid_notification_request', (given) => asking(given, { event_description: '"' })],
    ['an unknown id', 'invalid_notification_id', (given) => asking(given, { notification_id: 'none' })],
  ];
  for (const [what, code, ask] of refusals) {
    it(`rejects ${what}, and records nothing`, async () => {
      const given = await issued(NOTIFY);
      expect(await endOf(execute(ask(given)))).to.equal(code);
      expect(await outcome(given)).to.equal(null);
      expect(world.webhooks.calls).to.deep.equal([]);
    });
  }

  it('rejects the id of another session', async () => {
    const [one, other] = [await issued(), await issued()];
    expect(await endOf(execute(asking({ ...one, id: other.id })))).to.equal('invalid_notification_id');
    expect(await outcome(other)).to.equal(null);
  });

  it('rejects a used proof', async () => {
    const request = asking(await issued());
    await execute(request);
    expect(await endOf(execute(request))).to.equal('invalid_dpop_proof');
  });

  it('rejects a token whose grant was revoked', async () => {
    const { code, session } = await anOffer(world);
    const token = await wallet.token({ code, session });
    const { notification_id: id } = await wallet.issue(token);
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    const revoked = { grant: { id: grant?.id ?? '', act: 'revoke' } } as const;
    await world.store.commit(ACME, revoked, world.clock.now());
    const given = { session: session.id, token, id };
    expect(await endOf(execute(asking(given)))).to.equal('invalid_token');
    expect(await outcome(given)).to.equal(null);
  });

  it('fails for an unknown tenant', async () => {
    expect(await endOf(execute(asking(await issued()), 'nobody' as TenantId))).to.equal('not_found');
  });
});

const HOUR = 3600;
const TTL = 24 * HOUR;
const CLAIMS = (id: string) => ({ credentialClaims: { [id]: { type: 'inline', claims: { name: 'Eve' } } } });

describe('renewal of a credential after the end of its session', () => {
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
    it(`uses its configuration when the session ${what}, as long as its refresh token is valid`, async () => {
      const given = await collected();
      await world.later(TTL + HOUR, async () => {
        if (gone) await cleanUp();
        expect((await renew(given)).credentials).to.have.length(1);
      });
      const { batches } = await world.stored(given.session.id).catch(() => ({ batches: [] }));
      expect(batches).to.have.length(2);
    });
  }

  it('requests the claims from the webhook of its configuration', async () => {
    world.webhooks.answer = { asked: { name: 'Grace' } };
    const given = await collected({}, 'asked');
    await world.later(TTL + HOUR, async () => {
      await cleanUp();
      expect((await renew(given, 'asked')).credentials).to.have.length(1);
    });
    expect(world.webhooks.calls.map(({ body }) => body['session'])).to.deep.equal([given.session.id, given.session.id]);
  });

  it('is rejected for claims of the offer once the session was removed', async () => {
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

  it('is accepted, except for claims of the offer', async () => {
    const ids = { credentialConfigurationIds: ['card', 'pass'] };
    const offered = await anOffer(world, { ...ids, ...CLAIMS('pass') });
    const { body } = await wallet.redeem(offered.code);
    for (const credential_configuration_id of ['card', 'pass']) await wallet.issue(body.access_token, { credential_configuration_id });
    await world.later(TTL + HOUR, async () => {
      await cleanUp();
      const next = (await wallet.refresh(body.refresh_token)).body.access_token;
      expect(await endOf(wallet.issue(next))).to.equal('done');
      expect(await endOf(wallet.issue(next, { credential_configuration_id: 'pass' }))).to.equal('credential_request_denied');
    });
  });

  it('is rejected for claims of an offer that is cached by this process and was removed early', async () => {
    const ids = { credentialConfigurationIds: ['card', 'pass'] };
    const offered = await anOffer(world, { ...ids, ...CLAIMS('pass') });
    const { body } = await wallet.redeem(offered.code);
    for (const credential_configuration_id of ['card', 'pass']) await wallet.issue(body.access_token, { credential_configuration_id });
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

  it('is rejected for a credential that was never issued: the offer expired', async () => {
    const offered = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body } = await wallet.redeem(offered.code);
    await wallet.issue(body.access_token);
    await world.later(TTL + HOUR, async () => {
      const next = (await wallet.refresh(body.refresh_token)).body.access_token;
      expect(await endOf(wallet.issue(next, { credential_configuration_id: 'pass' }))).to.equal('credential_request_denied');
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

  it('stores no grant for a wallet without a refresh token', async () => {
    await world.issues({ dPopRequired: false });
    const { code } = await anOffer(world);
    await wallet.redeem(code, { request: wallet.oauth('token', {}, { dpop: [] }) });
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    expect(grant?.expiresAt.getTime()).to.equal(world.clock.time + 1_800_000);
    await world.issues();
  });
});
