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
import { anOffer, type CreatedOffer, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const nowPlus = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);

const REQUEST: IssuanceRequest = {
  ...{ kind: 'issuance', offerRequest: {}, offer: {}, offerUrl: '' },
  credentialClaims: { pass: { type: 'inline', claims: {} } },
};
/** A session of two configurations, the first of which was issued. */
const SESSION = {
  ...{ id: 's', kind: 'issuance', status: 'active', configurationIds: ['card', 'pass'], issuedMask: 1 },
  ...{ createdAt: NOW, expiresAt: nowPlus(60), request: REQUEST, outcome: null },
} as unknown as Session;

const resultOf = (work: () => unknown) => {
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
  const { message, cause } = offerEndedError('the maximum was issued');
  expect([message, cause instanceof OperatorReason, String(cause)]).to.deep.equal([
    ...['the offer has ended', true, 'Error: the maximum was issued'],
  ]);
});

describe('session of a credential request', () => {
  const requireIssuableResult = (change: Partial<Session>, id = 'card', grantId?: string, barredMask = 0) =>
    resultOf(() => requireIssuable({ ...SESSION, ...change }, id, NOW, grantId, { issued: 0, barred: barredMask }));
  const cases: readonly [string, () => string, string][] = [
    ['is valid while the session is active', () => requireIssuableResult({}), 'done'],
    ['is valid once the session has completed', () => requireIssuableResult({ status: 'completed' }), 'done'],
    ['is invalid once the session has expired', () => requireIssuableResult({ expiresAt: NOW }), 'the offer has ended'],
    ['is invalid once the session has failed', () => requireIssuableResult({ status: 'failed' }), 'the offer has ended'],
    ['may be renewed after its expiry', () => requireIssuableResult({ expiresAt: NOW }, 'card', 'g'), 'done'],
    ['renews no credential that was never issued', () => requireIssuableResult({ expiresAt: NOW }, 'pass', 'g'), 'the offer has ended'],
    ['renews no credential for a token of another server', () => requireIssuableResult({ expiresAt: NOW }, 'card'), 'the offer has ended'],
    ['is for no other configuration', () => requireIssuableResult({}, 'else'), 'the offer does not cover this credential'],
    [
      'is not a verification',
      () => requireIssuableResult({ request: { kind: 'verification' } as PostedVerification }),
      'the offer does not cover this credential',
    ],
    ['may be renewed after its removal', () => requireIssuableResult({ request: null }, 'card', 'g'), 'done'],
    [
      'issues nothing new after its removal',
      () => requireIssuableResult({ request: null }, 'pass', 'g'),
      'the offer does not cover this credential',
    ],
    ['is invalid for a revoked credential', () => requireIssuableResult({}, 'card', undefined, 1), 'the offer has ended'],
    ['is not over for the rest', () => requireIssuableResult({}, 'pass', undefined, 1), 'done'],
  ];
  for (const [description, outcome, expected] of cases) it(description, () => expect(outcome()).to.equal(expected));

  it('is required', () => expect(resultOf(() => requireIssuable(undefined, 'card', NOW, 'g'))).to.equal('the offer has ended'));

  it('must be completed within its lifetime, and allows renewals after it', () => {
    const claimedSession = (expiresAt: Date) => claim({ ...SESSION, expiresAt }, 'card', requestConsumption([], 'g'), {}, NOW).session;
    expect(claimedSession(nowPlus(60))).to.have.property('running');
    expect(claimedSession(NOW)).to.have.property('anytime').that.includes('expired');
  });

  it('is checked against the grant of its token, if there is one', () => {
    expect(requestConsumption([], undefined)).to.deep.equal({ uses: [] });
    expect(requestConsumption([], 'g')).to.deep.equal({ uses: [], unrevoked: 'g' });
  });

  it('can be renewed after its end for credentials that do not come from its offer', () => {
    const renewable = (change: Partial<Session>) => renewableMask({ ...SESSION, issuedMask: 3, ...change });
    expect(renewable({})).to.equal(1);
    expect(renewable({ request: null })).to.equal(3);
    expect(renewable({ request: { kind: 'verification' } as PostedVerification })).to.equal(0);
    expect([mayRenew(SESSION, 'card', 'g'), mayRenew(SESSION, 'card', undefined)]).to.deep.equal([true, false]);
  });
});

