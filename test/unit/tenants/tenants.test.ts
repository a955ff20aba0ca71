import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { PickUpSecret } from '../../../application/clients/client-secrets.ts';
import type { WakeUp } from '../../../application/ports/event-bus.ts';
import { RemoveEndedTenants } from '../../../application/tenants/remove-ended-tenants.ts';
import { GetTenantSettings, mergeSettings, UpdateTenantSettings } from '../../../application/tenants/tenant-settings.ts';
import {
  CreateTenant,
  DeleteTenant,
  GetTenant,
  ListTenantRemovals,
  ListTenants,
  UpdateTenant,
} from '../../../application/tenants/tenants.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { parseInput } from '../../../domain/shared/parse-input.ts';
import { TenantCreation, TenantUpdate } from '../../../domain/tenants/tenant.ts';
import {
  ACME,
  type AdministrationWorld,
  anAdministration,
  aWorld,
  codeOf,
  MANAGER,
  outcomeOf,
  ROOT,
  type World,
} from '../administrators.ts';

describe('Tenants', () => {
  let world: World;
  beforeEach(() => {
    world = aWorld();
  });

  it('start with one key chain per usage, certified for the public host', async () => {
    await world.createTenant();
    const chains = await world.store.forTenant(ACME, ({ keyChains }) => keyChains.list());
    expect(chains.map(({ id, usages }) => [id, ...usages])).to.deep.equal([
      ['access', 'access'],
      ['signing', 'signing'],
      ['status-list', 'statusList'],
      ['trust-list', 'trustList'],
    ]);
    for (const chain of chains) {
      const leaf = new X509Certificate(Buffer.from(chain.active.certificates[0] ?? '', 'base64'));
      expect(leaf.checkHost('id.example')).to.equal('id.example');
    }
  });

  it('are created with an administrator whose secret is returned once and can be fetched once', async () => {
    const { clients, newSecret } = await world.createTenant({ roles: ['clients:manage'] });
    expect(clients.map(({ clientId, roles }) => [clientId, ...roles])).to.deep.equal([['acme-admin', 'clients:manage']]);
    expect(await new PickUpSecret(world).execute(MANAGER, 'acme-admin')).to.equal(newSecret?.secret);
    expect(await codeOf(new PickUpSecret(world).execute(MANAGER, 'acme-admin'))).to.equal('gone');
  });

  it('are created atomically', async () => {
    const roles = ['clients:manage' as const];
    await world.createTenant({ roles });
    const admin = (await new GetTenant(world).execute(MANAGER, ACME)).clients[0];
    expect(await codeOf(world.createTenant())).to.equal('conflict');
    // The administrator of the second tenant has an existing name.
    if (admin === undefined) throw new Error('no administrator');
    await world.store.forService(({ clients }) => clients.add({ ...admin, clientId: 'beta-admin' }), { by: 'system' });
    const beta = { id: 'beta' as typeof ACME };
    expect(await codeOf(world.createTenant({ ...beta, roles }))).to.equal('conflict');
    expect(await codeOf(new GetTenant(world).execute(MANAGER, beta.id))).to.equal('not_found');
    await world.createTenant(beta);
  });

  it('cannot have a client that manages tenants', async () => {
    expect(await codeOf(world.createTenant({ roles: ['tenants:manage'] }))).to.equal('invalid_input');
  });

  it('change only the given properties; null restores defaults', async () => {
    await world.createTenant({ sessionConfig: { ttlSeconds: 100, cleanupMode: 'anonymize' } });
    const update = new UpdateTenant(world);
    const { tenant } = await update.execute(ROOT, ACME, { sessionConfig: { ttlSeconds: null } });
    expect(tenant).to.deep.include({ name: 'Acme', sessionConfig: { cleanupMode: 'anonymize' } });
    const reset = await update.execute(ROOT, ACME, { sessionConfig: null, status: 'suspended' });
    expect(reset.tenant).to.include({ sessionConfig: null, status: 'suspended' });
  });

  it('get an administrator by a change of roles, and then change the roles of the administrator', async () => {
    await world.createTenant();
    const update = new UpdateTenant(world);
    const withOfferRole = await update.execute(ROOT, ACME, { roles: ['issuance:offer'] });
    expect(withOfferRole.newSecret?.clientId).to.equal('acme-admin');
    const changed = await update.execute(ROOT, ACME, { roles: ['issuance:manage'] });
    expect(changed.newSecret).to.equal(undefined);
    expect(changed.clients[0]?.roles).to.deep.equal(['issuance:manage']);
    expect(changed.clients[0]?.secretHash).to.equal(withOfferRole.clients[0]?.secretHash);
    expect(await codeOf(update.execute(ROOT, ACME, { roles: [] }))).to.equal('invalid_input');
    expect(await codeOf(update.execute(ROOT, 'unknown' as typeof ACME, { roles: ['issuance:offer'] }))).to.equal('not_found');
  });

  it('set their own defaults for status lists field by field', async () => {
    await world.createTenant();
    const updateSettings = new UpdateTenantSettings(world);
    const caller = world.caller(['issuance:manage']);
    await updateSettings.execute(caller, { statusListConfig: { bits: 2, ttl: 90 } });
    const tenant = await updateSettings.execute(caller, { statusListConfig: { ttl: null, immediateUpdate: true } });
    expect(tenant.statusListConfig).to.deep.equal({ bits: 2, immediateUpdate: true });
  });

  it('store no default values', () => {
    expect(mergeSettings({ a: 1, b: 2 }, undefined)).to.deep.equal({ a: 1, b: 2 });
    expect(mergeSettings({ a: 1 }, { a: null })).to.equal(null);
    expect(mergeSettings<{ a?: number; b?: number }>({ a: 1 }, { b: 3 })).to.deep.equal({ a: 1, b: 3 });
    expect(mergeSettings(null, {})).to.equal(null);
  });
});

