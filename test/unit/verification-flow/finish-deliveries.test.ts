import { expect } from 'chai';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { FinishDeliveries } from '../../../application/sessions/finish-deliveries.ts';
import { RetryDelivery } from '../../../application/sessions/retry-delivery.ts';
import { SessionNotes } from '../../../application/sessions/session-notes.ts';
import type { Change, Committed } from '../../../domain/changes/change.ts';
import { ACME, formOf, present, World } from './kit.ts';

describe('A presentation whose process dies while its backend is called', () => {
  let world: World;
  let finishDeliveries: FinishDeliveries;

  beforeEach(async () => {
    world = await World.make();
    finishDeliveries = new FinishDeliveries({ ...world, sessionNotes: new SessionNotes(world) });
    await world.configure();
  });

  /** By the clock of the database. */
  const later = (seconds: number) => new Date(Date.now() + seconds * 1000);
  const due = () => world.store.maintenance.dueDeliveries(later(3_600), 10, 10);

  /** Nothing of what comes after the call is stored. @param isGood whether the presentation is. */
  async function brokenOff(isGood = true) {
    const asked = await world.request();
    const form = await formOf(asked, { card: isGood ? [present(world, asked)] : ['x'] });
    const { commit } = world.store;
    let isDead = false;
    world.webhooks.beforeAnswer = async () => {
      isDead = true;
    };
    world.store.commit = async (tenantId, change: Change, now): Promise<Committed> => {
      if (isDead) throw new Error('the process is dead');
      return commit.call(world.store, tenantId, change, now);
    };
    const failed = await world.receiveResponse.execute(ACME, asked.publicId, form).catch(() => 'failed');
    world.store.commit = commit;
    world.webhooks.beforeAnswer = async () => {};
    expect([failed, isDead]).to.deep.equal(['failed', true]);
    return asked.session.id;
  }

  it('is finished by whoever comes next: the backend hears it once more under the same id', async () => {
    const id = await brokenOff();
    const left = await world.session(id);
    expect([left.status, left.outcome?.deliveries?.[0]?.result]).to.deep.equal(['fetched', 'pending']);

    expect(await finishDeliveries.execute(later(0), 10), 'while it may still be under way').to.equal(0);
    expect(await finishDeliveries.execute(later(70), 10)).to.equal(1);

    const [first, second, ...more] = world.webhooks.calls;
    expect(more).to.deep.equal([]);
    expect(second).to.deep.equal(first);
    const session = await world.session(id);
    expect(session.status).to.equal('completed');
    expect(session.outcome?.deliveries).to.have.length(1);
    expect(session.outcome?.deliveries?.[0]?.result).to.equal('delivered');
    expect(session.outcome?.credentials).to.have.length(1);
    expect(await due()).to.deep.equal([]);
  });

  it('fails when the backend refuses it then', async () => {
    const id = await brokenOff();
    world.webhooks.answer = new WebhookError('bad_status', 'HTTP 500', { status: 500 });
    await finishDeliveries.execute(later(70), 10);
    const session = await world.session(id);
    expect([session.status, session.outcome?.failure?.code]).to.deep.equal(['failed', 'webhook_failed']);
    expect(await due(), 'one attempt, as ever').to.deep.equal([]);
  });

  it('is not tried for ever where a fault of ours breaks it off each time', async () => {
    const id = await brokenOff();
    world.webhooks.answer = new Error('a bug') as WebhookError;
    await finishDeliveries.execute(later(70), 10);
    const { status, outcome } = await world.session(id);
    expect([status, outcome?.deliveries?.[0]?.result]).to.deep.equal(['failed', 'failed']);
    expect(world.log.errors.map(({ cause }) => String(cause))).to.deep.equal(['Error: a bug']);
    expect(await due()).to.deep.equal([]);
  });

  it('has its backend told of a refusal, too', async () => {
    const id = await brokenOff(false);
    expect((await world.session(id)).status, 'recorded before the call').to.equal('failed');
    await finishDeliveries.execute(later(70), 10);
    const [first, second] = world.webhooks.calls;
    expect(second).to.deep.equal(first);
    const session = await world.session(id);
    expect(session.outcome?.deliveries?.[0]?.result).to.equal('delivered');
    expect(session.outcome?.failure?.code, 'why it failed').to.equal('presentation_refused');
  });

  it('is finished once, however many come at the same time', async () => {
    await brokenOff();
    const looked = Array.from({ length: 20 }, () => finishDeliveries.execute(later(70), 10));
    await Promise.all(looked);
    expect(world.webhooks.calls).to.have.length(2);
  });

  it('does not expire meanwhile, however late somebody comes', async () => {
    const id = await brokenOff();
    const afterwards = later(10 * 86_400);
    const { expired, overdue } = await world.store.maintenance.expireSessions(afterwards, 10);
    expect([...expired, ...overdue]).to.deep.equal([]);
    await finishDeliveries.execute(afterwards, 10);
    expect((await world.session(id)).status).to.equal('completed');
  });

  for (const [what, answer, expected] of [
    ['taken', undefined, ['completed', undefined]],
    ['refused', new WebhookError('bad_status', 'HTTP 500', { status: 500 }), ['failed', 'webhook_failed']],
  ] as const) {
    it(`ends by a client that makes it before the job does, when it is ${what}`, async () => {
      const id = await brokenOff();
      world.webhooks.answer = answer;
      world.clock.time += 61_000;
      const [pending] = (await world.session(id)).outcome?.deliveries ?? [];
      await new RetryDelivery(world).execute(await world.caller(), id, pending?.id ?? '');
      const { status, outcome } = await world.session(id);
      expect([status, outcome?.failure?.code]).to.deep.equal(expected);
      expect([world.webhooks.calls.length, await due()]).to.deep.equal([2, []]);
    });
  }

  it('leaves nothing behind when its session is gone', async () => {
    const id = await brokenOff();
    await world.store.commit(ACME, { removes: id }, world.clock.now());
    await finishDeliveries.execute(later(70), 10);
    expect([world.webhooks.calls.length, await due()]).to.deep.equal([1, []]);
  });

  it('is not made while its tenant is suspended, but afterwards', async () => {
    const id = await brokenOff();
    const become = (status: 'active' | 'suspended') =>
      world.store.forTenant(
        ACME,
        async ({ tenant }) => {
          await tenant.save({ ...(await tenant.get()), status });
        },
        { by: 'system' },
      );
    await become('suspended');
    await finishDeliveries.execute(later(70), 10);
    expect([world.webhooks.calls.length, (await world.session(id)).status]).to.deep.equal([1, 'fetched']);
    expect(await world.store.maintenance.dueDeliveries(later(80), 10, 10), 'not at once').to.deep.equal([]);
    await become('active');
    await finishDeliveries.execute(later(3_600), 10);
    expect([world.webhooks.calls.length, (await world.session(id)).status]).to.deep.equal([2, 'completed']);
  });

  it('is looked at later when nobody can read it now', async () => {
    await brokenOff();
    const { read } = world.store;
    world.store.read = () => {
      throw new Error('it does not open');
    };
    await finishDeliveries.execute(later(70), 10);
    world.store.read = read;
    expect(await world.store.maintenance.dueDeliveries(later(71), 10, 10)).to.deep.equal([]);
    expect(await due()).to.have.length(1);
  });
});
