import { expect } from 'chai';
import type { TenantRepositories } from '../../../application/ports/repositories.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { firstRevisions } from '../../../domain/tenants/revisions.ts';
import { aClient, addTenant, aKeyChain, aTenant, failureOf, seconds } from './builders.ts';
import { stepsOf } from './steps.ts';

export function describeTenants(open: () => Store): void {
  describe('tenants and clients', () => {
    let store: Store;
    let tenantId: TenantId;
    let other: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      other = await addTenant(store);
    });

    describe('a tenant', () => {
      it('is returned as it was added', async () => {
        const full = aTenant({
          description: 'Ministry of Magic',
          status: 'suspended',
          sessionConfig: { ttlSeconds: 3600, cleanupMode: 'anonymize' },
          statusListConfig: { capacity: 1000, bits: 2, ttl: null },
          profile: 'haip',
          endsAt: seconds(3600),
          createdAt: seconds(-10),
        });
        await store.forService(({ tenants }) => tenants.add(full), { by: 'system' });
        expect(await store.forService(({ tenants }) => tenants.get(full.id))).to.deep.equal(full);
        const bare = await store.forTenant(tenantId, (own) => own.tenant.get());
        expect(bare).to.deep.equal(aTenant({ id: tenantId }));
        expect(await stepsOf(store, full.id).state()).to.deep.equal({
          id: full.id,
          status: 'suspended',
          revision: 1,
          revisions: firstRevisions(full.createdAt),
          profile: 'haip',
          endsAt: seconds(3600),
        });
      });

      it('is saved only over the version that was read', async () => {
        const read = await store.forTenant(tenantId, (own) => own.tenant.get());
        const saved = await store.forTenant(tenantId, (own) => own.tenant.save({ ...read, name: 'New' }), { by: 'system' });
        expect(saved).to.include({ name: 'New', version: read.version + 1 });
        const stale = store.forTenant(tenantId, (own) => own.tenant.save({ ...read, name: 'Stale' }), { by: 'system' });
        expect(await failureOf(stale)).to.equal('conflict');
        const stored = await store.forTenant(tenantId, (own) => own.tenant.get());
        expect(stored).to.include({ name: 'New', version: read.version + 1 });
      });

      it('has a version that changes with its configuration, and all tenants have a state that changes with any tenant', async () => {
        const { maintenance } = store;
        const first = await maintenance.tenantVersions();
        if (first === undefined) throw new Error('there are tenants');
        const ids = first.versions.map(({ id }) => id);
        expect(ids).to.deep.equal([...ids].sort());
        expect(ids).to.include.members([tenantId, other]);
        expect(await maintenance.tenantVersions(first.state), 'while nothing changed').to.equal(undefined);

        let { state } = first;
        const changedBy = async (work: () => Promise<unknown>) => {
          await work();
          const present = await maintenance.tenantVersions(state);
          if (present === undefined) throw new Error('the change was not noticed');
          const before = new Map(first.versions.map(({ id, version }) => [id, version]));
          state = present.state;
          return present.versions.filter(({ id, version }) => before.get(id) !== version).map(({ id }) => id);
        };
        const added = aTenant({ createdAt: seconds(7) });
        const add = (createdAt: Date) => store.forService(({ tenants }) => tenants.add({ ...added, createdAt }), { by: 'system' });
        expect(await changedBy(() => add(seconds(7)))).to.deep.equal([added.id]);
        const remove = () => store.forService(({ tenants }) => tenants.remove(added.id), { by: 'system' });
        expect(await changedBy(remove)).to.deep.equal([]);
        expect(
          await changedBy(() => store.forTenant(tenantId, ({ keyChains }) => keyChains.add(aKeyChain(tenantId, 'new')), { by: 'system' })),
        ).to.deep.equal([tenantId]);
        expect(await changedBy(() => add(seconds(8))), 'another one of the same id').to.include(added.id);
      });

      it('and its clients are read as they were saved within the same transaction', async () => {
        const client = aClient(tenantId);
        await store.forTenant(
          tenantId,
          async (own) => {
            await own.clients.add(client);
            expect((await own.clients.list())[0]?.description).to.equal(null);
            await own.clients.save({ ...(await own.clients.get(client.clientId)), description: 'new' });
            expect((await own.clients.get(client.clientId)).description).to.equal('new');
            await own.tenant.save({ ...(await own.tenant.get()), name: 'New' });
            expect((await own.tenant.get()).name).to.equal('New');
          },
          { by: 'system' },
        );
      });

      it('is created with its initial resources, or not at all', async () => {
        const tenant = aTenant();
        const belongings = { keyChains: [aKeyChain(tenant.id, 'one'), aKeyChain(tenant.id, 'two')], clients: [aClient(tenant.id)] };
        await store.forService(({ tenants }) => tenants.add(tenant, belongings), { by: 'system' });
        await store.forTenant(tenant.id, async (own) => {
          expect(await own.keyChains.list()).to.deep.equal(belongings.keyChains);
          expect(await own.clients.list()).to.deep.equal(belongings.clients);
        });

        const second = aTenant();
        const clash = { ...belongings, keyChains: [aKeyChain(second.id, 'one')] };
        const failure = failureOf(store.forService(({ tenants }) => tenants.add(second, clash), { by: 'system' }));
        expect(await failure).to.equal('conflict');
        expect(await stepsOf(store, second.id).state()).to.equal(undefined);
        const chains = await store.forTenant(second.id, (own) => own.keyChains.list());
        expect(chains).to.deep.equal([]);
      });

      it('loses its optional settings when they are saved as null', async () => {
        const tenant = aTenant({ sessionConfig: { ttlSeconds: 60 } });
        await store.forService(({ tenants }) => tenants.add(tenant), { by: 'system' });
        await store.forTenant(tenant.id, (own) => own.tenant.save({ ...tenant, sessionConfig: null }), { by: 'system' });
        expect((await store.forTenant(tenant.id, (own) => own.tenant.get())).sessionConfig).to.equal(null);
      });

      it('conflicts with an existing id, and is not found when it does not exist', async () => {
        const twice = store.forService(({ tenants }) => tenants.add(aTenant({ id: tenantId })), { by: 'system' });
        expect(await failureOf(twice)).to.equal('conflict');
        const none = 'nobody' as TenantId;
        expect(await failureOf(store.forService(({ tenants }) => tenants.get(none)))).to.equal('not_found');
        expect(await failureOf(store.forService(({ tenants }) => tenants.remove(none), { by: 'system' }))).to.equal('not_found');
        expect(await failureOf(store.forTenant(none, (own) => own.tenant.get()))).to.equal('not_found');
        expect(await store.forService(({ tenants }) => tenants.find(none))).to.equal(undefined);
        expect(await stepsOf(store, none).state()).to.equal(undefined);
      });

      it('is listed with the others in the order of their ids', async () => {
        const ids = (await store.forService(({ tenants }) => tenants.list())).map(({ id }) => id);
        expect(ids).to.include.members([tenantId, other]);
        expect(ids).to.deep.equal([...ids].sort());
      });
    });

    describe('clients', () => {
      it('are returned as they were added', async () => {
        const full = aClient(tenantId, {
          roles: ['issuance:offer', 'clients:manage'],
          description: 'backend',
          allowedIssuanceConfigs: ['diploma'],
          allowedPresentationConfigs: [],
          pickUp: { sealedSecret: 'sealed', role: 'clients:manage', expiresAt: seconds(600) },
        });
        await store.forTenant(tenantId, (own) => own.clients.add(full), { by: 'system' });
        expect(await store.forTenant(tenantId, (own) => own.clients.get(full.clientId))).to.deep.equal(full);
        expect(await store.forService(({ clients }) => clients.find(full.clientId))).to.deep.equal(full);
        await store.forTenant(tenantId, (own) => own.clients.save({ ...full, pickUp: null, allowedIssuanceConfigs: null }), {
          by: 'system',
        });
        const saved = await store.forTenant(tenantId, (own) => own.clients.get(full.clientId));
        expect(saved).to.deep.equal({ ...full, pickUp: null, allowedIssuanceConfigs: null, version: 2 });
      });

      it('have ids that are unique over all tenants', async () => {
        const client = aClient(tenantId);
        await store.forTenant(tenantId, (own) => own.clients.add(client), { by: 'system' });
        const taken = { ...client, tenantId: other };
        expect(await failureOf(store.forTenant(other, (own) => own.clients.add(taken), { by: 'system' }))).to.equal('conflict');
        const byService = store.forService(({ clients }) => clients.add({ ...client, tenantId: null }), { by: 'system' });
        expect(await failureOf(byService)).to.equal('conflict');
      });

      it('are saved only over the version that was read', async () => {
        const client = aClient(tenantId);
        await store.forTenant(tenantId, (own) => own.clients.add(client), { by: 'system' });
        const saved = await store.forTenant(tenantId, (own) => own.clients.save({ ...client, description: 'new' }), { by: 'system' });
        expect(saved).to.include({ description: 'new', version: 2 });
        const stale = { ...client, description: 'stale' };
        expect(await failureOf(store.forTenant(tenantId, (own) => own.clients.save(stale), { by: 'system' }))).to.equal('conflict');
        expect(await failureOf(store.forService(({ clients }) => clients.save(stale), { by: 'system' }))).to.equal('conflict');
        const byService = await store.forService(({ clients }) => clients.save({ ...saved, description: 'x' }), { by: 'system' });
        expect(byService.version).to.equal(3);
      });

      it('of another tenant can be neither read nor saved nor removed', async () => {
        const client = aClient(other);
        await store.forTenant(other, (own) => own.clients.add(client), { by: 'system' });
        const from = (work: (own: TenantRepositories) => Promise<unknown>) => failureOf(store.forTenant(tenantId, work, { by: 'system' }));
        expect(await from((own) => own.clients.get(client.clientId))).to.equal('not_found');
        expect(await from((own) => own.clients.save({ ...client, description: 'stolen' }))).to.equal('conflict');
        expect(await from((own) => own.clients.save({ ...client, tenantId }))).to.equal('conflict');
        expect(await from((own) => own.clients.remove(client.clientId))).to.equal('not_found');
        expect(await store.forTenant(tenantId, (own) => own.clients.list())).to.deep.equal([]);
        expect(await store.forTenant(other, (own) => own.clients.list())).to.deep.equal([client]);
      });

      it('belong to the tenant that adds them, independent of their own tenant id', async () => {
        const client = aClient(other);
        await store.forTenant(tenantId, (own) => own.clients.add(client), { by: 'system' });
        expect(await store.forTenant(other, (own) => own.clients.list())).to.deep.equal([]);
        expect(await store.forService(({ clients }) => clients.listOf(tenantId))).to.have.length(1);
      });

      it('of the service itself belong to no tenant', async () => {
        const root = aClient(null, { roles: ['tenants:manage'] });
        await store.forService(({ clients }) => clients.add(root), { by: 'system' });
        expect(await store.forService(({ clients }) => clients.find(root.clientId))).to.deep.equal(root);
        const seen = store.forTenant(tenantId, (own) => own.clients.get(root.clientId));
        expect(await failureOf(seen)).to.equal('not_found');
        const saved = await store.forService(({ clients }) => clients.save(root), { by: 'system' });
        expect(saved.version).to.equal(2);
        const theft = store.forTenant(tenantId, (own) => own.clients.save(saved), { by: 'system' });
        expect(await failureOf(theft)).to.equal('conflict');
      });
    });
  });
}
