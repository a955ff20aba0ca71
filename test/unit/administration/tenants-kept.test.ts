import { expect } from 'chai';
import { GetOwnSettings, UpdateOwnSettings } from '../../../application/tenants/own-settings.ts';
import {
  CreateTenant,
  DeleteTenant,
  GetTenant,
  ListTenants,
  UpdateTenant,
} from '../../../application/tenants/tenants.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { parseWritten } from '../../../domain/shared/read-written.ts';
import { TenantCreation, TenantUpdate } from '../../../domain/tenants/tenant.ts';
import { type AdministrationWorld, anAdministration, endOf } from './kit.ts';
import { ACME, ROOT } from './world.ts';

describe('The list of tenants', () => {
  let world: AdministrationWorld;
  const create = (wanted: object) =>
    new CreateTenant(world).execute(ROOT, TenantCreation.parse({ name: 'Somebody', ...wanted }));
  const get = (id: string) => new GetTenant(world).execute(ROOT, id as TenantId);
  const update = (id: string, changes: object) =>
    new UpdateTenant(world).execute(ROOT, id as TenantId, TenantUpdate.parse(changes));
  const remove = (id: string) => new DeleteTenant(world).execute(ROOT, id as TenantId);
  const list = async () =>
    (await new ListTenants(world).execute()).map(({ tenant, clients }) => [
      tenant.id,
      ...clients.map(({ clientId }) => clientId),
    ]);

  beforeEach(async () => {
    world = await anAdministration();
  });

  it('is in order of the ids, each with its clients', async () => {
    await create({ id: 'aardvark', roles: ['clients:manage'] });
    await create({ id: 'zebra' });
    expect(await list()).to.deep.equal([['aardvark', 'aardvark-admin'], ['acme'], ['zebra']]);
  });

  it('shows each as it was made', async () => {
    const wanted = {
      id: 'beta',
      name: 'Beta',
      sessionConfig: { ttlSeconds: 100 },
      statusListConfig: { bits: 2 },
    };
    const { tenant } = await create(wanted);
    expect(tenant).to.deep.include({ ...wanted, description: null, status: 'active' });
    expect(await get('beta')).to.deep.equal({ tenant, clients: [] });
  });

  it('changes in what is said, and every process is told', async () => {
    world.clock.forward(1_000);
    const { tenant } = await update('acme', { name: 'Acme & Co', description: 'More', status: 'suspended' });
    expect(tenant).to.deep.include({ name: 'Acme & Co', description: 'More', status: 'suspended' });
    expect(tenant.updatedAt).to.deep.equal(world.clock.now());
    expect((await update('acme', { description: null })).tenant).to.include({
      description: null,
      name: 'Acme & Co',
    });
    expect(world.woken).to.deep.equal(Array(2).fill({ type: 'tenant', tenantId: 'acme' }));
  });

  it('loses one with all that it had, and every process is told', async () => {
    await create({ id: 'beta', roles: ['clients:manage'] });
    await remove('beta');
    expect(world.woken).to.deep.equal([{ type: 'tenant', tenantId: 'beta' }]);
    expect(await list()).to.deep.equal([['acme']]);
    const { keyChains, clients } = await world.store.forTenant('beta' as TenantId, async (own) => ({
      keyChains: await own.keyChains.list(),
      clients: await own.clients.list(),
    }));
    expect([keyChains, clients]).to.deep.equal([[], []]);
    await create({ id: 'beta' });
    expect(await list()).to.deep.equal([['acme'], ['beta']]);
  });

  it('loses one also when its remains cannot be removed now', async () => {
    const { maintenance } = world.store;
    Object.assign(maintenance, { removeRemains: () => Promise.reject(new Error('locked')) });
    expect(await endOf(remove('acme'))).to.equal('done');
    expect(await endOf(get('acme'))).to.equal('not_found');
  });

  const refusals: [string, () => Promise<unknown>, string][] = [
    ['a look at nobody', () => get('nobody'), 'not_found'],
    ['a tenant whose id is taken', () => create({ id: 'acme' }), 'conflict'],
    [
      'an administrator who manages tenants',
      () => create({ id: 'beta', roles: ['tenants:manage'] }),
      'invalid_input roles',
    ],
    ['a change of nobody', () => update('nobody', { name: 'X' }), 'not_found'],
    ['an administrator for nobody', () => update('nobody', { roles: ['clients:manage'] }), 'not_found'],
    [
      'a change to an administrator who manages tenants',
      () => update('acme', { roles: ['tenants:manage'] }),
      'invalid_input roles',
    ],
    ['the removal of nobody', () => remove('nobody'), 'not_found'],
  ];
  for (const [what, attempt, end] of refusals) {
    it(`refuses ${what}: ${end}`, async () => {
      const before = await new ListTenants(world).execute();
      expect(await endOf(attempt())).to.equal(end);
      expect(await new ListTenants(world).execute()).to.deep.equal(before);
    });
  }

  const reserved = [
    ...['tenant', 'client', 'certs', 'session', 'session-config', 'status-lists', 'status-list-config'],
    ...['issuer', 'verifier', 'trust-list', 'cache', 'registrar', 'oauth2', 'health', 'docs', 'key-chain'],
    ...['key', 'deferred_credential'],
  ];
  const invalid: [string, object, string][] = [
    ...reserved.map((id): [string, object, string] => [`the reserved id ${id}`, { id }, 'id']),
    ['an id with upper case', { id: 'Acme' }, 'id'],
    ['an id with a dot', { id: '.well-known' }, 'id'],
    ['an id with a slash', { id: 'a/b' }, 'id'],
    ['an id that begins with a hyphen', { id: '-a' }, 'id'],
    ['an id of 64 characters', { id: 'a'.repeat(64) }, 'id'],
    ['no id', { id: undefined }, 'id'],
    ['no name', { name: '  ' }, 'name'],
    ['an unknown role', { roles: ['admin'] }, 'roles.0'],
    ['the role that manages tenants', { roles: ['tenants:manage'] }, 'roles'],
    ['sessions shorter than a minute', { sessionConfig: { ttlSeconds: 59 } }, 'sessionConfig.ttlSeconds'],
    ['an unknown clean-up', { sessionConfig: { cleanupMode: 'none' } }, 'sessionConfig.cleanupMode'],
    ['status lists under 100', { statusListConfig: { capacity: 99 } }, 'statusListConfig.capacity'],
    ['three bits', { statusListConfig: { bits: 3 } }, 'statusListConfig.bits'],
    ['status lists of a moment', { statusListConfig: { ttl: 59 } }, 'statusListConfig.ttl'],
  ];
  for (const [what, change, path] of invalid) {
    it(`takes none with ${what}`, async () => {
      const wanted = async () =>
        new CreateTenant(world).execute(
          ROOT,
          parseWritten(TenantCreation, { id: 'fine', name: 'Fine', ...change }),
        );
      expect(await endOf(wanted())).to.equal(`invalid_input ${path}`);
      expect(await list()).to.deep.equal([['acme']]);
    });
  }

  describe('as a tenant sees itself', () => {
    const caller = () => world.caller(['issuance:manage']);
    const own = () => new GetOwnSettings({}).execute(caller());
    const change = (wanted: object) => new UpdateOwnSettings(world).execute(caller(), wanted);

    it('has its settings, field by field, until they are reset', async () => {
      expect(await own()).to.include({ id: 'acme', sessionConfig: null, statusListConfig: null });
      await change({ sessionConfig: { ttlSeconds: 100 }, statusListConfig: { bits: 2, ttl: 90 } });
      await change({ statusListConfig: { bits: null } });
      expect(await own()).to.deep.include({
        sessionConfig: { ttlSeconds: 100 },
        statusListConfig: { ttl: 90 },
      });
      await change({ sessionConfig: null, statusListConfig: { ttl: null } });
      expect(await own()).to.include({ sessionConfig: null, statusListConfig: null, name: 'Acme' });
    });

    it('refuses settings when somebody else changed the tenant at the same time: conflict', async () => {
      const stale = await world.store.forTenant(ACME, ({ tenant }) => tenant.get());
      await change({ statusListConfig: { bits: 2 } });
      const save = world.write(({ tenant }) => tenant.save({ ...stale, name: 'Late' }));
      expect(await endOf(save)).to.equal('conflict');
    });

    it('refuses settings of a tenant that is gone: not_found', async () => {
      const gone = caller();
      await remove('acme');
      expect(await endOf(new UpdateOwnSettings(world).execute(gone, { sessionConfig: null }))).to.equal(
        'not_found',
      );
      expect(await endOf(new GetOwnSettings({}).execute(gone))).to.equal('not_found');
    });
  });
});
