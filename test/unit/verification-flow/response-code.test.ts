import { expect } from 'chai';
import sinon from 'sinon';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { FinishDeliveries } from '../../../application/sessions/finish-deliveries.ts';
import { SessionNotes } from '../../../application/sessions/session-notes.ts';
import { EndOverdueAnswers } from '../../../application/verification/end-overdue-answers.ts';
import { ResultDelivery } from '../../../application/verification/result-delivery.ts';
import { SessionOutcomes } from '../../../application/verification/session-outcomes.ts';
import { SpendResponseCode } from '../../../application/verification/spend-response-code.ts';
import { noted } from '../../../domain/sessions/session-change.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { rememberedCaller } from '../../support/remembered-caller.ts';
import { ACME, formOf, present, World } from './kit.ts';

/** What the job does with sessions whose time is over by the clock of this world. */
async function endOverdue(world: World): Promise<number> {
  const { overdue } = await world.store.maintenance.expireSessions(world.clock.now(), 100);
  return new EndOverdueAnswers(world).execute(overdue);
}

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const outcome = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof Failure) return outcome;
  throw new Error(`no failure: ${String(outcome)}`);
}

const redirectUri = 'https://shop.example/done?s={sessionId}';

describe('spending a response code', () => {
  let world: World;
  let useCase: SpendResponseCode;

  beforeEach(async () => {
    world = await World.make();
    const resultDelivery = new ResultDelivery(world);
    useCase = new SpendResponseCode({
      ...world,
      resultDelivery,
      sessionOutcomes: new SessionOutcomes(world),
    });
  });

  async function answered(changes: object) {
    await world.configure({ redirectUri, ...changes });
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked)] });
    const { redirect_uri = '' } = await world.receiveResponse.execute(ACME, asked.publicId, form);
    return { id: asked.session.id, code: new URL(redirect_uri).searchParams.get('response_code') ?? '' };
  }
  const spend = async ({ id, code }: Awaited<ReturnType<typeof answered>>, given = code) =>
    useCase.execute(rememberedCaller(await world.caller()), id, given);
  const webhook = { url: 'https://shop.example/presented' };

  it('proves the browser once where nothing waits for it', async () => {
    const waiting = await answered({ webhook: undefined });
    expect((await failureOf(spend(waiting, 'wrong'))).code).to.equal('forbidden');
    expect((await spend(waiting)).session.status).to.equal('completed');
    expect((await failureOf(spend(waiting))).code).to.equal('forbidden');
  });

  it('proves nothing once a database that was put back is fenced', async () => {
    const waiting = await answered({ webhook: undefined });
    world.store.fencedAt = world.clock.now();
    expect((await failureOf(spend(waiting))).code).to.equal('forbidden');
    world.store.fencedAt = new Date(world.clock.now().getTime() - 1);
    expect((await spend(waiting)).session.status).to.equal('completed');
  });

  it('completes what waits for it, without a trace of the waiting', async () => {
    const waiting = await answered({ webhook: undefined, requireResponseCode: true });
    const before = await world.session(waiting.id);
    expect([before.status, before.outcome?.credentials]).to.deep.equal(['fetched', undefined]);
    const { session } = await spend(waiting);
    const stored = await world.session(waiting.id);
    expect([session.status, stored.status]).to.deep.equal(['completed', 'completed']);
    expect(stored.outcome?.credentials).to.have.length(1);
    expect(stored.outcome).to.not.have.property('awaiting');
  });

  for (const [what, more] of [
    ['nothing waits for it', {}],
    ['the result waits for it', { requireResponseCode: true }],
    ['a webhook is called', { requireResponseCode: true, webhook }],
  ] as const) {
    it(`is good although something else is noted of the session meanwhile, where ${what}`, async () => {
      const waiting = await answered({ webhook: undefined, ...more });
      const commit = world.store.commit.bind(world.store);
      const slow = sinon.stub(world.store, 'commit').callThrough();
      slow.onFirstCall().callsFake(async (tenantId, change, now) => {
        const session = await world.session(waiting.id);
        const other = noted(session, session.outcome ?? {});
        expect((await commit(tenantId, { session: other }, now)).done).to.equal(true);
        return commit(tenantId, change, now);
      });
      expect((await spend(waiting)).session.status).to.equal('completed');
      expect((await failureOf(spend(waiting))).code).to.equal('forbidden');
    });
  }

  it('is refused in the end where something else is always noted', async () => {
    const waiting = await answered({ webhook: undefined, requireResponseCode: true });
    const commit = sinon.stub(world.store, 'commit').resolves({ done: false, part: 'session' });
    expect((await failureOf(spend(waiting))).code).to.equal('forbidden');
    expect(commit.callCount).to.be.within(2, 10);
  });

  it('notes before the call that it was spent, and what came of the call', async () => {
    const waiting = await answered({ webhook, requireResponseCode: true });
    world.webhooks.beforeAnswer = async () => {
      const { status, outcome } = await world.session(waiting.id);
      expect([status, outcome?.deliveries?.[0]?.result]).to.deep.equal(['fetched', 'pending']);
      expect((await failureOf(spend(waiting))).code, 'again, meanwhile').to.equal('forbidden');
    };
    expect((await spend(waiting)).session.status).to.equal('completed');
    expect(world.webhooks.calls).to.have.length(1);
    expect((await world.session(waiting.id)).outcome?.deliveries?.[0]?.result).to.equal('delivered');
  });

  it('fails the session when the webhook fails', async () => {
    const waiting = await answered({ webhook, requireResponseCode: true });
    world.webhooks.answer = new WebhookError('timeout', 'no answer');
    const { session } = await spend(waiting);
    expect([session.status, session.outcome?.failure?.code]).to.deep.equal(['failed', 'webhook_failed']);
  });

  it('waits until the end of its five minutes, for the webhook, too', async () => {
    const waiting = await answered({ webhook, requireResponseCode: true });
    world.clock.time += 299_000;
    world.webhooks.beforeAnswer = async () => {
      world.clock.time += 10_000;
    };
    expect((await spend(waiting)).session.status).to.equal('completed');
  });

  it('fails by the job when nobody brings it, and leaves nothing that was verified', async () => {
    const waiting = await answered({ webhook, requireResponseCode: true, lifeTime: 3600 });
    world.clock.time += 299_000;
    expect(await endOverdue(world)).to.equal(0);
    world.clock.time += 2_000;
    expect((await failureOf(spend(waiting))).code).to.equal('forbidden');
    expect(await endOverdue(world)).to.equal(1);
    const { status, outcome } = await world.session(waiting.id);
    expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'response_code_missing']);
    expect(outcome).to.not.have.any.keys('awaiting', 'credentials', 'report');
    expect(await endOverdue(world)).to.equal(0);
  });

  it('is not ended by the job while its backend hears of it, however long that takes', async () => {
    const waiting = await answered({ webhook, requireResponseCode: true });
    world.webhooks.beforeAnswer = async () => {
      world.clock.time += 700_000;
      expect(await endOverdue(world)).to.equal(0);
    };
    expect((await spend(waiting)).session.status).to.equal('completed');
  });

  it('is brought to its end by another process where the one that took it died', async () => {
    const waiting = await answered({ webhook, requireResponseCode: true });
    const { commit } = world.store;
    world.webhooks.beforeAnswer = async () => {
      world.store.commit = () => Promise.reject(new Error('the process is dead'));
    };
    await spend(waiting).catch(() => {});
    world.store.commit = commit;
    world.webhooks.beforeAnswer = async () => {};
    const { status, outcome } = await world.session(waiting.id);
    expect([status, outcome?.deliveries?.[0]?.result]).to.deep.equal(['fetched', 'pending']);
    const finishing = new FinishDeliveries({ ...world, sessionNotes: new SessionNotes(world) });
    expect(await finishing.execute(new Date(Date.now() + 70_000), 10)).to.equal(1);
    expect((await world.session(waiting.id)).status).to.equal('completed');
    expect(world.webhooks.calls).to.have.length(2);
    expect(world.webhooks.calls[1]).to.deep.equal(world.webhooks.calls[0]);
  });
});
