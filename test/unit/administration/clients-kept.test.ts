import { expect } from 'chai';
import {
  CreateClient,
  DeleteClient,
  GetClient,
  ListClients,
  UpdateClient,
} from '../../../application/clients/clients.ts';
import { ClientCreation, ClientUpdate } from '../../../domain/clients/client.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { type AdministrationWorld, anAdministration, endOf } from './kit.ts';
import { ACME } from './world.ts';

const OFFERS = { roles: ['issuance:offer'] };

describe('The list of clients of a tenant', () => {
  let world: AdministrationWorld;
  const admin = () => world.caller(['clients:manage', 'issuance:offer', 'issuance:manage']);
  const elsewhere = () => ({ ...admin(), tenantId: 'other' as TenantId });
  const create = (clientId: string, more: object = {}, by = admin()) =>
    new CreateClient(world).execute(by, ClientCreation.parse({ clientId, ...OFFERS, ...more }));
  const update = (clientId: string, changes: object, by = admin()) =>
    new UpdateClient(world).execute(by, clientId, ClientUpdate.parse({ ...OFFERS, ...changes }));
  const get = (clientId: string, by = admin()) => new GetClient(world).execute(by, clientId);
  const remove = (clientId: string, by = admin()) => new DeleteClient(world).execute(by, clientId);
  const ids = async () => (await new ListClients(world).execute(admin())).map(({ clientId }) => clientId);

  beforeEach(async () => {
    world = await anAdministration();
    await world.store.prepare('the shop', () => create('shop', { description: 'The shop' }));
    await world.hasStranger('other');
  });

  it('is in order of the ids, and is that of one tenant', async () => {
    await create('a-first');
    await create('theirs', {}, elsewhere());
    expect(await ids()).to.deep.equal(['a-first', 'shop']);
  });

  it('has what was given, with each role once, and defaults for the rest', async () => {
    await create('twice', { roles: ['issuance:offer', 'issuance:offer'] });
    expect(await get('twice')).to.deep.include({
      ...{ tenantId: ACME, description: null, roles: ['issuance:offer'] },
      ...{ allowedPresentationConfigs: null, allowedIssuanceConfigs: null },
    });
    expect(await get('shop')).to.include({ description: 'The shop' });
  });

  it('changes in what is said, and forgets what is set to null', async () => {
    world.clock.forward(1_000);
    const changed = await update('shop', { roles: ['issuance:manage'], allowedIssuanceConfigs: ['pid'] });
    expect(changed).to.deep.include({
      ...{ roles: ['issuance:manage'], allowedIssuanceConfigs: ['pid'], description: 'The shop' },
      updatedAt: world.clock.now(),
    });
    const { findings, ...stored } = changed;
    expect(await get('shop')).to.deep.equal(stored);
    expect(findings?.[0]?.message, 'nothing is called so').to.include('"pid"');
    const reset = await update('shop', { description: null, allowedIssuanceConfigs: null });
    expect(reset).to.include({ description: null, allowedIssuanceConfigs: null });
  });

  it('loses a client once, and its name is free again', async () => {
    await remove('shop');
    expect(await ids()).to.deep.equal([]);
    expect(await endOf(remove('shop'))).to.equal('not_found');
    await create('shop');
    expect(await get('shop')).to.include({ description: null });
  });

  const refusals: [string, () => Promise<unknown>, string][] = [
    ['an id that is taken', () => create('shop'), 'conflict'],
    ['an id that another tenant has', () => create('shop', {}, elsewhere()), 'conflict'],
    ['the id of the root client', () => create('root'), 'conflict'],
    ["the name of another tenant's administrator", () => create('beta-admin'), 'invalid_input clientId'],
    ['a role that the maker lacks', () => create('more', { roles: ['registrar:manage'] }), 'forbidden'],
    [
      'the role that manages tenants',
      () => create('more', { roles: ['tenants:manage'] }),
      'invalid_input roles',
    ],
    ['a look at nobody', () => get('nobody'), 'not_found'],
    ["a look at another tenant's client", () => get('shop', elsewhere()), 'not_found'],
    ['a change of nobody', () => update('nobody', {}), 'not_found'],
    ["a change of another tenant's client", () => update('shop', {}, elsewhere()), 'not_found'],
    [
      'a change to a role that the changer lacks',
      () => update('shop', { roles: ['registrar:manage'] }),
      'forbidden',
    ],
    [
      'a change to the role that manages tenants',
      () => update('shop', { roles: ['tenants:manage'] }),
      'invalid_input roles',
    ],
    ['the removal of nobody', () => remove('nobody'), 'not_found'],
    ["the removal of another tenant's client", () => remove('shop', elsewhere()), 'not_found'],
  ];
  for (const [what, attempt, end] of refusals) {
    it(`refuses ${what}: ${end}`, async () => {
      const before = await ids();
      expect(await endOf(attempt())).to.equal(end);
      expect(await ids()).to.deep.equal(before);
    });
  }

  const documents: [string, object, string][] = [
    ['an id with spaces', { clientId: 'a b' }, 'clientId'],
    ['no id', { clientId: undefined }, 'clientId'],
    ['no roles', { roles: [] }, 'roles'],
    ['roles left out', { roles: undefined }, 'roles'],
    ['an unknown role', { roles: ['everything'] }, 'roles.0'],
    ['a short secret', { secret: 'short' }, 'secret'],
    ['a restriction that is no list', { allowedIssuanceConfigs: 'pid' }, 'allowedIssuanceConfigs'],
  ];
  for (const [what, change, path] of documents) {
    it(`takes no client with ${what}`, () => {
      const { error } = ClientCreation.safeParse({ clientId: 'fine', ...OFFERS, ...change });
      expect(error?.issues.map((issue) => issue.path.join('.'))).to.deep.equal([path]);
    });
  }
});
