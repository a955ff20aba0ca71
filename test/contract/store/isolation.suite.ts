import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import { IssuanceConfigurationBody } from '../../../domain/issuance/issuance-configuration.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import {
  aBatch,
  aClient,
  aConfiguration,
  addList,
  addTenant,
  aGrant,
  aKeyChain,
  aList,
  aRegistrarConfiguration,
  aRegistrationCertificate,
  aSession,
  aUse,
  failureOf,
  NOW,
  REDEMPTION,
  seconds,
} from './builders.ts';
import { batchIssuance, grantRedemption, responseDelivery, sessionOpening, sessionRemoval, stepsOf } from './steps.ts';

/** Inserts one row into every table, with the same identifiers for every tenant. */
async function insertRows(store: Store, tenantId: TenantId, mark: string) {
  const value = aUse('dpop_jti', { hash: 'same' });
  const session = aSession(tenantId, { id: 'same' as never, publicId: 'same' as never, outcome: { redirectUri: mark } });
  const grant = aGrant(session, { id: 'same', codeHash: 'same', txCodeHash: mark });
  const list = aList({ id: 'same', keyChainId: mark });
  const configuration = aConfiguration('same', { description: mark });
  const chain = { ...aKeyChain(tenantId, 'same'), description: mark };
  const display = [{ name: mark }];
  const client = aClient(tenantId, { description: mark });
  const batch = aBatch(session, { id: 'same', credentialConfigurationId: mark });
  await store.forTenant(
    tenantId,
    async (repositories) => {
      await repositories.credentialConfigurations.add(configuration);
      await repositories.keyChains.add(chain);
      await repositories.issuanceConfiguration.add({
        ...IssuanceConfigurationBody.parse({ display }),
        id: 'default',
        createdAt: NOW,
        updatedAt: NOW,
      });
      await repositories.presentationConfigurations.add({
        id: 'same',
        dcql_query: { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['x'] } }] },
        lifeTime: 300,
        responseMode: 'direct_post',
        clientIdPrefix: 'x509_hash',
        requestUriMethod: 'get',
        invocationUri: 'openid4vp://',
        dcApiRequest: 'signed',
        dcApiProtocols: ['openid4vp'],
        trustAnchors: [{ ownAuthorities: true }],
        description: mark,
        createdAt: NOW,
        updatedAt: NOW,
      });
      await repositories.registrarConfiguration.add(aRegistrarConfiguration({ username: mark }));
      await repositories.registrationCertificates.add({ ...aRegistrationCertificate('same'), certificateId: mark });
      await repositories.statusLists.add(list);
      await repositories.clients.add(client);
    },
    { by: 'system' },
  );
  const steps = stepsOf(store, tenantId);
  await steps.commit(sessionOpening(session, grant));
  await steps.commit(batchIssuance(session.id, batch, 1, 3));
  await steps.commit({ statuses: [{ listId: 'same', index: 1, status: 1 }] });
  await steps.commit({ uses: [value] });
  return { session, value, client };
}

/** Everything that a tenant can read of its rows. */
async function readEverything(store: Store, tenantId: TenantId) {
  const steps = stepsOf(store, tenantId);
  return store
    .forTenant(tenantId, async (repositories) => ({
      configurations: await repositories.credentialConfigurations.list(),
      issuance: await repositories.issuanceConfiguration.list(),
      presentations: await repositories.presentationConfigurations.list(),
      chains: await repositories.keyChains.list(),
      registrar: await repositories.registrarConfiguration.list(),
      registrations: await repositories.registrationCertificates.list(),
      lists: await repositories.statusLists.list(),
      clients: await repositories.clients.list(),
    }))
    .then(async (administration) => ({
      ...administration,
      head: await steps.state(),
      session: (await steps.session('same' as never))?.session,
      wallet: await steps.sessionByPublicId('same' as never),
      sessions: await steps.sessions({ kinds: [], ascending: true, limit: 10 }),
      versions: await steps.sessionVersions(['same' as never]),
      events: await steps.sessionEvents('same' as never, 0, 10),
      grant: await steps.grantByCode('same'),
      batches: (await steps.issued('same' as never))?.batches ?? [],
      issuing: await steps.issuing('same' as never, [aUse('dpop_jti', { hash: 'same' })], 'same'),
      list: await steps.statusList('same'),
      heads: await steps.statusListVersions(['same']),
      entries: await steps.statusEntries('same', 0),
    }));
}

