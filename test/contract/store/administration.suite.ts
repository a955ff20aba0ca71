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
    let other: TenantId;
    const revision = async () => (await stepsOf(store, tenantId).state())?.revision ?? Number.NaN;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      other = await addTenant(store);
    });

    describe('a removed client', () => {
      const removed = (tenant: TenantId, clientId: string) => store.forService(({ clients }) => clients.isRemoved(tenant, clientId));

      it('stays cached by its tenant until it is created again', async () => {
        const client = aClient(tenantId);
        const write = (work: (own: TenantRepositories) => Promise<void>) => store.forTenant(tenantId, work, { by: 'system' });
        await write(({ clients }) => clients.add(client));
        expect(await removed(tenantId, client.clientId)).to.equal(false);
        for (let round = 0; round < 2; round++) {
          await write(({ clients }) => clients.remove(client.clientId));
          expect(await removed(tenantId, client.clientId)).to.equal(true);
          expect(await removed(other, client.clientId), 'by no other').to.equal(false);
          await write(({ clients }) => clients.add(client));
          expect(await removed(tenantId, client.clientId)).to.equal(false);
        }
        await write(({ clients }) => clients.remove(client.clientId));
        const elsewhere = { ...client, tenantId: other };
        await store.forTenant(other, ({ clients }) => clients.add(elsewhere), { by: 'system' });
        expect(await removed(tenantId, client.clientId), 'made anew elsewhere').to.equal(true);
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
        const tenant = await store.forTenant(tenantId, (own) => own.tenant.get());
        await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
        await store.forService(({ tenants }) => tenants.add(tenant), { by: 'system' });
        expect(await removed(tenantId, client.clientId)).to.equal(false);
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
        const listed = await store.forTenant(tenantId, (own) => own.credentialConfigurations.list());
        expect(listed.map(({ id }) => id)).to.deep.equal(['C', 'a', 'a-1', 'a_1', 'aa', 'b']);
      });

      it('are read again only after a write', async () => {
        const write = (work: (own: TenantRepositories) => Promise<void>) => store.forTenant(tenantId, work, { by: 'system' });
        const relist = (known?: Listing<CredentialConfiguration>) =>
          store.forTenant(tenantId, ({ credentialConfigurations }) => credentialConfigurations.relist(known));
        const idsOf = ({ documents }: Listing<CredentialConfiguration>) => documents.map(({ id }) => id);
        await write(async ({ credentialConfigurations }) => {
          for (const id of ['b', 'a', 'c']) await credentialConfigurations.add(aConfiguration(id));
        });
        const first = await relist();
        expect(idsOf(first)).to.deep.equal(['a', 'b', 'c']);
        expect(await relist(first), 'nothing happened').to.deep.equal(first);

        await write(async ({ credentialConfigurations }) => {
          await credentialConfigurations.put(aConfiguration('b', { keyBinding: false }));
          await credentialConfigurations.remove('c');
          await credentialConfigurations.add(aConfiguration('0'));
        });
        const second = await relist(first);
        expect(second).to.deep.equal(await relist());
        expect(idsOf(second)).to.deep.equal(['0', 'a', 'b']);
        expect(second.documents[2]?.keyBinding).to.equal(false);
        expect(second.documents[1], 'not read again').to.equal(first.documents[0]);
        // A write that changes nothing, and one under the id of a document that went.
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
        const relist = (known?: Listing<CredentialConfiguration>) =>
          store.forTenant(tenantId, ({ credentialConfigurations }) => credentialConfigurations.relist(known));
        await write(true);
        const known = await relist();
        await write(false);
        const { documents } = await relist(known);
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
        await store.forTenant(tenantId, (own) => own.credentialConfigurations.add(aConfiguration('one')), { by: 'system' });
        const again = store.forTenant(tenantId, (own) => own.credentialConfigurations.add(aConfiguration('one', { keyBinding: false })), {
          by: 'system',
        });
        expect(await failureOf(again)).to.equal('conflict');
        const kept = await store.forTenant(tenantId, (own) => own.credentialConfigurations.get('one'));
        expect(kept.keyBinding).to.equal(true);
      });

      it('with an unknown id are not found', async () => {
        const missing = (work: (own: TenantRepositories) => Promise<unknown>) =>
          failureOf(store.forTenant(tenantId, work, { by: 'system' }));
        expect(await missing((own) => own.keyChains.get('none'))).to.equal('not_found');
        expect(await missing((own) => own.presentationConfigurations.remove('none'))).to.equal('not_found');
        expect(await store.forTenant(tenantId, (own) => own.issuanceConfiguration.find('default'))).to.equal(undefined);
      });

      it('of different kinds are kept in separate tables', async () => {
        await store.forTenant(tenantId, (own) => own.credentialConfigurations.add(aConfiguration('one')), { by: 'system' });
        await store.forTenant(tenantId, async (own) => {
          expect(await own.presentationConfigurations.list()).to.deep.equal([]);
          expect(await own.keyChains.find('one')).to.equal(undefined);
        });
      });

      it('of the registrar are stored, replaced and removed like the others', async () => {
        const before = await revision();
        const configuration = aRegistrarConfiguration({ clientSecret: 'secret of the client' });
        const certificates = ['one', 'two'].map(aRegistrationCertificate);
        await store.forTenant(
          tenantId,
          async (own) => {
            await own.registrarConfiguration.put(configuration);
            for (const certificate of certificates) await own.registrationCertificates.put(certificate);
          },
          { by: 'system' },
        );
        expect(await revision()).to.equal(before + 1);
        const renewed = { ...aRegistrationCertificate('two'), jwt: 'e30.e30.BB', updatedAt: seconds(9) };
        await store.forTenant(
          tenantId,
          async (own) => {
            expect(await own.registrarConfiguration.get('default')).to.deep.equal(configuration);
            expect(await own.registrationCertificates.list()).to.deep.equal(certificates);
            await own.registrationCertificates.put(renewed);
            await own.registrationCertificates.remove('one');
            expect(await own.registrationCertificates.list()).to.deep.equal([renewed]);
            await own.registrarConfiguration.remove('default');
            expect(await own.registrarConfiguration.find('default')).to.equal(undefined);
          },
          { by: 'system' },
        );
        const missing = store.forTenant(tenantId, (own) => own.registrarConfiguration.get('default'));
        expect(await failureOf(missing)).to.equal('not_found');
      });

      it('do not change when the caller changes its input or the result', async () => {
        const given = aConfiguration('one', { claims: { name: 'first' } });
        await store.forTenant(tenantId, (own) => own.credentialConfigurations.add(given), { by: 'system' });
        (given.claims as Record<string, string>)['name'] = 'second';
        const read = () => store.forTenant(tenantId, (own) => own.credentialConfigurations.get('one'));
        const got = await read();
        (got.claims as Record<string, string>)['name'] = 'third';
        got.createdAt.setTime(0);
        expect(await read()).to.deep.include({ claims: { name: 'first' }, createdAt: NOW });
      });
    });

    describe('the configuration revision', () => {
      it('is incremented once per transaction with a write', async () => {
        const before = await revision();
        await store.forTenant(
          tenantId,
          async (own) => {
            await own.credentialConfigurations.add(aConfiguration('one'));
            await own.credentialConfigurations.put(aConfiguration('two'));
          },
          { by: 'system' },
        );
        expect(await revision()).to.equal(before + 1);
        await store.forTenant(tenantId, (own) => own.credentialConfigurations.remove('one'), { by: 'system' });
        await store.forTenant(tenantId, async (own) => own.tenant.save(await own.tenant.get()), { by: 'system' });
        await store.forTenant(tenantId, (own) => own.statusLists.add(aList()), { by: 'system' });
        const client = aClient(tenantId);
        await store.forTenant(tenantId, (own) => own.clients.add(client), { by: 'system' });
        await store.forTenant(tenantId, (own) => own.clients.save(client), { by: 'system' });
        await store.forTenant(tenantId, (own) => own.clients.remove(client.clientId), { by: 'system' });
        expect(await revision()).to.equal(before + 7);
      });

      it('is unchanged when a transaction only read, or failed', async () => {
        const before = await revision();
        await store.forTenant(tenantId, async (own) => {
          await own.tenant.get();
          await own.credentialConfigurations.list();
        });
        await failureOf(store.forTenant(tenantId, (own) => own.keyChains.remove('none'), { by: 'system' }));
        expect(await revision()).to.equal(before);
      });

      it('of another tenant is unchanged', async () => {
        const before = (await stepsOf(store, other).state())?.revision;
        await store.forTenant(tenantId, (own) => own.credentialConfigurations.add(aConfiguration('one')), { by: 'system' });
        expect((await stepsOf(store, other).state())?.revision).to.equal(before);
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
          async (own) => {
            await own.credentialConfigurations.add(aConfiguration('one'));
            await own.clients.add(client);
            await own.statusLists.add(aList());
            await own.tenant.save({ ...(await own.tenant.get()), name: 'Changed' });
            throw new Error('broken');
          },
          { by: 'system' },
        );
        expect(String(await failureOf(broken))).to.contain('broken');
        await store.forTenant(tenantId, async (own) => {
          expect(await own.credentialConfigurations.list()).to.deep.equal([]);
          expect(await own.clients.list()).to.deep.equal([]);
          expect(await own.statusLists.list()).to.deep.equal([]);
          expect((await own.tenant.get()).name).to.equal('Acme');
        });
        expect(await revision()).to.equal(before);
      });

      it('over the service is rolled back completely when it throws', async () => {
        const tenant = aTenant();
        const broken = store.forService(
          async ({ tenants, clients }) => {
            await tenants.add(tenant);
            await clients.add(aClient(tenant.id));
            await tenants.remove(other);
            throw new Error('broken');
          },
          { by: 'system' },
        );
        await failureOf(broken);
        await store.forService(async ({ tenants, clients }) => {
          expect(await tenants.find(tenant.id)).to.equal(undefined);
          expect(await clients.listOf(tenant.id)).to.deep.equal([]);
          expect(await tenants.find(other)).to.not.equal(undefined);
        });
      });

      it('returns the result of its callback', async () => {
        expect(await store.forTenant(tenantId, async () => 7)).to.equal(7);
        expect(await store.forService(async () => 'done')).to.equal('done');
      });
    });
  });
}