describe('deferred transaction', () => {
  const statuses = ['pending', 'ready', 'retrieved', 'failed'] as const;

  it('is expired after its end, unless it ended before', () => {
    const statusesAt = (expiresAt: Date) => statuses.map((status) => deferredStatusAt({ status, expiresAt }, NOW));
    expect(statusesAt(nowPlus(1))).to.deep.equal(statuses);
    expect(statusesAt(NOW)).to.deep.equal(['expired', 'expired', 'retrieved', 'failed']);
  });

  it('is decided while it is pending', () => {
    const assertPendingResult = (status: string, expiresAt = nowPlus(1)) =>
      resultOf(() => assertPending({ status, expiresAt } as DeferredTransaction, NOW));
    expect(assertPendingResult('pending')).to.equal('done');
    expect(assertPendingResult('pending', NOW)).to.equal('the transaction is expired');
    expect(assertPendingResult('ready')).to.equal('the transaction is ready');
  });
});

describe('wallet notification', () => {
  const read = (body: object, type: string | undefined = 'application/json') =>
    resultOf(() => parseNotification(type, Buffer.from(JSON.stringify(body))));
  const valid = { notification_id: 'n', event: 'credential_accepted' };

  it('contains an event of a credential, with or without a description', () => {
    const full = { ...valid, notification_id: 'n'.repeat(200), event_description: 'x'.repeat(1000), more: 1 };
    expect([read(valid), read(full), read(valid, 'Application/JSON; charset=utf-8')]).to.deep.equal(Array(3).fill('done'));
  });

  const rejectedBodies: readonly [string, object, string?][] = [
    ['another type of body', valid, 'text/plain'],
    ['no identifier', { event: 'credential_accepted' }],
    ['an empty identifier', { ...valid, notification_id: '' }],
    ['an identifier that is not a string', { ...valid, notification_id: 7 }],
    ['an overlong identifier', { ...valid, notification_id: 'n'.repeat(201) }],
    ['an unknown event', { ...valid, event: 'credential_lost' }],
    ['a description that is not a string', { ...valid, event_description: 7 }],
    ['a description in a list', { ...valid, event_description: ['x'] }],
    ['an overlong description', { ...valid, event_description: 'x'.repeat(1001) }],
    ['a description with a quote', { ...valid, event_description: 'a "b"' }],
  ];
  for (const [description, body, type] of rejectedBodies) {
    it(`is rejected with ${description}`, () => expect(read(body, type)).to.not.equal('done'));
  }

  it('is recorded once, and limited in number', () => {
    const notification = (id: string, event: 'credential_accepted' | 'credential_deleted') =>
      ({ id, event, credentialConfigurationId: 'card', at: '' }) as const;
    const first = appendNotification([], notification('n', 'credential_accepted')) ?? [];
    expect(appendNotification(first, notification('n', 'credential_accepted'))).to.equal(undefined);
    expect(appendNotification(first, notification('n', 'credential_deleted'))).to.have.length(2);
    expect(appendNotification(first, notification('m', 'credential_accepted'))).to.have.length(2);
    const hundred = Array.from({ length: 100 }, (_, i) => ({ ...notification(`${i}`, 'credential_deleted') }));
    expect(appendNotification(hundred, notification('n', 'credential_accepted'))).to.equal(undefined);
    expect(appendNotification(hundred.slice(1), notification('n', 'credential_accepted'))).to.have.length(100);
  });
});

const NOTIFY = { notifyWebhook: { url: 'https://backend.example/notify' } };

