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
    let otherTenant: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      otherTenant = await addTenant(store);
    });

    describe('a tenant', () => {
      it('is returned as it was added', async () => {
        const fullTenant = aTenant({
          description: 'Ministry of Magic',
          status: 'suspended',
          sessionConfig: { ttlSeconds: 3600, cleanupMode: 'anonymize' },
          statusListConfig: { capacity: 1000, bits: 2, ttl: null },
          profile: 'haip',
          endsAt: seconds(3600),
          createdAt: seconds(-10),
        });
        await store.forService(({ tenants }) => tenants.add(fullTenant), { by: 'system' });
        expect(await store.forService(({ tenants }) => tenants.get(fullTenant.id))).to.deep.equal(fullTenant);
        const minimalTenant = await store.forTenant(tenantId, (repositories) => repositories.tenant.get());
        expect(minimalTenant).to.deep.equal(aTenant({ id: tenantId }));
        expect(await stepsOf(store, fullTenant.id).state()).to.deep.equal({
          id: fullTenant.id,
          status: 'suspended',
          revision: 1,
          revisions: firstRevisions(fullTenant.createdAt),
          profile: 'haip',
          endsAt: seconds(3600),
        });
      });

      it('is saved only over the version that was read', async () => {
        const tenant = await store.forTenant(tenantId, (repositories) => repositories.tenant.get());
        const saved = await store.forTenant(tenantId, (repositories) => repositories.tenant.save({ ...tenant, name: 'New' }), {
          by: 'system',
        });
        expect(saved).to.include({ name: 'New', version: tenant.version + 1 });
        const staleSave = store.forTenant(tenantId, (repositories) => repositories.tenant.save({ ...tenant, name: 'Stale' }), {
          by: 'system',
        });
        expect(await failureOf(staleSave)).to.equal('conflict');
        const stored = await store.forTenant(tenantId, (repositories) => repositories.tenant.get());
        expect(stored).to.include({ name: 'New', version: tenant.version + 1 });
      });

      it('has a version that changes with its configuration, and all tenants have a state that changes with any tenant', async () => {
        const { maintenance } = store;
        const first = await maintenance.tenantVersions();
        if (first === undefined) throw new Error('there are tenants');
        const ids = first.versions.map(({ id }) => id);
        expect(ids).to.deep.equal([...ids].sort());
        expect(ids).to.include.members([tenantId, otherTenant]);
        expect(await maintenance.tenantVersions(first.state), 'without a change').to.equal(undefined);

        let { state } = first;
        const findTenantsChangedBy = async (work: () => Promise<unknown>) => {
          await work();
          const present = await maintenance.tenantVersions(state);
          if (present === undefined) throw new Error('the change was not noticed');
          const before = new Map(first.versions.map(({ id, version }) => [id, version]));
          state = present.state;
          return present.versions.filter(({ id, version }) => before.get(id) !== version).map(({ id }) => id);
        };
        const addedTenant = aTenant({ createdAt: seconds(7) });
        const add = (createdAt: Date) => store.forService(({ tenants }) => tenants.add({ ...addedTenant, createdAt }), { by: 'system' });
        expect(await findTenantsChangedBy(() => add(seconds(7)))).to.deep.equal([addedTenant.id]);
        const remove = () => store.forService(({ tenants }) => tenants.remove(addedTenant.id), { by: 'system' });
        expect(await findTenantsChangedBy(remove)).to.deep.equal([]);
        expect(
          await findTenantsChangedBy(() =>
            store.forTenant(tenantId, ({ keyChains }) => keyChains.add(aKeyChain(tenantId, 'new')), { by: 'system' }),
          ),
        ).to.deep.equal([tenantId]);
        expect(await findTenantsChangedBy(() => add(seconds(8))), 'another tenant with the same identifier').to.include(addedTenant.id);
      });

      it('and its clients are read as they were saved within the same transaction', async () => {
        const client = aClient(tenantId);
        await store.forTenant(
          tenantId,
          async (repositories) => {
            await repositories.clients.add(client);
            expect((await repositories.clients.list())[0]?.description).to.equal(null);
            await repositories.clients.save({ ...(await repositories.clients.get(client.clientId)), description: 'new' });
            expect((await repositories.clients.get(client.clientId)).description).to.equal('new');
            await repositories.tenant.save({ ...(await repositories.tenant.get()), name: 'New' });
            expect((await repositories.tenant.get()).name).to.equal('New');
          },
          { by: 'system' },
        );
      });

      it('is created with its initial resources, or not at all', async () => {
        const tenant = aTenant();
        const entities = { keyChains: [aKeyChain(tenant.id, 'one'), aKeyChain(tenant.id, 'two')], clients: [aClient(tenant.id)] };
        await store.forService(({ tenants }) => tenants.add(tenant, entities), { by: 'system' });
        await store.forTenant(tenant.id, async (repositories) => {
          expect(await repositories.keyChains.list()).to.deep.equal(entities.keyChains);
          expect(await repositories.clients.list()).to.deep.equal(entities.clients);
        });

        const second = aTenant();
        const conflicting = { ...entities, keyChains: [aKeyChain(second.id, 'one')] };
        const failure = failureOf(store.forService(({ tenants }) => tenants.add(second, conflicting), { by: 'system' }));
        expect(await failure).to.equal('conflict');
        expect(await stepsOf(store, second.id).state()).to.equal(undefined);
        const chains = await store.forTenant(second.id, (repositories) => repositories.keyChains.list());
        expect(chains).to.deep.equal([]);
      });

      it('loses its optional settings when they are saved as null', async () => {
        const tenant = aTenant({ sessionConfig: { ttlSeconds: 60 } });
        await store.forService(({ tenants }) => tenants.add(tenant), { by: 'system' });
        await store.forTenant(tenant.id, (repositories) => repositories.tenant.save({ ...tenant, sessionConfig: null }), { by: 'system' });
        expect((await store.forTenant(tenant.id, (repositories) => repositories.tenant.get())).sessionConfig).to.equal(null);
      });

      it('conflicts with an existing id, and is not found when it does not exist', async () => {
        const secondAdd = store.forService(({ tenants }) => tenants.add(aTenant({ id: tenantId })), { by: 'system' });
        expect(await failureOf(secondAdd)).to.equal('conflict');
        const unknownTenant = 'unknown' as TenantId;
        expect(await failureOf(store.forService(({ tenants }) => tenants.get(unknownTenant)))).to.equal('not_found');
        expect(await failureOf(store.forService(({ tenants }) => tenants.remove(unknownTenant), { by: 'system' }))).to.equal('not_found');
        expect(await failureOf(store.forTenant(unknownTenant, (repositories) => repositories.tenant.get()))).to.equal('not_found');
        expect(await store.forService(({ tenants }) => tenants.find(unknownTenant))).to.equal(undefined);
        expect(await stepsOf(store, unknownTenant).state()).to.equal(undefined);
      });

      it('is listed with the others in the order of their ids', async () => {
        const ids = (await store.forService(({ tenants }) => tenants.list())).map(({ id }) => id);
        expect(ids).to.include.members([tenantId, otherTenant]);
        expect(ids).to.deep.equal([...ids].sort());
      });
    });

    describe('clients', () => {
      it('are returned as they were added', async () => {
        const fullClient = aClient(tenantId, {
          roles: ['issuance:offer', 'clients:manage'],
          description: 'backend',
          allowedIssuanceConfigs: ['diploma'],
          allowedPresentationConfigs: [],
          pickUp: { sealedSecret: 'sealed', role: 'clients:manage', expiresAt: seconds(600) },
        });
        await store.forTenant(tenantId, (repositories) => repositories.clients.add(fullClient), { by: 'system' });
        expect(await store.forTenant(tenantId, (repositories) => repositories.clients.get(fullClient.clientId))).to.deep.equal(fullClient);
        expect(await store.forService(({ clients }) => clients.find(fullClient.clientId))).to.deep.equal(fullClient);
        await store.forTenant(
          tenantId,
          (repositories) => repositories.clients.save({ ...fullClient, pickUp: null, allowedIssuanceConfigs: null }),
          { by: 'system' },
        );
        const saved = await store.forTenant(tenantId, (repositories) => repositories.clients.get(fullClient.clientId));
        expect(saved).to.deep.equal({ ...fullClient, pickUp: null, allowedIssuanceConfigs: null, version: 2 });
      });

      it('have ids that are unique over all tenants', async () => {
        const client = aClient(tenantId);
        await store.forTenant(tenantId, (repositories) => repositories.clients.add(client), { by: 'system' });
        const clientOfOther = { ...client, tenantId: otherTenant };
        expect(
          await failureOf(store.forTenant(otherTenant, (repositories) => repositories.clients.add(clientOfOther), { by: 'system' })),
        ).to.equal('conflict');
        const byService = store.forService(({ clients }) => clients.add({ ...client, tenantId: null }), { by: 'system' });
        expect(await failureOf(byService)).to.equal('conflict');
      });

      it('are saved only over the version that was read', async () => {
        const client = aClient(tenantId);
        await store.forTenant(tenantId, (repositories) => repositories.clients.add(client), { by: 'system' });
        const saved = await store.forTenant(tenantId, (repositories) => repositories.clients.save({ ...client, description: 'new' }), {
          by: 'system',
        });
        expect(saved).to.include({ description: 'new', version: 2 });
        const staleClient = { ...client, description: 'stale' };
        expect(
          await failureOf(store.forTenant(tenantId, (repositories) => repositories.clients.save(staleClient), { by: 'system' })),
        ).to.equal('conflict');
        expect(await failureOf(store.forService(({ clients }) => clients.save(staleClient), { by: 'system' }))).to.equal('conflict');
        const byService = await store.forService(({ clients }) => clients.save({ ...saved, description: 'x' }), { by: 'system' });
        expect(byService.version).to.equal(3);
      });

      it('of another tenant can be neither read nor saved nor removed', async () => {
        const client = aClient(otherTenant);
        await store.forTenant(otherTenant, (repositories) => repositories.clients.add(client), { by: 'system' });
        const asOtherTenant = (work: (repositories: TenantRepositories) => Promise<unknown>) =>
          failureOf(store.forTenant(tenantId, work, { by: 'system' }));
        expect(await asOtherTenant((repositories) => repositories.clients.get(client.clientId))).to.equal('not_found');
        expect(await asOtherTenant((repositories) => repositories.clients.save({ ...client, description: 'stolen' }))).to.equal('conflict');
        expect(await asOtherTenant((repositories) => repositories.clients.save({ ...client, tenantId }))).to.equal('conflict');
        expect(await asOtherTenant((repositories) => repositories.clients.remove(client.clientId))).to.equal('not_found');
        expect(await store.forTenant(tenantId, (repositories) => repositories.clients.list())).to.deep.equal([]);
        expect(await store.forTenant(otherTenant, (repositories) => repositories.clients.list())).to.deep.equal([client]);
      });

      it('belong to the tenant that adds them, independent of their own tenant id', async () => {
        const client = aClient(otherTenant);
        await store.forTenant(tenantId, (repositories) => repositories.clients.add(client), { by: 'system' });
        expect(await store.forTenant(otherTenant, (repositories) => repositories.clients.list())).to.deep.equal([]);
        expect(await store.forService(({ clients }) => clients.listOf(tenantId))).to.have.length(1);
      });

      it('of the service itself belong to no tenant', async () => {
        const root = aClient(null, { roles: ['tenants:manage'] });
        await store.forService(({ clients }) => clients.add(root), { by: 'system' });
        expect(await store.forService(({ clients }) => clients.find(root.clientId))).to.deep.equal(root);
        const foreignRead = store.forTenant(tenantId, (repositories) => repositories.clients.get(root.clientId));
        expect(await failureOf(foreignRead)).to.equal('not_found');
        const saved = await store.forService(({ clients }) => clients.save(root), { by: 'system' });
        expect(saved.version).to.equal(2);
        const foreignSave = store.forTenant(tenantId, (repositories) => repositories.clients.save(saved), { by: 'system' });
        expect(await failureOf(foreignSave)).to.equal('conflict');
      });
    });
  });
}
