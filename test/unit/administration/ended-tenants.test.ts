import { expect } from 'chai';
import type { WakeUp } from '../../../application/ports/event-bus.ts';
import { RemoveEndedTenants } from '../../../application/tenants/remove-ended-tenants.ts';
import { GetTenant, UpdateTenant } from '../../../application/tenants/tenants.ts';
import { ACME, aWorld, codeOf, MANAGER, ROOT, type World } from './world.ts';

const HOUR_MS = 3_600_000;

describe('Tenants whose time is over', () => {
  let world: World;
  const inHours = (hours: number) => new Date(world.clock.now().getTime() + hours * HOUR_MS).toISOString();
  const run = (now = world.clock.now()) => new RemoveEndedTenants(world).execute(now, 100);
  const isThere = async () => (await codeOf(new GetTenant(world).execute(MANAGER, ACME))) === undefined;

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant({ endsAt: inHours(1) });
  });

  it('are removed, once, and everybody hears of it', async () => {
    const heard: WakeUp[] = [];
    world.eventBus.subscribe((event) => heard.push(event));
    world.clock.forward(HOUR_MS);
    expect(await run()).to.deep.equal({ removed: 1, mayBeMore: false });
    expect(await run()).to.deep.equal({ removed: 0, mayBeMore: false });
    expect(await isThere()).to.equal(false);
    expect(heard.filter(({ type }) => type === 'tenant')).to.deep.equal([{ type: 'tenant', tenantId: ACME }]);
  });

  it('stay until then, and while one of two clocks says so', async () => {
    expect((await run()).removed).to.equal(0);
    // The clock of the database is ahead.
    expect((await run(new Date(inHours(2)))).removed).to.equal(0);
    const before = world.clock.now();
    world.clock.forward(2 * HOUR_MS);
    // The clock of this process is ahead.
    expect((await run(before)).removed).to.equal(0);
    expect(await isThere()).to.equal(true);
  });

  it('are not brought back by a change that comes before their removal', async () => {
    world.clock.forward(HOUR_MS);
    for (const change of [{ endsAt: null }, { endsAt: inHours(1) }, { name: 'Again' }])
      expect(await codeOf(new UpdateTenant(world).execute(ROOT, ACME, change))).to.equal('conflict');
    expect((await run()).removed).to.equal(1);
  });
});
