import { expect } from 'chai';
import { FolderFaults } from '../../../application/configuration-files/import-folder.ts';
import { RemoveEndedTenants } from '../../../application/tenants/remove-ended-tenants.ts';
import { ListTenants } from '../../../application/tenants/tenants.ts';
import { aFolderWorld, CARD, type FolderWorld } from './folder-kit.ts';

const HOUR_MS = 3_600_000;

describe('A folder with a tenant whose time is over', () => {
  let world: FolderWorld;
  let told: string[];
  beforeEach(async () => {
    world = await aFolderWorld();
    told = [];
    Object.assign(world.log, {
      warn: (message: string) => {
        if (message.includes('endsAt')) told.push(message);
      },
    });
  });
  const inHours = (hours: number) => new Date(world.clock.now().getTime() + hours * HOUR_MS).toISOString();
  const folder = (endsAt: string) => ({
    'beta/tenant.json': { name: 'Beta', endsAt },
    'beta/issuance/credentials/card.json': CARD,
    'gamma/tenant.json': { name: 'Gamma' },
  });
  const tenants = async () => (await new ListTenants(world).execute()).map(({ tenant }) => tenant.id);
  const WARNING = /^configuration folder: beta\/tenant\.json: endsAt: the time of this tenant was over at /;

  it('is imported without it, and that is said in one line', async () => {
    await world.load(folder(inHours(-1)));
    expect(await tenants()).to.deep.equal(['acme', 'gamma']);
    expect(told).to.have.length(1);
    expect(told[0]).to.match(WARNING);
  });

  it('is imported while it is being removed, and afterwards, as often as it starts', async () => {
    const written = folder(inHours(1));
    await world.load(written);
    expect(await tenants()).to.include('beta');
    world.clock.forward(HOUR_MS);
    await world.load(written);
    expect(told[0]).to.include('it is being removed');
    await new RemoveEndedTenants(world).execute(world.clock.now(), 100);
    await world.load(written);
    expect(told[1]).to.include('it is not made again');
    expect(await tenants()).to.deep.equal(['acme', 'gamma']);
  });

  it('waits with a later time until the removal is done, and makes it anew then', async () => {
    await world.load(folder(inHours(1)));
    world.clock.forward(HOUR_MS);
    await world.load(folder(inHours(5)));
    expect(told).to.have.length(1);
    await new RemoveEndedTenants(world).execute(world.clock.now(), 100);
    await world.load(folder(inHours(5)));
    expect(await tenants()).to.include('beta');
  });

  it('is refused where the tenant is there: nobody is ended by a time that was mistyped', async () => {
    await world.load({ 'beta/tenant.json': { name: 'Beta' } });
    const refused = await world.load(folder(inHours(-1))).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(FolderFaults);
    expect((refused as FolderFaults).faults.map(({ file, path }) => `${file} ${path}`)).to.include(
      'beta/tenant.json endsAt',
    );
    expect(await tenants()).to.deep.equal(['acme', 'beta']);
  });

  it('is judged all the same: its other files may not be wrong', async () => {
    const wrong = { ...folder(inHours(-1)), 'beta/issuance/credentials/card.json': { ...CARD, lifeTime: 1 } };
    const { faults, warnings } = await world.check(wrong);
    expect(faults.map(({ path }) => path)).to.deep.equal(['lifeTime']);
    expect(warnings.map(({ path }) => path)).to.deep.equal(['endsAt']);
  });
});
