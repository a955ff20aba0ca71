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

/** One row in every table, with the same ids for every tenant. */
async function fill(store: Store, tenantId: TenantId, mark: string) {
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
    async (own) => {
      await own.credentialConfigurations.add(configuration);
      await own.keyChains.add(chain);
      await own.issuanceConfiguration.add({
        ...IssuanceConfigurationBody.parse({ display }),
        id: 'default',
        createdAt: NOW,
        updatedAt: NOW,
      });
      await own.presentationConfigurations.add({
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
      await own.registrarConfiguration.add(aRegistrarConfiguration({ username: mark }));
      await own.registrationCertificates.add({ ...aRegistrationCertificate('same'), certificateId: mark });
      await own.statusLists.add(list);
      await own.clients.add(client);
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

/** What a tenant sees of its own rows. */
async function picture(store: Store, tenantId: TenantId) {
  const steps = stepsOf(store, tenantId);
  return store
    .forTenant(tenantId, async (own) => ({
      configurations: await own.credentialConfigurations.list(),
      issuance: await own.issuanceConfiguration.list(),
      presentations: await own.presentationConfigurations.list(),
      chains: await own.keyChains.list(),
      registrar: await own.registrarConfiguration.list(),
      registrations: await own.registrationCertificates.list(),
      lists: await own.statusLists.list(),
      clients: await own.clients.list(),
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
      await fill(store, one, 'mark-one');
      const bare = await picture(store, two);
      expect(bare).to.deep.include(EMPTY);
      expect(bare.wallet?.session).to.equal(undefined);
      expect(bare.grant?.grant).to.equal(undefined);
      expect(bare.issuing).to.deep.include({ session: undefined, use: undefined, used: undefined, revoked: false });
      await fill(store, two, 'mark-two');
      expect(JSON.stringify(await picture(store, one)))
        .to.contain('mark-one')
        .and.not.contain('mark-two');
      expect(JSON.stringify(await picture(store, two)))
        .to.contain('mark-two')
        .and.not.contain('mark-one');
    });

    it('change no data of each other', async () => {
      const { session } = await fill(store, one, 'mark-one');
      await fill(store, two, 'mark-two');
      const before = await picture(store, two);
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
        async (own) => {
          await own.credentialConfigurations.put(aConfiguration('same'));
          await own.keyChains.remove('same');
          await own.presentationConfigurations.remove('same');
        },
        { by: 'system' },
      );
      expect(await picture(store, two)).to.deep.equal(before);
    });

    it('are removed with all their data and no data of another tenant', async () => {
      const gone = await fill(store, one, 'mark-one');
      await fill(store, two, 'mark-two');
      const before = await picture(store, two);
      await store.forService(({ tenants }) => tenants.remove(one), { by: 'system' });
      expect(await picture(store, two)).to.deep.equal(before);
      expect(await stepsOf(store, two).commit({ uses: [gone.value] })).to.include({ done: false });
      expect(await stepsOf(store, one).state()).to.equal(undefined);
      expect(await store.forService(({ clients }) => clients.find(gone.client.clientId))).to.equal(undefined);

      await addTenant(store, { id: one });
      const anew = await picture(store, one);
      expect(anew).to.deep.include(EMPTY);
      expect(anew.grant?.grant).to.equal(undefined);
      expect(await stepsOf(store, one).commit({ uses: [gone.value] })).to.include({ done: true });
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
      let inside = () => {};
      const entered = new Promise<void>((resolve) => {
        inside = resolve;
      });
      const broken = store.forTenant(
        tenantId,
        async (own) => {
          await own.credentialConfigurations.add(aConfiguration('one'));
          inside();
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
      const documents = await store.forTenant(tenantId, (own) => own.credentialConfigurations.list());
      expect(documents).to.deep.equal([]);
    });

    it('are stored completely or not at all when some of them fail', async () => {
      const sessions = Array.from({ length: 60 }, () => aSession(tenantId));
      const values = Array.from({ length: 20 }, () => aUse('c_nonce'));
      const answers = await Promise.all(
        sessions.map((session, index) => {
          // Three want each of the values, and each brings one of its own.
          const uses = [aUse('dpop_jti'), values[index % 20] ?? aUse()];
          return store.commit(tenantId, { opens: { session }, uses }, session.createdAt);
        }),
      );
      for (let value = 0; value < 20; value++) {
        const rivals = [answers[value], answers[value + 20], answers[value + 40]];
        expect(rivals.filter((answer) => answer?.done)).to.have.length(1);
        for (const answer of rivals) if (!answer?.done) expect(answer).to.deep.equal({ done: false, part: 'uses', kind: 'c_nonce' });
      }
      const steps = stepsOf(store, tenantId);
      for (const [index, { id }] of sessions.entries())
        expect((await steps.session(id))?.session !== undefined).to.equal(answers[index]?.done);
    });

    it('all end when some of many steps and transactions fail', async () => {
      const list = await addList(store, tenantId);
      const work = Array.from({ length: 150 }, async (_, index) => {
        if (index % 3 === 0) {
          const failing = index % 2 === 0;
          const transaction = store.forTenant(
            tenantId,
            async (own) => {
              await own.credentialConfigurations.put(aConfiguration(`id-${index}`));
              await sleep(1);
              if (failing) throw new Error('broken');
            },
            { by: 'system' },
          );
          return failing ? failureOf(transaction) : transaction;
        }
        return stepsOf(store, tenantId).allocateStatusRun(list, 1);
      });
      await Promise.all(work);
      expect((await stepsOf(store, tenantId).statusList(list.id))?.usedEntries).to.equal(100);
      const documents = await store.forTenant(tenantId, (own) => own.credentialConfigurations.list());
      expect(documents).to.have.length(25);
    });

    it('reject one of two transactions that read the same version and save', async () => {
      const save = (name: string) =>
        failureOf(
          store.forTenant(
            tenantId,
            async (own) => {
              const tenant = await own.tenant.get();
              await sleep(5);
              await own.tenant.save({ ...tenant, name });
            },
            { by: 'system' },
          ),
        );
      const tenant = await store.forTenant(tenantId, (own) => own.tenant.get());
      const stale = (name: string) => failureOf(store.forTenant(tenantId, (own) => own.tenant.save({ ...tenant, name }), { by: 'system' }));
      const results = await Promise.all([stale('a'), stale('b'), stale('c')]);
      expect(results.filter((result) => result === 'conflict')).to.have.length(2);
      expect(await save('last')).to.equal('nothing failed');
    });
  });
}
