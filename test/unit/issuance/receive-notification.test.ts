import { expect } from 'chai';
import sinon from 'sinon';
import type { WalletRequest } from '../../../application/issuance/issue-credential.ts';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

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
    wallet.asking(
      token,
      'notification',
      { notification_id: id, event: 'credential_accepted', ...changes },
      more,
    );
  const execute = (request: WalletRequest, tenantId = ACME) =>
    world.receiveNotification.execute(tenantId, request);
  const outcome = async ({ session }: Given) => (await world.session(session)).outcome;

  it('notes what became of the credential', async () => {
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

  it('has the same effect when it comes twice as when it comes once', async () => {
    const given = await issued(NOTIFY);
    await execute(asking(given));
    const noted = await outcome(given);
    await execute(asking(given));
    expect(await outcome(given)).to.deep.equal(noted);
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('is told to the backend, with the call on record before and after', async () => {
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
    expect(world.webhooks.calls.map(({ body }) => body)).to.deep.equal([
      { session: given.session, notification },
    ]);
  });

  it('is told to the webhook of the configuration where the offer names none', async () => {
    await execute(asking(await issued({}, 'told')));
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('is well received although the backend fails', async () => {
    const given = await issued(NOTIFY);
    world.webhooks.answer = new WebhookError('timeout', 'no answer in time');
    expect(await endOf(execute(asking(given)))).to.equal('done');
    const [delivery] = (await outcome(given))?.deliveries ?? [];
    expect(delivery).to.include({ webhook: 'notification', result: 'failed', detail: 'no answer in time' });
  });

  it('is heard by a process that was configured otherwise a moment ago', async () => {
    const given = await issued();
    await world.issues();
    const commit = sinon.spy(world.store, 'commit');
    await execute(asking(given));
    expect(await outcome(given)).to.have.property('notifications');
    expect(commit.callCount).to.equal(3);
  });

  type Refused = readonly [what: string, code: FailureCode, ask: (given: Given) => WalletRequest];
  const refusals: readonly Refused[] = [
    [
      'no token',
      'missing_token',
      (given) => asking(given, {}, { wallet: { authorization: undefined, dpop: [] } }),
    ],
    [
      'a proof for another address',
      'invalid_dpop_proof',
      (given) => ({ ...asking(given), wallet: wallet.asking(given.token, 'credential', {}).wallet }),
    ],
    ['a form', 'invalid_notification_request', (given) => asking(given, {}, { contentType: 'text/plain' })],
    ['broken JSON', 'invalid_notification_request', (given) => asking(given, {}, { body: Buffer.from('{') })],
    ['no id', 'invalid_notification_request', (given) => asking(given, { notification_id: undefined })],
    [
      'an unknown event',
      'invalid_notification_request',
      (given) => asking(given, { event: 'credential_lost' }),
    ],
    [
      'words with quotes',
      'invalid_notification_request',
      (given) => asking(given, { event_description: '"' }),
    ],
    ['an id of nobody', 'invalid_notification_id', (given) => asking(given, { notification_id: 'none' })],
  ];
  for (const [what, code, ask] of refusals) {
    it(`refuses ${what}, and notes nothing`, async () => {
      const given = await issued(NOTIFY);
      expect(await endOf(execute(ask(given)))).to.equal(code);
      expect(await outcome(given)).to.equal(null);
      expect(world.webhooks.calls).to.deep.equal([]);
    });
  }

  it('refuses the id of another session', async () => {
    const [one, other] = [await issued(), await issued()];
    expect(await endOf(execute(asking({ ...one, id: other.id })))).to.equal('invalid_notification_id');
    expect(await outcome(other)).to.equal(null);
  });

  it('refuses a proof that was used', async () => {
    const request = asking(await issued());
    await execute(request);
    expect(await endOf(execute(request))).to.equal('invalid_dpop_proof');
  });

  it('refuses a token whose grant was revoked', async () => {
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

  it('is not found at a tenant that is not there', async () => {
    expect(await endOf(execute(asking(await issued()), 'nobody' as TenantId))).to.equal('not_found');
  });
});
