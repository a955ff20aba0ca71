import { expect } from 'chai';
import type { Listing, TenantRepositories } from '../../../application/ports/repositories.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { CredentialConfiguration } from '../../../domain/issuance/configuration.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import {
  aClient,
  aConfiguration,
  addTenant,
  aKeyChain,
  aList,
  aRegistrarConfiguration,
  aRegistrationCertificate,
  aTenant,
  failureOf,
  NOW,
  seconds,
} from './builders.ts';
import { stepsOf } from './steps.ts';

export function describeAdministration(open: () => Store): void {
  describe('administration', () => {
    let store: Store;
    let tenantId: TenantId;
    let otherTenant: TenantId;
    const revision = async () => (await stepsOf(store, tenantId).state())?.revision ?? Number.NaN;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      otherTenant = await addTenant(store);
    });

    describe('a removed client', () => {
      const isRemoved = (tenant: TenantId, clientId: string) => store.forService(({ clients }) => clients.isRemoved(tenant, clientId));

      it('stays cached by its tenant until it is created again', async () => {
        const client = aClient(tenantId);
        const write = (work: (repositories: TenantRepositories) => Promise<void>) => store.forTenant(tenantId, work, { by: 'system' });
        await write(({ clients }) => clients.add(client));
        expect(await isRemoved(tenantId, client.clientId)).to.equal(false);
        for (let round = 0; round < 2; round++) {
          await write(({ clients }) => clients.remove(client.clientId));
          expect(await isRemoved(tenantId, client.clientId)).to.equal(true);
          expect(await isRemoved(otherTenant, client.clientId), 'not for another tenant').to.equal(false);
          await write(({ clients }) => clients.add(client));
          expect(await isRemoved(tenantId, client.clientId)).to.equal(false);
        }
        await write(({ clients }) => clients.remove(client.clientId));
        const inOtherTenant = { ...client, tenantId: otherTenant };
        await store.forTenant(otherTenant, ({ clients }) => clients.add(inOtherTenant), { by: 'system' });
        expect(await isRemoved(tenantId, client.clientId), 'the same identifier exists in another tenant').to.equal(true);
      });

      it('is forgotten with its tenant', async () => {
        const client = aClient(tenantId);
        await store.forTenant(
          tenantId,
          async ({ clients }) => {
            await clients.add(client);
            await clients.remove(client.clientId);
          },
          { by: 'system' },
        );
        const tenant = await store.forTenant(tenantId, (repositories) => repositories.tenant.get());
        await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
        await store.forService(({ tenants }) => tenants.add(tenant), { by: 'system' });
        expect(await isRemoved(tenantId, client.clientId)).to.equal(false);
      });
    });

    describe('documents', () => {
      it('are returned as they were stored, dates included', async () => {
        const chain = aKeyChain(tenantId, 'one');
        const configuration = aConfiguration('diploma', { claims: { '': [null, { a: 1 }], date: 'x' } });
        await store.forTenant(
          tenantId,
          async ({ keyChains, credentialConfigurations }) => {
            await keyChains.add(chain);
            await credentialConfigurations.put(configuration);
          },
          { by: 'system' },
        );
        await store.forTenant(tenantId, async ({ keyChains, credentialConfigurations }) => {
          expect(await keyChains.get('one')).to.deep.equal(chain);
          expect(await credentialConfigurations.find('diploma')).to.deep.equal(configuration);
        });
      });

      it('are listed in the order of their ids, by code unit', async () => {
        await store.forTenant(
          tenantId,
          async ({ credentialConfigurations: documents }) => {
            for (const id of ['b', 'a-1', 'C', 'a', 'aa', 'a_1']) await documents.add(aConfiguration(id));
          },
          { by: 'system' },
        );
        const configurations = await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.list());
        expect(configurations.map(({ id }) => id)).to.deep.equal(['C', 'a', 'a-1', 'a_1', 'aa', 'b']);
      });

      it('are read again only after a write', async () => {
        const write = (work: (repositories: TenantRepositories) => Promise<void>) => store.forTenant(tenantId, work, { by: 'system' });
        const relist = (previous?: Listing<CredentialConfiguration>) =>
          store.forTenant(tenantId, ({ credentialConfigurations }) => credentialConfigurations.relist(previous));
        const idsOf = ({ documents }: Listing<CredentialConfiguration>) => documents.map(({ id }) => id);
        await write(async ({ credentialConfigurations }) => {
          for (const id of ['b', 'a', 'c']) await credentialConfigurations.add(aConfiguration(id));
        });
        const first = await relist();
        expect(idsOf(first)).to.deep.equal(['a', 'b', 'c']);
        expect(await relist(first), 'no document changed').to.deep.equal(first);

        await write(async ({ credentialConfigurations }) => {
          await credentialConfigurations.put(aConfiguration('b', { keyBinding: false }));
          await credentialConfigurations.remove('c');
          await credentialConfigurations.add(aConfiguration('0'));
        });
        const second = await relist(first);
        expect(second).to.deep.equal(await relist());
        expect(idsOf(second)).to.deep.equal(['0', 'a', 'b']);
        expect(second.documents[2]?.keyBinding).to.equal(false);
        expect(second.documents[1], 'unchanged documents are not read again').to.equal(first.documents[0]);
        // A write without a change, and a write under the identifier of a removed document.
        await write(({ credentialConfigurations }) => credentialConfigurations.put(aConfiguration('c')));
        const third = await relist(second);
        expect(third).to.deep.equal(await relist());
        expect(third.marks.get('c')).to.not.equal(first.marks.get('c'));
      });

      it('are read again all together after many writes', async () => {
        const write = (keyBinding: boolean) =>
          store.forTenant(
            tenantId,
            async ({ credentialConfigurations }) => {
              for (let id = 0; id < 120; id++) {
                await credentialConfigurations.put(aConfiguration(`${id}`, { keyBinding }));
              }
            },
            { by: 'system' },
          );
        const relist = (previous?: Listing<CredentialConfiguration>) =>
          store.forTenant(tenantId, ({ credentialConfigurations }) => credentialConfigurations.relist(previous));
        await write(true);
        const listing = await relist();
        await write(false);
        const { documents } = await relist(listing);
        expect(documents).to.have.length(120);
        expect(documents.every(({ keyBinding }) => !keyBinding)).to.equal(true);
      });

      it('are returned in their new state within the same transaction', async () => {
        await store.forTenant(
          tenantId,
          async ({ credentialConfigurations: documents }) => {
            await documents.add(aConfiguration('one'));
            expect((await documents.get('one')).keyBinding).to.equal(true);
            await documents.put(aConfiguration('one', { keyBinding: false }));
            expect((await documents.get('one')).keyBinding).to.equal(false);
            expect(await documents.list()).to.have.length(1);
            await documents.remove('one');
            expect(await documents.find('one')).to.equal(undefined);
          },
          { by: 'system' },
        );
      });

      it('cause a conflict for an existing id, and the first document stays', async () => {
        await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.add(aConfiguration('one')), {
          by: 'system',
        });
        const secondAdd = store.forTenant(
          tenantId,
          (repositories) => repositories.credentialConfigurations.add(aConfiguration('one', { keyBinding: false })),
          { by: 'system' },
        );
        expect(await failureOf(secondAdd)).to.equal('conflict');
        const configuration = await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.get('one'));
        expect(configuration.keyBinding).to.equal(true);
      });

      it('with an unknown id are not found', async () => {
        const missing = (work: (repositories: TenantRepositories) => Promise<unknown>) =>
          failureOf(store.forTenant(tenantId, work, { by: 'system' }));
        expect(await missing((repositories) => repositories.keyChains.get('none'))).to.equal('not_found');
        expect(await missing((repositories) => repositories.presentationConfigurations.remove('none'))).to.equal('not_found');
        expect(await store.forTenant(tenantId, (repositories) => repositories.issuanceConfiguration.find('default'))).to.equal(undefined);
      });

      it('of different kinds are kept in separate tables', async () => {
        await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.add(aConfiguration('one')), {
          by: 'system',
        });
        await store.forTenant(tenantId, async (repositories) => {
          expect(await repositories.presentationConfigurations.list()).to.deep.equal([]);
          expect(await repositories.keyChains.find('one')).to.equal(undefined);
        });
      });

      it('of the registrar are stored, replaced and removed like the others', async () => {
        const before = await revision();
        const configuration = aRegistrarConfiguration({ clientSecret: 'secret of the client' });
        const certificates = ['one', 'two'].map(aRegistrationCertificate);
        await store.forTenant(
          tenantId,
          async (repositories) => {
            await repositories.registrarConfiguration.put(configuration);
            for (const certificate of certificates) await repositories.registrationCertificates.put(certificate);
          },
          { by: 'system' },
        );
        expect(await revision()).to.equal(before + 1);
        const renewedCertificate = { ...aRegistrationCertificate('two'), jwt: 'e30.e30.BB', updatedAt: seconds(9) };
        await store.forTenant(
          tenantId,
          async (repositories) => {
            expect(await repositories.registrarConfiguration.get('default')).to.deep.equal(configuration);
            expect(await repositories.registrationCertificates.list()).to.deep.equal(certificates);
            await repositories.registrationCertificates.put(renewedCertificate);
            await repositories.registrationCertificates.remove('one');
            expect(await repositories.registrationCertificates.list()).to.deep.equal([renewedCertificate]);
            await repositories.registrarConfiguration.remove('default');
            expect(await repositories.registrarConfiguration.find('default')).to.equal(undefined);
          },
          { by: 'system' },
        );
        const missing = store.forTenant(tenantId, (repositories) => repositories.registrarConfiguration.get('default'));
        expect(await failureOf(missing)).to.equal('not_found');
      });

      it('do not change when the caller changes its input or the result', async () => {
        const configuration = aConfiguration('one', { claims: { name: 'first' } });
        await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.add(configuration), { by: 'system' });
        (configuration.claims as Record<string, string>)['name'] = 'second';
        const readConfiguration = () => store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.get('one'));
        const stored = await readConfiguration();
        (stored.claims as Record<string, string>)['name'] = 'third';
        stored.createdAt.setTime(0);
        expect(await readConfiguration()).to.deep.include({ claims: { name: 'first' }, createdAt: NOW });
      });
    });

    describe('the configuration revision', () => {
      it('is incremented once per transaction with a write', async () => {
        const before = await revision();
        await store.forTenant(
          tenantId,
          async (repositories) => {
            await repositories.credentialConfigurations.add(aConfiguration('one'));
            await repositories.credentialConfigurations.put(aConfiguration('two'));
          },
          { by: 'system' },
        );
        expect(await revision()).to.equal(before + 1);
        await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.remove('one'), { by: 'system' });
        await store.forTenant(tenantId, async (repositories) => repositories.tenant.save(await repositories.tenant.get()), {
          by: 'system',
        });
        await store.forTenant(tenantId, (repositories) => repositories.statusLists.add(aList()), { by: 'system' });
        const client = aClient(tenantId);
        await store.forTenant(tenantId, (repositories) => repositories.clients.add(client), { by: 'system' });
        await store.forTenant(tenantId, (repositories) => repositories.clients.save(client), { by: 'system' });
        await store.forTenant(tenantId, (repositories) => repositories.clients.remove(client.clientId), { by: 'system' });
        expect(await revision()).to.equal(before + 7);
      });

      it('is unchanged when a transaction only read, or failed', async () => {
        const before = await revision();
        await store.forTenant(tenantId, async (repositories) => {
          await repositories.tenant.get();
          await repositories.credentialConfigurations.list();
        });
        await failureOf(store.forTenant(tenantId, (repositories) => repositories.keyChains.remove('none'), { by: 'system' }));
        expect(await revision()).to.equal(before);
      });

      it('of another tenant is unchanged', async () => {
        const before = (await stepsOf(store, otherTenant).state())?.revision;
        await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.add(aConfiguration('one')), {
          by: 'system',
        });
        expect((await stepsOf(store, otherTenant).state())?.revision).to.equal(before);
      });

      it('is incremented when the service changes a client of the tenant', async () => {
        const before = await revision();
        const client = aClient(tenantId);
        await store.forService((service) => service.clients.add(client), { by: 'system' });
        await store.forService((service) => service.clients.save(client), { by: 'system' });
        expect(await revision()).to.equal(before + 2);
      });
    });

    describe('a transaction', () => {
      it('is rolled back completely when it throws', async () => {
        const client = aClient(tenantId);
        const before = await revision();
        const broken = store.forTenant(
          tenantId,
          async (repositories) => {
            await repositories.credentialConfigurations.add(aConfiguration('one'));
            await repositories.clients.add(client);
            await repositories.statusLists.add(aList());
            await repositories.tenant.save({ ...(await repositories.tenant.get()), name: 'Changed' });
            throw new Error('broken');
          },
          { by: 'system' },
        );
        expect(String(await failureOf(broken))).to.contain('broken');
        await store.forTenant(tenantId, async (repositories) => {
          expect(await repositories.credentialConfigurations.list()).to.deep.equal([]);
          expect(await repositories.clients.list()).to.deep.equal([]);
          expect(await repositories.statusLists.list()).to.deep.equal([]);
          expect((await repositories.tenant.get()).name).to.equal('Acme');
        });
        expect(await revision()).to.equal(before);
      });

      it('over the service is rolled back completely when it throws', async () => {
        const tenant = aTenant();
        const broken = store.forService(
          async ({ tenants, clients }) => {
            await tenants.add(tenant);
            await clients.add(aClient(tenant.id));
            await tenants.remove(otherTenant);
            throw new Error('broken');
          },
          { by: 'system' },
        );
        await failureOf(broken);
        await store.forService(async ({ tenants, clients }) => {
          expect(await tenants.find(tenant.id)).to.equal(undefined);
          expect(await clients.listOf(tenant.id)).to.deep.equal([]);
          expect(await tenants.find(otherTenant)).to.not.equal(undefined);
        });
      });

      it('returns the result of its callback', async () => {
        expect(await store.forTenant(tenantId, async () => 7)).to.equal(7);
        expect(await store.forService(async () => 'done')).to.equal('done');
      });
    });
  });
}