const EMPTY = {
  configurations: [],
  issuance: [],
  presentations: [],
  chains: [],
  lists: [],
  clients: [],
  session: undefined,
  sessions: [],
  versions: [],
  events: [],
  batches: [],
  list: undefined,
  heads: [],
  entries: [],
};

export function describeIsolation(open: () => Store): void {
  describe('tenants with the same ids', () => {
    let store: Store;
    let one: TenantId;
    let two: TenantId;
    beforeEach(async () => {
      store = open();
      one = await addTenant(store);
      two = await addTenant(store);
    });

    it('read no data of each other', async () => {
      await insertRows(store, one, 'mark-one');
      const emptyTenant = await readEverything(store, two);
      expect(emptyTenant).to.deep.include(EMPTY);
      expect(emptyTenant.wallet?.session).to.equal(undefined);
      expect(emptyTenant.grant?.grant).to.equal(undefined);
      expect(emptyTenant.issuing).to.deep.include({ session: undefined, use: undefined, used: undefined, revoked: false });
      await insertRows(store, two, 'mark-two');
      expect(JSON.stringify(await readEverything(store, one)))
        .to.contain('mark-one')
        .and.not.contain('mark-two');
      expect(JSON.stringify(await readEverything(store, two)))
        .to.contain('mark-two')
        .and.not.contain('mark-one');
    });

    it('change no data of each other', async () => {
      const { session } = await insertRows(store, one, 'mark-one');
      await insertRows(store, two, 'mark-two');
      const before = await readEverything(store, two);
      const steps = stepsOf(store, one);
      await steps.fetchSession(session.publicId, NOW);
      await steps.commit({ grant: { id: 'same', act: 'attempt', attemptsBelow: 1 } });
      await steps.commit(grantRedemption({ id: 'same', sessionId: session.id, kind: 'pre_authorized_code' }, REDEMPTION, [aUse()]));
      await steps.commit(responseDelivery(session.id));
      await steps.commit(batchIssuance(session.id, aBatch(session), 2, 3));
      await steps.allocateStatusRun({ id: 'same', keyChainId: null }, 5);
      await steps.commit({ statuses: [{ listId: 'same', index: 1, status: 0 }] });
      await steps.saveStatusToken('same', 'jwt', { version: 1, term: 0 }, NOW, seconds(60));
      await steps.commit(sessionRemoval(session.id, 'system'));
      await store.forTenant(
        one,
        async (repositories) => {
          await repositories.credentialConfigurations.put(aConfiguration('same'));
          await repositories.keyChains.remove('same');
          await repositories.presentationConfigurations.remove('same');
        },
        { by: 'system' },
      );
      expect(await readEverything(store, two)).to.deep.equal(before);
    });

    it('are removed with all their data and no data of another tenant', async () => {
      const removedTenant = await insertRows(store, one, 'mark-one');
      await insertRows(store, two, 'mark-two');
      const before = await readEverything(store, two);
      await store.forService(({ tenants }) => tenants.remove(one), { by: 'system' });
      expect(await readEverything(store, two)).to.deep.equal(before);
      expect(await stepsOf(store, two).commit({ uses: [removedTenant.value] })).to.include({ done: false });
      expect(await stepsOf(store, one).state()).to.equal(undefined);
      expect(await store.forService(({ clients }) => clients.find(removedTenant.client.clientId))).to.equal(undefined);

      await addTenant(store, { id: one });
      const afterRecreation = await readEverything(store, one);
      expect(afterRecreation).to.deep.include(EMPTY);
      expect(afterRecreation.grant?.grant).to.equal(undefined);
      expect(await stepsOf(store, one).commit({ uses: [removedTenant.value] })).to.include({ done: true });
    });
  });
}

