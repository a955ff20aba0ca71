import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { PickUpSecret } from '../../../application/clients/client-secrets.ts';
import { mergeSettings, UpdateOwnSettings } from '../../../application/tenants/own-settings.ts';
import { GetTenant, UpdateTenant } from '../../../application/tenants/tenants.ts';
import { ACME, aWorld, codeOf, MANAGER, ROOT, type World } from './world.ts';

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

  it('are made with an administrator whose secret is told once and can be fetched once', async () => {
    const { clients, newSecret } = await world.createTenant({ roles: ['clients:manage'] });
    expect(clients.map(({ clientId, roles }) => [clientId, ...roles])).to.deep.equal([
      ['acme-admin', 'clients:manage'],
    ]);
    expect(await new PickUpSecret(world).execute(MANAGER, 'acme-admin')).to.equal(newSecret?.secret);
    expect(await codeOf(new PickUpSecret(world).execute(MANAGER, 'acme-admin'))).to.equal('gone');
  });

  it('are made whole or not at all', async () => {
    const roles = ['clients:manage' as const];
    await world.createTenant({ roles });
    const admin = (await new GetTenant(world).execute(MANAGER, ACME)).clients[0];
    expect(await codeOf(world.createTenant())).to.equal('conflict');
    // The administrator of the second has a name that is taken.
    if (admin === undefined) throw new Error('no administrator');
    await world.store.forService(({ clients }) => clients.add({ ...admin, clientId: 'beta-admin' }), {
      by: 'system',
    });
    const beta = { id: 'beta' as typeof ACME };
    expect(await codeOf(world.createTenant({ ...beta, roles }))).to.equal('conflict');
    expect(await codeOf(new GetTenant(world).execute(MANAGER, beta.id))).to.equal('not_found');
    await world.createTenant(beta);
  });

  it('cannot have a client that manages tenants', async () => {
    expect(await codeOf(world.createTenant({ roles: ['tenants:manage'] }))).to.equal('invalid_input');
  });

  it('change only in what is said; null brings defaults back', async () => {
    await world.createTenant({ sessionConfig: { ttlSeconds: 100, cleanupMode: 'anonymize' } });
    const update = new UpdateTenant(world);
    const { tenant } = await update.execute(ROOT, ACME, { sessionConfig: { ttlSeconds: null } });
    expect(tenant).to.deep.include({ name: 'Acme', sessionConfig: { cleanupMode: 'anonymize' } });
    const reset = await update.execute(ROOT, ACME, { sessionConfig: null, status: 'suspended' });
    expect(reset.tenant).to.include({ sessionConfig: null, status: 'suspended' });
  });

  it('get an administrator by a change of roles, and then change its roles', async () => {
    await world.createTenant();
    const update = new UpdateTenant(world);
    const made = await update.execute(ROOT, ACME, { roles: ['issuance:offer'] });
    expect(made.newSecret?.clientId).to.equal('acme-admin');
    const changed = await update.execute(ROOT, ACME, { roles: ['issuance:manage'] });
    expect(changed.newSecret).to.equal(undefined);
    expect(changed.clients[0]?.roles).to.deep.equal(['issuance:manage']);
    expect(changed.clients[0]?.secretHash).to.equal(made.clients[0]?.secretHash);
    expect(await codeOf(update.execute(ROOT, ACME, { roles: [] }))).to.equal('invalid_input');
    expect(
      await codeOf(update.execute(ROOT, 'nobody' as typeof ACME, { roles: ['issuance:offer'] })),
    ).to.equal('not_found');
  });

  it('set their own defaults for status lists field by field', async () => {
    await world.createTenant();
    const change = new UpdateOwnSettings(world);
    const caller = world.caller(['issuance:manage']);
    await change.execute(caller, { statusListConfig: { bits: 2, ttl: 90 } });
    const tenant = await change.execute(caller, { statusListConfig: { ttl: null, immediateUpdate: true } });
    expect(tenant.statusListConfig).to.deep.equal({ bits: 2, immediateUpdate: true });
  });

  it('keep no trace of defaults', () => {
    expect(mergeSettings({ a: 1, b: 2 }, undefined)).to.deep.equal({ a: 1, b: 2 });
    expect(mergeSettings({ a: 1 }, { a: null })).to.equal(null);
    expect(mergeSettings<{ a?: number; b?: number }>({ a: 1 }, { b: 3 })).to.deep.equal({ a: 1, b: 3 });
    expect(mergeSettings(null, {})).to.equal(null);
  });
});
