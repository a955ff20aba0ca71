import { expect } from 'chai';
import sinon from 'sinon';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { FinishDeliveries } from '../../../application/sessions/finish-deliveries.ts';
import { RetryDelivery } from '../../../application/sessions/retry-delivery.ts';
import { SessionNotes } from '../../../application/sessions/session-notes.ts';
import { EndOverdueResponses } from '../../../application/verification/end-overdue-responses.ts';
import { PresentationVerifier } from '../../../application/verification/presentation-verifier.ts';
import { RedeemResponseCode } from '../../../application/verification/redeem-response-code.ts';
import { ResultDelivery } from '../../../application/verification/result-delivery.ts';
import { SessionOutcomes } from '../../../application/verification/session-outcomes.ts';
import { ShowPresented } from '../../../application/verification/show-presented.ts';
import type { Change, CommitResult } from '../../../domain/changes/change.ts';
import { updateOutcome } from '../../../domain/sessions/session-change.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { failureOf, WalletWorld } from '../wallet-kit.ts';
import { ACME, present, responseForm, World } from './kit.ts';

describe('presentation whose process is killed during the webhook call', () => {
  let world: World;
  let finishDeliveries: FinishDeliveries;

  beforeEach(async () => {
    world = await World.make();
    finishDeliveries = new FinishDeliveries({ ...world, sessionNotes: new SessionNotes(world) });
    await world.configure();
  });

  /** The time of the database in some seconds. */
  const secondsFromNow = (seconds: number) => new Date(Date.now() + seconds * 1000);
  const dueDeliveries = () => world.store.maintenance.dueDeliveries(secondsFromNow(3_600), 10, 10);

  /** Stops the process before the result is stored. @param isGood true for a valid presentation */
  async function interruptBeforeStore(isGood = true) {
    const fetchedRequest = await world.request();
    const buildForm = await responseForm(fetchedRequest, { card: isGood ? [present(world, fetchedRequest)] : ['x'] });
    const { commit } = world.store;
    let hasCrashed = false;
    world.webhooks.beforeAnswer = async () => {
      hasCrashed = true;
    };
    world.store.commit = async (tenantId, change: Change, now): Promise<CommitResult> => {
      if (hasCrashed) throw new Error('the process is dead');
      return commit.call(world.store, tenantId, change, now);
    };
    const result = await world.receiveResponse.execute(ACME, fetchedRequest.publicId, buildForm).catch(() => 'failed');
    world.store.commit = commit;
    world.webhooks.beforeAnswer = async () => {};
    expect([result, hasCrashed]).to.deep.equal(['failed', true]);
    return fetchedRequest.session.id;
  }

  it('is finished by the next process: the webhook is called once more with the same id', async () => {
    const id = await interruptBeforeStore();
    const interrupted = await world.session(id);
    expect([interrupted.status, interrupted.outcome?.deliveries?.[0]?.result]).to.deep.equal(['fetched', 'pending']);

    expect(await finishDeliveries.execute(secondsFromNow(0), 10), 'while it may still be running').to.equal(0);
    expect(await finishDeliveries.execute(secondsFromNow(70), 10)).to.equal(1);

    const [first, second, ...rest] = world.webhooks.calls;
    expect(rest).to.deep.equal([]);
    expect(second).to.deep.equal(first);
    const session = await world.session(id);
    expect(session.status).to.equal('completed');
    expect(session.outcome?.deliveries).to.have.length(1);
    expect(session.outcome?.deliveries?.[0]?.result).to.equal('delivered');
    expect(session.outcome?.credentials).to.have.length(1);
    expect(await dueDeliveries()).to.deep.equal([]);
  });

  it('fails when the webhook then answers with an error', async () => {
    const id = await interruptBeforeStore();
    world.webhooks.answer = new WebhookError('bad_status', 'HTTP 500', { status: 500 });
    await finishDeliveries.execute(secondsFromNow(70), 10);
    const session = await world.session(id);
    expect([session.status, session.outcome?.failure?.code]).to.deep.equal(['failed', 'webhook_failed']);
    expect(await dueDeliveries(), 'one attempt').to.deep.equal([]);
  });

  it('is not retried forever if an internal error interrupts it each time', async () => {
    const id = await interruptBeforeStore();
    world.webhooks.answer = new Error('a bug') as WebhookError;
    await finishDeliveries.execute(secondsFromNow(70), 10);
    const { status, outcome } = await world.session(id);
    expect([status, outcome?.deliveries?.[0]?.result]).to.deep.equal(['failed', 'failed']);
    expect(world.log.errors.map(({ cause }) => String(cause))).to.deep.equal(['Error: a bug']);
    expect(await dueDeliveries()).to.deep.equal([]);
  });

  it('reports a rejection to its webhook, too', async () => {
    const id = await interruptBeforeStore(false);
    expect((await world.session(id)).status, 'recorded before the call').to.equal('failed');
    await finishDeliveries.execute(secondsFromNow(70), 10);
    const [first, second] = world.webhooks.calls;
    expect(second).to.deep.equal(first);
    const session = await world.session(id);
    expect(session.outcome?.deliveries?.[0]?.result).to.equal('delivered');
    expect(session.outcome?.failure?.code, 'the reason of the failure').to.equal('presentation_refused');
  });

  it('is finished once, for any number of simultaneous attempts', async () => {
    await interruptBeforeStore();
    const runs = Array.from({ length: 20 }, () => finishDeliveries.execute(secondsFromNow(70), 10));
    await Promise.all(runs);
    expect(world.webhooks.calls).to.have.length(2);
  });

  it('does not expire in the meantime, at any time of the completion', async () => {
    const id = await interruptBeforeStore();
    const afterwards = secondsFromNow(10 * 86_400);
    const { expired, overdue } = await world.store.maintenance.expireSessions(afterwards, 10);
    expect([...expired, ...overdue]).to.deep.equal([]);
    await finishDeliveries.execute(afterwards, 10);
    expect((await world.session(id)).status).to.equal('completed');
  });

  for (const [description, answer, expected] of [
    ['accepted', undefined, ['completed', undefined]],
    ['refused', new WebhookError('bad_status', 'HTTP 500', { status: 500 }), ['failed', 'webhook_failed']],
  ] as const) {
    it(`ends by a client that repeats it before the job does, when it is ${description}`, async () => {
      const id = await interruptBeforeStore();
      world.webhooks.answer = answer;
      world.clock.time += 61_000;
      const [delivery] = (await world.session(id)).outcome?.deliveries ?? [];
      await new RetryDelivery(world).execute(await world.caller(), id, delivery?.id ?? '');
      const { status, outcome } = await world.session(id);
      expect([status, outcome?.failure?.code]).to.deep.equal(expected);
      expect([world.webhooks.calls.length, await dueDeliveries()]).to.deep.equal([2, []]);
    });
  }

  it('leaves nothing behind when its session is removed', async () => {
    const id = await interruptBeforeStore();
    await world.store.commit(ACME, { removes: id }, world.clock.now());
    await finishDeliveries.execute(secondsFromNow(70), 10);
    expect([world.webhooks.calls.length, await dueDeliveries()]).to.deep.equal([1, []]);
  });

  it('is not repeated while its tenant is suspended, but afterwards', async () => {
    const id = await interruptBeforeStore();
    const setTenantStatus = (status: 'active' | 'suspended') =>
      world.store.forTenant(
        ACME,
        async ({ tenant }) => {
          await tenant.save({ ...(await tenant.get()), status });
        },
        { by: 'system' },
      );
    await setTenantStatus('suspended');
    await finishDeliveries.execute(secondsFromNow(70), 10);
    expect([world.webhooks.calls.length, (await world.session(id)).status]).to.deep.equal([1, 'fetched']);
    expect(await world.store.maintenance.dueDeliveries(secondsFromNow(80), 10, 10), 'not at once').to.deep.equal([]);
    await setTenantStatus('active');
    await finishDeliveries.execute(secondsFromNow(3_600), 10);
    expect([world.webhooks.calls.length, (await world.session(id)).status]).to.deep.equal([2, 'completed']);
  });

  it('is retried later when it cannot be read', async () => {
    await interruptBeforeStore();
    const { read } = world.store;
    world.store.read = () => {
      throw new Error('it cannot be decrypted');
    };
    await finishDeliveries.execute(secondsFromNow(70), 10);
    world.store.read = read;
    expect(await world.store.maintenance.dueDeliveries(secondsFromNow(71), 10, 10)).to.deep.equal([]);
    expect(await dueDeliveries()).to.have.length(1);
  });
});