export function describeConcurrency(open: () => Store): void {
  describe('concurrent changes', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });

    it('keep a step that committed during a transaction that was rolled back', async () => {
      const session = aSession(tenantId);
      let step: Promise<unknown> = Promise.resolve();
      let notifyEntered = () => {};
      const entered = new Promise<void>((resolve) => {
        notifyEntered = resolve;
      });
      const broken = store.forTenant(
        tenantId,
        async (repositories) => {
          await repositories.credentialConfigurations.add(aConfiguration('one'));
          notifyEntered();
          await sleep(50);
          throw new Error('broken');
        },
        { by: 'system' },
      );
      const failure = failureOf(broken);
      await entered;
      step = stepsOf(store, tenantId).commit(sessionOpening(session));
      expect(String(await failure)).to.contain('broken');
      await step;
      expect((await stepsOf(store, tenantId).session(session.id))?.session).to.deep.equal(session);
      const documents = await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.list());
      expect(documents).to.deep.equal([]);
    });

    it('are stored completely or not at all when some of them fail', async () => {
      const sessions = Array.from({ length: 60 }, () => aSession(tenantId));
      const values = Array.from({ length: 20 }, () => aUse('c_nonce'));
      const results = await Promise.all(
        sessions.map((session, index) => {
          // Three sessions use each of the values, and each session adds a value that no other one uses.
          const uses = [aUse('dpop_jti'), values[index % 20] ?? aUse()];
          return store.commit(tenantId, { opens: { session }, uses }, session.createdAt);
        }),
      );
      for (let value = 0; value < 20; value++) {
        const competing = [results[value], results[value + 20], results[value + 40]];
        expect(competing.filter((answer) => answer?.done)).to.have.length(1);
        for (const answer of competing) if (!answer?.done) expect(answer).to.deep.equal({ done: false, part: 'uses', kind: 'c_nonce' });
      }
      const steps = stepsOf(store, tenantId);
      for (const [index, { id }] of sessions.entries())
        expect((await steps.session(id))?.session !== undefined).to.equal(results[index]?.done);
    });

    it('all end when some of many steps and transactions fail', async () => {
      const list = await addList(store, tenantId);
      const work = Array.from({ length: 150 }, async (_, index) => {
        if (index % 3 === 0) {
          const shouldFail = index % 2 === 0;
          const transaction = store.forTenant(
            tenantId,
            async (repositories) => {
              await repositories.credentialConfigurations.put(aConfiguration(`id-${index}`));
              await sleep(1);
              if (shouldFail) throw new Error('broken');
            },
            { by: 'system' },
          );
          return shouldFail ? failureOf(transaction) : transaction;
        }
        return stepsOf(store, tenantId).allocateStatusRun(list, 1);
      });
      await Promise.all(work);
      expect((await stepsOf(store, tenantId).statusList(list.id))?.usedEntries).to.equal(100);
      const documents = await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.list());
      expect(documents).to.have.length(25);
    });

    it('reject one of two transactions that read the same version and save', async () => {
      const save = (name: string) =>
        failureOf(
          store.forTenant(
            tenantId,
            async (repositories) => {
              const tenant = await repositories.tenant.get();
              await sleep(5);
              await repositories.tenant.save({ ...tenant, name });
            },
            { by: 'system' },
          ),
        );
      const tenant = await store.forTenant(tenantId, (repositories) => repositories.tenant.get());
      const saveStale = (name: string) =>
        failureOf(store.forTenant(tenantId, (repositories) => repositories.tenant.save({ ...tenant, name }), { by: 'system' }));
      const results = await Promise.all([saveStale('a'), saveStale('b'), saveStale('c')]);
      expect(results.filter((result) => result === 'conflict')).to.have.length(2);
      expect(await save('last')).to.equal('nothing failed');
    });
  });
}