describe('ReceiveNotification', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.putCredential({ id: 'told', notificationWebhook: { url: 'https://backend.example/told' } });
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = undefined;
    world.webhooks.beforeAnswer = async () => {};
  });
  afterEach(() => sinon.restore());

  type IssuedCredential = { readonly session: SessionId; readonly token: string; readonly id: string };
  const issueCredential = async (offer: object = {}, configurationId = 'card'): Promise<IssuedCredential> => {
    const ids = { credentialConfigurationIds: [configurationId] };
    const createdOffer = await anOffer(world, { ...ids, ...offer });
    const token = await wallet.token(createdOffer);
    const body = { credential_configuration_id: configurationId };
    const { notification_id: id } = await wallet.issue(token, body);
    return { session: createdOffer.session.id, token, id };
  };
  const buildNotification = ({ token, id }: IssuedCredential, changes: object = {}, options: Partial<WalletRequest> = {}) =>
    wallet.protectedRequest(token, 'notification', { notification_id: id, event: 'credential_accepted', ...changes }, options);
  const execute = (request: WalletRequest, tenantId = ACME) => world.receiveNotification.execute(tenantId, request);
  const outcome = async ({ session }: IssuedCredential) => (await world.session(session)).outcome;

  it('records the event of the credential', async () => {
    const issued = await issueCredential();
    await execute(buildNotification(issued, { event_description: 'it is in' }));
    expect(await outcome(issued)).to.deep.equal({
      notifications: [
        {
          id: issued.id,
          event: 'credential_accepted',
          eventDescription: 'it is in',
          credentialConfigurationId: 'card',
          at: world.clock.now().toISOString(),
        },
      ],
    });
    expect((await world.session(issued.session)).status).to.equal('completed');
    expect(world.webhooks.calls).to.deep.equal([]);
  });

  it('is idempotent', async () => {
    const issued = await issueCredential(NOTIFY);
    await execute(buildNotification(issued));
    const expected = await outcome(issued);
    await execute(buildNotification(issued));
    expect(await outcome(issued)).to.deep.equal(expected);
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('calls the webhook, and records the call before and after it', async () => {
    const issued = await issueCredential(NOTIFY);
    const results: unknown[] = [];
    const recordResults = async () => results.push((await outcome(issued))?.deliveries?.map(({ result }) => result));
    world.webhooks.beforeAnswer = async () => {
      await recordResults();
    };
    await execute(buildNotification(issued, { event: 'credential_deleted' }));
    await recordResults();
    expect(results).to.deep.equal([['pending'], ['delivered']]);
    const notification = { id: issued.id, event: 'credential_deleted', credentialConfigurationId: 'card' };
    expect(world.webhooks.calls.map(({ body }) => body)).to.deep.equal([{ session: issued.session, notification }]);
  });

  it('calls the webhook of the configuration if the offer names none', async () => {
    await execute(buildNotification(await issueCredential({}, 'told')));
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('succeeds although the backend fails', async () => {
    const issued = await issueCredential(NOTIFY);
    world.webhooks.answer = new WebhookError('timeout', 'no answer in time');
    expect(await outcomeOf(execute(buildNotification(issued)))).to.equal('done');
    const [delivery] = (await outcome(issued))?.deliveries ?? [];
    expect(delivery).to.include({ webhook: 'notification', result: 'failed', detail: 'no answer in time' });
  });

  it('accepts the notification in a process with an outdated configuration', async () => {
    const issued = await issueCredential();
    await world.putIssuance();
    const commit = sinon.spy(world.store, 'commit');
    await execute(buildNotification(issued));
    expect(await outcome(issued)).to.have.property('notifications');
    expect(commit.callCount).to.equal(3);
  });

  type RejectionCase = readonly [description: string, code: FailureCode, call: (issued: IssuedCredential) => WalletRequest];
  const rejections: readonly RejectionCase[] = [
    ['no token', 'missing_token', (issued) => buildNotification(issued, {}, { wallet: { authorization: undefined, dpop: [] } })],
    [
      'a proof for another address',
      'invalid_dpop_proof',
      (issued) => ({ ...buildNotification(issued), wallet: wallet.protectedRequest(issued.token, 'credential', {}).wallet }),
    ],
    ['a form', 'invalid_notification_request', (issued) => buildNotification(issued, {}, { contentType: 'text/plain' })],
    ['broken JSON', 'invalid_notification_request', (issued) => buildNotification(issued, {}, { body: Buffer.from('{') })],
    ['no id', 'invalid_notification_request', (issued) => buildNotification(issued, { notification_id: undefined })],
    ['an unknown event', 'invalid_notification_request', (issued) => buildNotification(issued, { event: 'credential_lost' })],
    ['a description with quotes', 'invalid_notification_request', (issued) => buildNotification(issued, { event_description: '"' })],
    ['an unknown id', 'invalid_notification_id', (issued) => buildNotification(issued, { notification_id: 'none' })],
  ];
  for (const [description, code, buildRequest] of rejections) {
    it(`rejects ${description}, and records nothing`, async () => {
      const issued = await issueCredential(NOTIFY);
      expect(await outcomeOf(execute(buildRequest(issued)))).to.equal(code);
      expect(await outcome(issued)).to.equal(null);
      expect(world.webhooks.calls).to.deep.equal([]);
    });
  }

  it('rejects the id of another session', async () => {
    const [first, second] = [await issueCredential(), await issueCredential()];
    expect(await outcomeOf(execute(buildNotification({ ...first, id: second.id })))).to.equal('invalid_notification_id');
    expect(await outcome(second)).to.equal(null);
  });

  it('rejects a used proof', async () => {
    const request = buildNotification(await issueCredential());
    await execute(request);
    expect(await outcomeOf(execute(request))).to.equal('invalid_dpop_proof');
  });

  it('rejects a token whose grant was revoked', async () => {
    const { code, session } = await anOffer(world);
    const token = await wallet.token({ code, session });
    const { notification_id: id } = await wallet.issue(token);
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    const revocation = { grant: { id: grant?.id ?? '', act: 'revoke' } } as const;
    await world.store.commit(ACME, revocation, world.clock.now());
    const issued = { session: session.id, token, id };
    expect(await outcomeOf(execute(buildNotification(issued)))).to.equal('invalid_token');
    expect(await outcome(issued)).to.equal(null);
  });

  it('fails for an unknown tenant', async () => {
    expect(await outcomeOf(execute(buildNotification(await issueCredential()), 'unknown' as TenantId))).to.equal('not_found');
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
    await world.putCredential({ id: 'pass' });
    await world.putCredential({ id: 'asked', claimsWebhook: { url: 'https://backend.example/claims' } });
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = undefined;
  });

  const cleanUp = () => world.store.maintenance.cleanUpSessions(world.clock.now(), 100, { ttlSeconds: TTL });
  const collectOffer = async (offer: object = {}, id = 'card') => {
    const createdOffer = await anOffer(world, { credentialConfigurationIds: [id], ...offer });
    const { body } = await wallet.redeem(createdOffer.code);
    await wallet.issue(body.access_token, { credential_configuration_id: id });
    return { ...createdOffer, refreshToken: body.refresh_token };
  };
  type CollectedOffer = CreatedOffer & { readonly refreshToken: string | undefined };
  const renew = async ({ refreshToken }: CollectedOffer, id = 'card') => {
    const { body } = await wallet.refresh(refreshToken);
    return wallet.issue(body.access_token, { credential_configuration_id: id });
  };

  for (const [description, isRemoved] of [
    ['has ended', false],
    ['was removed', true],
  ] as const) {
    it(`uses its configuration when the session ${description}, as long as its refresh token is valid`, async () => {
      const issued = await collectOffer();
      await world.afterSeconds(TTL + HOUR, async () => {
        if (isRemoved) await cleanUp();
        expect((await renew(issued)).credentials).to.have.length(1);
      });
      const { batches } = await world.storedIssuance(issued.session.id).catch(() => ({ batches: [] }));
      expect(batches).to.have.length(2);
    });
  }

  it('requests the claims from the webhook of its configuration', async () => {
    world.webhooks.answer = { asked: { name: 'Grace' } };
    const issued = await collectOffer({}, 'asked');
    await world.afterSeconds(TTL + HOUR, async () => {
      await cleanUp();
      expect((await renew(issued, 'asked')).credentials).to.have.length(1);
    });
    expect(world.webhooks.calls.map(({ body }) => body['session'])).to.deep.equal([issued.session.id, issued.session.id]);
  });

  it('is rejected for claims of the offer once the session was removed', async () => {
    const issued = await collectOffer(CLAIMS('card'));
    await world.afterSeconds(TTL + HOUR, async () => {
      expect((await renew(issued)).credentials, 'as long as the session is kept').to.have.length(1);
    });
    const second = await collectOffer(CLAIMS('card'));
    await world.afterSeconds(TTL + HOUR, async () => {
      await cleanUp();
      expect(await outcomeOf(wallet.refresh(second.refreshToken))).to.equal('invalid_grant');
    });
  });

  it('is accepted, except for claims of the offer', async () => {
    const ids = { credentialConfigurationIds: ['card', 'pass'] };
    const offer = await anOffer(world, { ...ids, ...CLAIMS('pass') });
    const { body } = await wallet.redeem(offer.code);
    for (const credential_configuration_id of ['card', 'pass']) await wallet.issue(body.access_token, { credential_configuration_id });
    await world.afterSeconds(TTL + HOUR, async () => {
      await cleanUp();
      const nextToken = (await wallet.refresh(body.refresh_token)).body.access_token;
      expect(await outcomeOf(wallet.issue(nextToken))).to.equal('done');
      expect(await outcomeOf(wallet.issue(nextToken, { credential_configuration_id: 'pass' }))).to.equal('credential_request_denied');
    });
  });

  it('is rejected for claims of an offer that is cached by this process and was removed early', async () => {
    const ids = { credentialConfigurationIds: ['card', 'pass'] };
    const offer = await anOffer(world, { ...ids, ...CLAIMS('pass') });
    const { body } = await wallet.redeem(offer.code);
    for (const credential_configuration_id of ['card', 'pass']) await wallet.issue(body.access_token, { credential_configuration_id });
    const ttlSeconds = 60;
    await world.changeTenant({ sessionConfig: { ttlSeconds, cleanupMode: 'full' } });
    await world.afterSeconds(120, async () => {
      await cleanUp();
      const passBody = { credential_configuration_id: 'pass' };
      expect(await outcomeOf(wallet.issue(body.access_token, passBody))).to.equal('credential_request_denied');
      expect(await outcomeOf(wallet.issue(body.access_token))).to.equal('done');
    });
    await world.changeTenant({ sessionConfig: null });
  });

  it('is rejected for a credential that was never issued: the offer expired', async () => {
    const offer = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body } = await wallet.redeem(offer.code);
    await wallet.issue(body.access_token);
    await world.afterSeconds(TTL + HOUR, async () => {
      const nextToken = (await wallet.refresh(body.refresh_token)).body.access_token;
      expect(await outcomeOf(wallet.issue(nextToken, { credential_configuration_id: 'pass' }))).to.equal('credential_request_denied');
      expect(await outcomeOf(wallet.issue(nextToken))).to.equal('done');
    });
  });

  it('ends with its refresh token', async () => {
    const issued = await collectOffer();
    await world.afterSeconds(2_592_000 - 1, async () => {
      await cleanUp();
      expect((await renew(issued)).credentials).to.have.length(1);
    });
    await world.afterSeconds(2_592_000, async () => {
      expect(await outcomeOf(wallet.refresh(issued.refreshToken))).to.equal('invalid_grant');
    });
  });

  it('stores no grant for a wallet without a refresh token', async () => {
    await world.putIssuance({ dPopRequired: false });
    const { code } = await anOffer(world);
    await wallet.redeem(code, { request: wallet.createOAuthRequest('token', {}, { dpop: [] }) });
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    expect(grant?.expiresAt.getTime()).to.equal(world.clock.time + 1_800_000);
    await world.putIssuance();
  });
});