/** Runs the job for overdue sessions by the clock of this world. */
async function endOverdue(world: World): Promise<number> {
  const { overdue } = await world.store.maintenance.expireSessions(world.clock.now(), 100);
  return new EndOverdueResponses(world).execute(overdue);
}

const redirectUri = 'https://shop.example/done?s={sessionId}';

describe('response code redemption', () => {
  async function failureOf(work: Promise<unknown>): Promise<Failure> {
    const outcome = await work.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (outcome instanceof Failure) return outcome;
    throw new Error(`no failure: ${String(outcome)}`);
  }

  let world: World;
  let useCase: RedeemResponseCode;

  beforeEach(async () => {
    world = await World.make();
    const resultDelivery = new ResultDelivery(world);
    useCase = new RedeemResponseCode({ ...world, resultDelivery, sessionOutcomes: new SessionOutcomes(world) });
  });

  async function answerWithCode(changes: object) {
    await world.configure({ redirectUri, ...changes });
    const fetchedRequest = await world.request();
    const buildForm = await responseForm(fetchedRequest, { card: [present(world, fetchedRequest)] });
    const { redirect_uri = '' } = await world.receiveResponse.execute(ACME, fetchedRequest.publicId, buildForm);
    return { id: fetchedRequest.session.id, code: new URL(redirect_uri).searchParams.get('response_code') ?? '' };
  }
  const redeemCode = async ({ id, code }: Awaited<ReturnType<typeof answerWithCode>>, responseCode = code) =>
    useCase.execute(cachedCaller(await world.caller()), id, responseCode);
  const webhook = { url: 'https://shop.example/presented' };

  it('verifies the browser once if no delivery waits for it', async () => {
    const session = await answerWithCode({ webhook: undefined });
    expect((await failureOf(redeemCode(session, 'wrong'))).code).to.equal('forbidden');
    expect((await redeemCode(session)).session.status).to.equal('completed');
    expect((await failureOf(redeemCode(session))).code).to.equal('forbidden');
  });

  it('is rejected once a restored database is fenced', async () => {
    const session = await answerWithCode({ webhook: undefined });
    world.store.fencedAt = world.clock.now();
    expect((await failureOf(redeemCode(session))).code).to.equal('forbidden');
    world.store.fencedAt = new Date(world.clock.now().getTime() - 1);
    expect((await redeemCode(session)).session.status).to.equal('completed');
  });

  it('completes the waiting delivery, and removes its marker', async () => {
    const answeredSession = await answerWithCode({ webhook: undefined, requireResponseCode: true });
    const before = await world.session(answeredSession.id);
    expect([before.status, before.outcome?.credentials]).to.deep.equal(['fetched', undefined]);
    const { session } = await redeemCode(answeredSession);
    const storedSession = await world.session(answeredSession.id);
    expect([session.status, storedSession.status]).to.deep.equal(['completed', 'completed']);
    expect(storedSession.outcome?.credentials).to.have.length(1);
    expect(storedSession.outcome).to.not.have.property('awaiting');
  });

  for (const [description, rest] of [
    ['no pending result', {}],
    ['a pending result', { requireResponseCode: true }],
    ['a webhook is called', { requireResponseCode: true, webhook }],
  ] as const) {
    it(`succeeds although the session changed concurrently, with ${description}`, async () => {
      const answeredSession = await answerWithCode({ webhook: undefined, ...rest });
      const commit = world.store.commit.bind(world.store);
      const slow = sinon.stub(world.store, 'commit').callThrough();
      slow.onFirstCall().callsFake(async (tenantId, change, now) => {
        const session = await world.session(answeredSession.id);
        const otherChange = updateOutcome(session, session.outcome ?? {});
        expect((await commit(tenantId, { session: otherChange }, now)).done).to.equal(true);
        return commit(tenantId, change, now);
      });
      expect((await redeemCode(answeredSession)).session.status).to.equal('completed');
      expect((await failureOf(redeemCode(answeredSession))).code).to.equal('forbidden');
    });
  }

  it('is finally rejected if the session keeps changing', async () => {
    const session = await answerWithCode({ webhook: undefined, requireResponseCode: true });
    const commit = sinon.stub(world.store, 'commit').resolves({ done: false, part: 'session' });
    expect((await failureOf(redeemCode(session))).code).to.equal('forbidden');
    expect(commit.callCount).to.be.within(2, 10);
  });

  it('records the consumption before the call, and its result after it', async () => {
    const session = await answerWithCode({ webhook, requireResponseCode: true });
    world.webhooks.beforeAnswer = async () => {
      const { status, outcome } = await world.session(session.id);
      expect([status, outcome?.deliveries?.[0]?.result]).to.deep.equal(['fetched', 'pending']);
      expect((await failureOf(redeemCode(session))).code, 'again, meanwhile').to.equal('forbidden');
    };
    expect((await redeemCode(session)).session.status).to.equal('completed');
    expect(world.webhooks.calls).to.have.length(1);
    expect((await world.session(session.id)).outcome?.deliveries?.[0]?.result).to.equal('delivered');
  });

  it('fails the session when the webhook fails', async () => {
    const answeredSession = await answerWithCode({ webhook, requireResponseCode: true });
    world.webhooks.answer = new WebhookError('timeout', 'no answer');
    const { session } = await redeemCode(answeredSession);
    expect([session.status, session.outcome?.failure?.code]).to.deep.equal(['failed', 'webhook_failed']);
  });

  it('is possible for five minutes, also with a webhook', async () => {
    const session = await answerWithCode({ webhook, requireResponseCode: true });
    world.clock.time += 299_000;
    world.webhooks.beforeAnswer = async () => {
      world.clock.time += 10_000;
    };
    expect((await redeemCode(session)).session.status).to.equal('completed');
  });

  it('fails by the job after its expiry, and erases the verified values', async () => {
    const session = await answerWithCode({ webhook, requireResponseCode: true, lifeTime: 3600 });
    world.clock.time += 299_000;
    expect(await endOverdue(world)).to.equal(0);
    world.clock.time += 2_000;
    expect((await failureOf(redeemCode(session))).code).to.equal('forbidden');
    expect(await endOverdue(world)).to.equal(1);
    const { status, outcome } = await world.session(session.id);
    expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'response_code_missing']);
    expect(outcome).to.not.have.any.keys('awaiting', 'credentials', 'report');
    expect(await endOverdue(world)).to.equal(0);
  });

  it('is not ended by the job during the call to the webhook, for any duration', async () => {
    const session = await answerWithCode({ webhook, requireResponseCode: true });
    world.webhooks.beforeAnswer = async () => {
      world.clock.time += 700_000;
      expect(await endOverdue(world)).to.equal(0);
    };
    expect((await redeemCode(session)).session.status).to.equal('completed');
  });

  it('is completed by another process when the redeeming process was killed', async () => {
    const session = await answerWithCode({ webhook, requireResponseCode: true });
    const { commit } = world.store;
    world.webhooks.beforeAnswer = async () => {
      world.store.commit = () => Promise.reject(new Error('the process is dead'));
    };
    await redeemCode(session).catch(() => {});
    world.store.commit = commit;
    world.webhooks.beforeAnswer = async () => {};
    const { status, outcome } = await world.session(session.id);
    expect([status, outcome?.deliveries?.[0]?.result]).to.deep.equal(['fetched', 'pending']);
    const finishing = new FinishDeliveries({ ...world, sessionNotes: new SessionNotes(world) });
    expect(await finishing.execute(new Date(Date.now() + 70_000), 10)).to.equal(1);
    expect((await world.session(session.id)).status).to.equal('completed');
    expect(world.webhooks.calls).to.have.length(2);
    expect(world.webhooks.calls[1]).to.deep.equal(world.webhooks.calls[0]);
  });
});