describe('tenant list', () => {
  let world: AdministrationWorld;
  const create = (body: object) => new CreateTenant(world).execute(ROOT, TenantCreation.parse({ name: 'Other', ...body }));
  const get = (id: string) => new GetTenant(world).execute(ROOT, id as TenantId);
  const update = (id: string, changes: object) => new UpdateTenant(world).execute(ROOT, id as TenantId, TenantUpdate.parse(changes));
  const remove = (id: string) => new DeleteTenant(world).execute(ROOT, id as TenantId);
  const list = async () =>
    (await new ListTenants(world).execute()).map(({ tenant, clients }) => [tenant.id, ...clients.map(({ clientId }) => clientId)]);

  beforeEach(async () => {
    world = await anAdministration();
  });

  it('is in order of the ids, each with its clients', async () => {
    await create({ id: 'aardvark', roles: ['clients:manage'] });
    await create({ id: 'zebra' });
    expect(await list()).to.deep.equal([['aardvark', 'aardvark-admin'], ['acme'], ['zebra']]);
  });

  it('returns each tenant as it was created', async () => {
    const body = { id: 'beta', name: 'Beta', sessionConfig: { ttlSeconds: 100 }, statusListConfig: { bits: 2 } };
    const { tenant } = await create(body);
    expect(tenant).to.deep.include({ ...body, description: null, status: 'active' });
    expect(await get('beta')).to.deep.equal({ tenant, clients: [] });
  });

  it('marks a removed tenant until its data is removed', async () => {
    await create({ id: 'beta' });
    await world.store.forService(({ tenants }) => tenants.remove('beta' as TenantId), { by: 'system' });
    const removals = async () => (await new ListTenantRemovals(world).execute()).map(({ tenantId }) => tenantId);
    expect(await removals()).to.deep.equal(['beta']);
    expect(await list()).to.deep.equal([['acme']]);
    const { maintenance } = world.store;
    // The removal waits until processes with a cached tenant have finished their requests.
    const afterGracePeriod = new Date((await maintenance.time()).getTime() + 61_000);
    while ((await maintenance.removeRemainingRows(afterGracePeriod, 500)) > 0);
    expect(await removals()).to.deep.equal([]);
  });

  it('changes a tenant, and every process is notified', async () => {
    world.clock.forward(1_000);
    const { tenant } = await update('acme', { name: 'Acme & Co', description: 'More', status: 'suspended' });
    expect(tenant).to.deep.include({ name: 'Acme & Co', description: 'More', status: 'suspended' });
    expect(tenant.updatedAt).to.deep.equal(world.clock.now());
    expect((await update('acme', { description: null })).tenant).to.include({ description: null, name: 'Acme & Co' });
    expect(world.wakeUps).to.deep.equal(Array(2).fill({ type: 'tenant', tenantId: 'acme' }));
  });

  it('removes a tenant with all its data, and every process is notified', async () => {
    await create({ id: 'beta', roles: ['clients:manage'] });
    await remove('beta');
    expect(world.wakeUps).to.deep.equal([{ type: 'tenant', tenantId: 'beta' }]);
    expect(await list()).to.deep.equal([['acme']]);
    const { keyChains, clients } = await world.store.forTenant('beta' as TenantId, async (repositories) => ({
      keyChains: await repositories.keyChains.list(),
      clients: await repositories.clients.list(),
    }));
    expect([keyChains, clients]).to.deep.equal([[], []]);
    await create({ id: 'beta' });
    expect(await list()).to.deep.equal([['acme'], ['beta']]);
  });

  it('omits a removed tenant also when its data cannot be deleted yet', async () => {
    const { maintenance } = world.store;
    Object.assign(maintenance, { removeRemainingRows: () => Promise.reject(new Error('locked')) });
    expect(await outcomeOf(remove('acme'))).to.equal('done');
    expect(await outcomeOf(get('acme'))).to.equal('not_found');
  });

  const rejections: [string, () => Promise<unknown>, string][] = [
    ['a read of an unknown tenant', () => get('unknown'), 'not_found'],
    ['a tenant with an existing id', () => create({ id: 'acme' }), 'conflict'],
    ['an administrator who manages tenants', () => create({ id: 'beta', roles: ['tenants:manage'] }), 'invalid_input roles'],
    ['a change of an unknown tenant', () => update('unknown', { name: 'X' }), 'not_found'],
    ['an administrator for an unknown tenant', () => update('unknown', { roles: ['clients:manage'] }), 'not_found'],
    ['a change to an administrator who manages tenants', () => update('acme', { roles: ['tenants:manage'] }), 'invalid_input roles'],
    ['the removal of an unknown tenant', () => remove('unknown'), 'not_found'],
  ];
  for (const [description, attempt, outcome] of rejections) {
    it(`rejects ${description}: ${outcome}`, async () => {
      const before = await new ListTenants(world).execute();
      expect(await outcomeOf(attempt())).to.equal(outcome);
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
    ['status lists with a lifetime that is too short', { statusListConfig: { ttl: 59 } }, 'statusListConfig.ttl'],
  ];
  for (const [description, updateSettings, path] of invalid) {
    it(`rejects a tenant with ${description}`, async () => {
      const body = async () =>
        new CreateTenant(world).execute(ROOT, parseInput(TenantCreation, { id: 'fine', name: 'Fine', ...updateSettings }));
      expect(await outcomeOf(body())).to.equal(`invalid_input ${path}`);
      expect(await list()).to.deep.equal([['acme']]);
    });
  }

  describe('for a tenant that reads itself', () => {
    const caller = () => world.caller(['issuance:manage']);
    const repositories = () => new GetTenantSettings({}).execute(caller());
    const updateSettings = (body: object) => new UpdateTenantSettings(world).execute(caller(), body);

    it('returns its settings, field by field, until they are reset', async () => {
      expect(await repositories()).to.include({ id: 'acme', sessionConfig: null, statusListConfig: null });
      await updateSettings({ sessionConfig: { ttlSeconds: 100 }, statusListConfig: { bits: 2, ttl: 90 } });
      await updateSettings({ statusListConfig: { bits: null } });
      expect(await repositories()).to.deep.include({ sessionConfig: { ttlSeconds: 100 }, statusListConfig: { ttl: 90 } });
      await updateSettings({ sessionConfig: null, statusListConfig: { ttl: null } });
      expect(await repositories()).to.include({ sessionConfig: null, statusListConfig: null, name: 'Acme' });
    });

    it('rejects settings if the tenant was changed concurrently: conflict', async () => {
      const outdated = await world.store.forTenant(ACME, ({ tenant }) => tenant.get());
      await updateSettings({ statusListConfig: { bits: 2 } });
      const save = world.write(({ tenant }) => tenant.save({ ...outdated, name: 'Late' }));
      expect(await outcomeOf(save)).to.equal('conflict');
    });

    it('rejects settings of a removed tenant: not_found', async () => {
      const removedTenant = caller();
      await remove('acme');
      expect(await outcomeOf(new UpdateTenantSettings(world).execute(removedTenant, { sessionConfig: null }))).to.equal('not_found');
      expect(await outcomeOf(new GetTenantSettings({}).execute(removedTenant))).to.equal('not_found');
    });
  });
});

const HOUR_MS = 3_600_000;

describe('tenants after their expiry', () => {
  let world: World;
  const inHours = (hours: number) => new Date(world.clock.now().getTime() + hours * HOUR_MS).toISOString();
  const run = (now = world.clock.now()) => new RemoveEndedTenants(world).execute(now, 100);
  const doesExist = async () => (await codeOf(new GetTenant(world).execute(MANAGER, ACME))) === undefined;

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant({ endsAt: inHours(1) });
  });

  it('are removed once, and every process is notified', async () => {
    const wakeUps: WakeUp[] = [];
    world.eventBus.subscribe((event) => wakeUps.push(event));
    world.clock.forward(HOUR_MS);
    expect(await run()).to.deep.equal({ removed: 1, mayBeMore: false });
    expect(await run()).to.deep.equal({ removed: 0, mayBeMore: false });
    expect(await doesExist()).to.equal(false);
    expect(wakeUps.filter(({ type }) => type === 'tenant')).to.deep.equal([{ type: 'tenant', tenantId: ACME }]);
  });

  it('are kept until then, and while one of two clocks is behind', async () => {
    expect((await run()).removed).to.equal(0);
    // The clock of the database is ahead.
    expect((await run(new Date(inHours(2)))).removed).to.equal(0);
    const before = world.clock.now();
    world.clock.forward(2 * HOUR_MS);
    // The clock of this process is ahead.
    expect((await run(before)).removed).to.equal(0);
    expect(await doesExist()).to.equal(true);
  });

  it('are not restored by a change before their removal', async () => {
    world.clock.forward(HOUR_MS);
    for (const updateSettings of [{ endsAt: null }, { endsAt: inHours(1) }, { name: 'Again' }])
      expect(await codeOf(new UpdateTenant(world).execute(ROOT, ACME, updateSettings))).to.equal('conflict');
    expect((await run()).removed).to.equal(1);
  });
});
