import { expect } from 'chai';
import type { TenantCaller } from '../../../application/caller.ts';
import { Webhooks } from '../../../application/ports/webhooks.ts';
import { CancelSession } from '../../../application/sessions/cancel-session.ts';
import { RetryDelivery } from '../../../application/sessions/retry-delivery.ts';
import { TenantConfiguration } from '../../../application/tenant-configuration.ts';
import { redelivery } from '../../../domain/sessions/redelivery.ts';
import type { Delivery, Session } from '../../../domain/sessions/session.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { rememberedCaller } from '../../support/remembered-caller.ts';
import { ACME, aSession, aWorld, codeOf, type World } from './world.ts';

describe('A session that its caller steers', () => {
  let world: World;

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
  });

  const open = async (more: Partial<Session> = {}): Promise<Session> => {
    const session = { ...aSession(world.clock, 1), ...more };
    await stepsOf(world.store, ACME).openSession(session);
    return session;
  };
  const caller = () => world.caller(['issuance:offer', 'presentation:request']);
  const asking = async (by: TenantCaller) => {
    const state = await stepsOf(world.store, ACME).state();
    return rememberedCaller({
      ...by,
      configured: new TenantConfiguration(world, state ?? by.configured.state),
    });
  };
  const cancel = async ({ id }: Session, by = caller()) =>
    new CancelSession(world).execute(await asking(by), id);

  it('is cancelled while it is open, and then no more', async () => {
    const session = await open();
    const { session: ended } = await cancel(session);
    expect([ended.status, ended.outcome?.failure?.code]).to.deep.equal(['failed', 'cancelled']);
    expect(await codeOf(cancel(session))).to.equal('conflict');
  });

  it('is not cancelled after its time, once it is answered, or by who must not know it', async () => {
    const answered = await open({ claimedAt: world.clock.now() });
    expect(await codeOf(cancel(answered))).to.equal('conflict');
    world.clock.forward(10_000_000);
    expect(await codeOf(cancel(answered))).to.equal('conflict');
    const stranger = world.caller(['registrar:manage']);
    expect(await codeOf(cancel(answered, stranger))).to.equal('not_found');
  });

  const FAILED: Delivery = {
    id: 'd',
    webhook: 'presentation',
    at: new Date(0).toISOString(),
    result: 'failed',
    detail: 'why',
  };
  const withDelivery = (delivery: Partial<Delivery>, more: object = { credentials: [] }): Session => ({
    ...aSession(world.clock, 2),
    outcome: { deliveries: [{ ...FAILED, ...delivery }], ...more },
  });
  const CASES: Readonly<Record<string, readonly [Partial<Delivery>, object?, string?]>> = {
    'is made again when it failed': [{}],
    'is made again when nobody recorded it': [{ result: 'pending' }],
    'is not made again when it was delivered': [{ result: 'delivered' }, {}, 'conflict'],
    'is not made again for claims': [{ webhook: 'claims' }, {}, 'conflict'],
    'is not made again when nothing is kept of it': [{}, {}, 'gone'],
    'is unknown under another id': [{ id: 'other' }, {}, 'not_found'],
  };
  for (const [name, [delivery, more, refused]] of Object.entries(CASES)) {
    it(`has a delivery that ${name}`, async () => {
      const session = withDelivery(delivery, more);
      const work = async () => redelivery(session, 'd', world.clock.now());
      expect(await codeOf(work())).to.equal(refused);
      if (refused !== undefined) return;
      const { intent, content } = await work();
      expect(intent).to.deep.include({ id: 'd', result: 'pending' });
      expect(intent).to.not.have.property('detail');
      expect(content).to.deep.equal({ credentials: [] });
    });
  }

  it('has no delivery made again while one is under way', async () => {
    const session = withDelivery({ result: 'pending', at: world.clock.now().toISOString() });
    const work = async () => redelivery(session, 'd', world.clock.now());
    expect(await codeOf(work())).to.equal('conflict');
  });

  it('has no delivery made again whose webhook is gone', async () => {
    class NoWebhooks extends Webhooks {
      override refuses(): boolean {
        return true;
      }
      override post(): Promise<never> {
        throw new Error('nothing is called');
      }
    }
    const session = await open({ outcome: withDelivery({}).outcome });
    const retry = new RetryDelivery({ ...world, webhooks: new NoWebhooks() });
    expect(await codeOf(retry.execute(caller(), session.id, 'd'))).to.equal('gone');
  });
});