describe('session outcome', () => {
  it('is recorded even if the session changes while it is read again', async () => {
    const world = await World.make();
    await world.configure();
    const { session } = await world.request();
    const now = world.clock.now();
    const staleSession = await world.session(session.id);
    // The session changed after the caller read it, and changes again between the second read and the second attempt.
    await world.store.commit(ACME, { session: updateOutcome(staleSession, {}) }, now);
    const commit = world.store.commit.bind(world.store);
    let tries = 0;
    world.store.commit = async (...parameters) => {
      if (++tries === 2) await commit(ACME, { session: updateOutcome(await world.session(session.id), {}) }, now);
      return commit(...parameters);
    };
    const failure = { code: 'internal_error', message: 'it broke' } as const;
    const recorded = await new SessionOutcomes(world).record(staleSession, 'fail', { failure });
    expect([recorded?.outcome, tries]).to.deep.equal([{ failure }, 3]);
    expect((await world.session(session.id)).status).to.equal('failed');
  });
});

describe('page after a presentation', () => {
  it('exists for active tenants', async () => {
    const world = await WalletWorld.open();
    const page = new ShowPresented(world);
    await page.execute(ACME);
    expect(await failureOf(page.execute('unknown' as TenantId))).to.have.property('code', 'not_found');
  });

  it('is not found for a suspended tenant, as for an unknown one', async () => {
    const world = await WalletWorld.open();
    await world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), status: 'suspended' }), {
      by: 'system',
    });
    const page = new ShowPresented(world);
    expect(await failureOf(page.execute(ACME))).to.have.property('code', 'not_found');
  });
});

