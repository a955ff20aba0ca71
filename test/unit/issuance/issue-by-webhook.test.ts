import { expect } from 'chai';
import sinon from 'sinon';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { MAX_ISSUANCES, type Session } from '../../../domain/sessions/session.ts';
import type { Json } from '../../../domain/shared/json.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Issued, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const WEBHOOK = { url: 'https://backend.example/claims' };
const HOOKED = { credential_configuration_id: 'hooked' };

describe('A credential whose claims a backend has', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    await world.offers({ id: 'hooked', claims: null, claimsWebhook: WEBHOOK, schema });
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = { hooked: { name: 'Grace' } };
    world.webhooks.beforeAnswer = async () => {};
  });
  afterEach(() => sinon.restore());

  const offer = async () => {
    const offered = await anOffer(world, { credentialConfigurationIds: ['hooked'] });
    return { id: offered.session.id, token: await wallet.token(offered) };
  };
  const ask = async (token: string, changes: object = {}) =>
    world.issueCredential.execute(ACME, await wallet.wanting(token, { ...HOOKED, ...changes }));
  const deliveries = ({ outcome }: Session) =>
    outcome?.deliveries?.map(({ webhook, result }) => [webhook, result]);

  it('is issued with what the backend says, who is told what for', async () => {
    const { id, token } = await offer();
    let during: Session | undefined;
    world.webhooks.beforeAnswer = async () => {
      during = await world.session(id);
    };
    const { status, text } = await ask(token);
    const issued = JSON.parse(text) as Issued;
    expect(status).to.equal(200);
    expect(decode(issued.credentials[0]?.credential ?? '').payload).to.include({ name: 'Grace' });
    const [call] = world.webhooks.calls;
    expect(call?.body).to.deep.equal({
      session: id,
      credential_configuration_id: 'hooked',
      identity: {},
      credentials: [],
    });
    expect(during && deliveries(during), 'while it is called').to.deep.equal([['claims', 'pending']]);
    const { session, batches } = await world.stored(id);
    expect([session.status, deliveries(session)]).to.deep.equal(['completed', [['claims', 'delivered']]]);
    const [told] = session.outcome?.deliveries ?? [];
    expect(told).to.include({ id: call?.deliveryId, status: 200 });
    expect(told?.durationMs, 'how long it took').to.be.at.least(0);
    expect(during?.outcome?.deliveries?.[0]).to.not.have.any.keys('status', 'durationMs');
    expect(batches.map((batch) => batch.id)).to.deep.equal([issued.notification_id]);
  });

  it('is asked for once, however often the request comes', async () => {
    const { token } = await offer();
    const request = await wallet.wanting(token, HOOKED);
    const asked = [1, 2, 3].map(() => endOf(world.issueCredential.execute(ACME, request)));
    const ends = await Promise.all(asked);
    expect(ends.filter((end) => end === 'done')).to.have.length(1);
    expect(ends).to.have.members(['done', ...ends.filter((end) => /^invalid_(nonce|dpop_proof)$/.test(end))]);
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('is asked for by nobody whose session is over', async () => {
    const { id, token } = await offer();
    const failed = { id: id as Session['id'], anytime: ['active'], to: 'failed' } as const;
    await world.store.commit(ACME, { session: failed }, world.clock.now());
    expect(await endOf(ask(token))).to.equal('credential_request_denied');
    expect(world.webhooks.calls).to.deep.equal([]);
  });

  const broken: readonly [what: string, answer: Json | WebhookError | undefined, said: RegExp][] = [
    [
      'that cannot be reached',
      new WebhookError('unreachable', 'nobody there'),
      /^claims webhook: nobody there$/,
    ],
    ['that answers with nothing', undefined, /did not answer with an object/],
    ['that answers with a list', [], /did not answer with an object/],
    ['that has no claims of this credential', { card: { name: 'Grace' } }, /no object for hooked/],
    ['whose claims do not fit the schema', { hooked: { name: 7 } }, /do not fit the schema: \.name/],
    [
      'whose claims belong to the issuer',
      { hooked: { name: 'Grace', iss: 'me' } },
      /cannot be issued: \.iss/,
    ],
    ['that puts off for no time', { deferred: true, interval: 0 }, /from 1 to 86400/],
    ['that puts off for ever', { deferred: true, interval: 86_401 }, /from 1 to 86400/],
    ['that puts off for words', { deferred: true, interval: 'soon' }, /from 1 to 86400/],
  ];
  for (const [what, answer, said] of broken) {
    it(`is denied by a backend ${what}, and the session fails with the reason`, async () => {
      const { id, token } = await offer();
      world.webhooks.answer = answer;
      expect(await endOf(ask(token))).to.equal('credential_request_denied');
      const { session, batches } = await world.stored(id);
      expect([session.status, deliveries(session), batches]).to.deep.equal([
        'failed',
        [['claims', 'failed']],
        [],
      ]);
      expect(session.outcome?.failure?.message).to.match(said);
      expect(session.outcome?.deliveries?.[0]?.detail).to.equal(session.outcome?.failure?.message);
    });
  }

  it('is not issued when the session ended while the backend was asked', async () => {
    const { id, token } = await offer();
    world.webhooks.beforeAnswer = async () => {
      const failed = { id: id as Session['id'], anytime: ['active'], to: 'failed' } as const;
      await world.store.commit(ACME, { session: failed }, world.clock.now());
    };
    expect(await endOf(ask(token))).to.equal('credential_request_denied');
    expect((await world.stored(id)).batches).to.deep.equal([]);
  });

  it('is issued although the time of the offer ended while the backend was asked', async () => {
    const offered = await anOffer(world, { credentialConfigurationIds: ['hooked'], expiresIn: 60 });
    const token = await wallet.token(offered);
    const start = world.clock.time;
    world.webhooks.beforeAnswer = async () => {
      world.clock.time += 61_000;
    };
    expect((await ask(token)).status).to.equal(200);
    world.clock.time = start;
    expect((await world.session(offered.session.id)).status).to.equal('completed');
  });

  it('fails the session with the reason when its own claims cannot be issued any more', async () => {
    const offered = await anOffer(world);
    const token = await wallet.token(offered);
    await world.offers({ id: 'card', schema: { type: 'object', required: ['age'] } });
    expect(await endOf(wallet.issue(token))).to.equal('credential_request_denied');
    await world.offers({ id: 'card' });
    const { status, outcome } = await world.session(offered.session.id);
    expect(status).to.equal('failed');
    expect(outcome?.failure?.message).to.match(/do not fit the schema/);
  });

  it('is promised for later, with the keys that were proven', async () => {
    world.webhooks.answer = { deferred: true, interval: 7 };
    const { id, token } = await offer();
    const key = newKey();
    const { status, text } = await ask(token, {
      proofs: { jwt: [wallet.keyProof(await wallet.nonce(), {}, key)] },
    });
    const { transaction_id: transactionId = '', ...rest } = JSON.parse(text) as Issued;
    expect([status, rest]).to.deep.equal([202, { interval: 7 }]);
    const transaction = await world.store.read(ACME).deferred(transactionId);
    expect(transaction).to.deep.include({
      sessionId: id,
      status: 'pending',
      intervalSeconds: 7,
      credentials: null,
    });
    expect(transaction?.holderKeys).to.deep.equal([key.jwk]);
    expect(transaction?.expiresAt.getTime()).to.equal(world.clock.time + 86_400_000);
    const { session, batches } = await world.stored(id);
    expect([session.status, deliveries(session), batches]).to.deep.equal([
      'active',
      [['claims', 'delivered']],
      [],
    ]);
    expect(session.expiresAt, 'the session lives as long').to.deep.equal(transaction?.expiresAt);
  });

  it('is promised a number of times, and then the backend is not asked any more', async () => {
    world.webhooks.answer = { deferred: true };
    const { token } = await offer();
    const { transaction_id: id = '' } = JSON.parse((await ask(token)).text) as Issued;
    const first = await world.store.read(ACME).deferred(id);
    if (first === undefined) throw new Error('no transaction');
    for (let promised = 1; promised < MAX_ISSUANCES; promised++) {
      const deferred = { ...first, id: world.random.token() };
      await world.store.commit(ACME, { opens: { deferred } }, world.clock.now());
    }
    world.webhooks.calls.length = 0;
    expect(await endOf(ask(token))).to.equal('credential_request_denied');
    expect(world.webhooks.calls).to.deep.equal([]);
  });
});
