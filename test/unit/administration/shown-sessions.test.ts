import { expect } from 'chai';
import type { TenantCaller } from '../../../application/caller.ts';
import { ShowSession } from '../../../application/sessions/show-session.ts';
import { TenantConfiguration } from '../../../application/tenant-configuration.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { rememberedCaller } from '../../support/remembered-caller.ts';
import { ACME, aSession, aWorld, codeOf, type World } from './world.ts';

describe('A session that is shown with the values of persons', () => {
  let world: World;
  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    await stepsOf(world.store, ACME).openSession(aSession(world.clock, 1));
  });

  const show = async (by: TenantCaller, id = 'session-1') => {
    const state = await stepsOf(world.store, ACME).state();
    const caller = { ...by, configured: new TenantConfiguration(world, state ?? by.configured.state) };
    return new ShowSession(world).execute(await rememberedCaller(caller), id as SessionId);
  };
  const records = () =>
    world.store.forTenant(ACME, ({ audit }) => audit.list({ action: 'shown', limit: 100 }));

  it('leaves a record of each time, with who it was', async () => {
    const caller = world.caller(['presentation:request']);
    expect((await show(caller)).session.id).to.equal('session-1');
    await show(caller);
    expect((await records()).map(({ actor, kind, target }) => [actor, kind, target])).to.deep.equal(
      Array(2).fill(['acme-admin', 'session', 'session-1']),
    );
  });

  it('is shown to nobody who may not know of it, and leaves no record of that', async () => {
    const REFUSED: readonly TenantCaller[] = [
      world.caller(['issuance:offer']),
      world.caller(['registrar:manage']),
      world.caller(['presentation:request'], { allowedPresentationConfigs: ['other'] }),
    ];
    for (const caller of REFUSED) expect(await codeOf(show(caller))).to.equal('not_found');
    expect(await codeOf(show(world.caller(['presentation:request']), 'nothing'))).to.equal('not_found');
    expect(await records()).to.deep.equal([]);
  });
});