describe('two answers to one request', () => {
  afterEach(() => sinon.restore());

  it('keep the accepted one when the verification of the other one is interrupted', async () => {
    const world = await World.make();
    await world.configure();
    const fetchedRequest = await world.request();
    const buildForm = () => responseForm(fetchedRequest, { card: [present(world, fetchedRequest)] });
    const [first, second] = [await buildForm(), await buildForm()];

    const received = Promise.withResolvers<void>();
    const verifying = Promise.withResolvers<void>();
    const verify = sinon.stub(PresentationVerifier.prototype, 'verify');
    verify.callThrough();
    // The cached session is verified first, then the stored one.
    verify.onCall(0).rejects(new TypeError('a bug'));
    verify.onCall(1).callsFake(async () => {
      verifying.resolve();
      await received.promise;
      throw new TypeError('a bug');
    });
    const failedResponse = world.receiveResponse.execute(ACME, fetchedRequest.publicId, first).catch((error: Error) => error.message);
    await verifying.promise;
    world.webhooks.beforeAnswer = async () => {
      received.resolve();
      expect(await failedResponse).to.equal('a bug');
    };
    await world.receiveResponse.execute(ACME, fetchedRequest.publicId, second);

    const { status, outcome } = await world.session(fetchedRequest.session.id);
    expect([status, outcome?.failure]).to.deep.equal(['completed', undefined]);
    expect(outcome?.deliveries?.map(({ result }) => result)).to.deep.equal(['delivered']);
    expect(world.webhooks.calls).to.have.length(1);
  });
});
