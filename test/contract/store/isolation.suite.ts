import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import { IssuanceConfigurationBody } from '../../../domain/issuance/issuance-configuration.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import {
  aBatch,
  aClient,
  aConfiguration,
  addTenant,
  aGrant,
  aKeyChain,
  aList,
  aRegistrarConfiguration,
  aRegistrationCertificate,
  aSession,
  aUse,
  NOW,
  REDEMPTION,
  seconds,
} from './builders.ts';
import { stepsOf } from './steps.ts';

/** One row in every table, with the same ids for every tenant. */
async function fill(store: Store, tenantId: TenantId, mark: string) {
  const value = aUse('dpop_jti', { hash: 'same' });
  const session = aSession(tenantId, {
    id: 'same' as never,
    publicId: 'same' as never,
    outcome: { redirectUri: mark },
  });
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
  await steps.openSession(session, grant);
  await steps.recordIssuance(session.id, batch, 1, 3, NOW);
  await steps.changeStatuses([{ listId: 'same', index: 1, status: 1 }], NOW);
  await steps.remember([value]);
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
      session: await steps.findSession('same' as never),
      wallet: await steps.sessionByPublicId('same' as never),
      sessions: await steps.listSessions({ kinds: [], ascending: true, limit: 10 }),
      versions: await steps.sessionVersions(['same' as never]),
      events: await steps.sessionEvents('same' as never, 0, 10),
      grant: await steps.grantByCode('same'),
      batches: await steps.issuedBatches('same' as never),
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

    it('see nothing of each other', async () => {
      await fill(store, one, 'mark-one');
      const bare = await picture(store, two);
      expect(bare).to.deep.include(EMPTY);
      expect(bare.wallet?.session).to.equal(undefined);
      expect(bare.grant?.grant).to.equal(undefined);
      expect(bare.issuing).to.deep.include({
        session: undefined,
        use: undefined,
        used: undefined,
        revoked: false,
      });
      await fill(store, two, 'mark-two');
      expect(JSON.stringify(await picture(store, one)))
        .to.contain('mark-one')
        .and.not.contain('mark-two');
      expect(JSON.stringify(await picture(store, two)))
        .to.contain('mark-two')
        .and.not.contain('mark-one');
    });

    it('change nothing of each other', async () => {
      const { session } = await fill(store, one, 'mark-one');
      await fill(store, two, 'mark-two');
      const before = await picture(store, two);
      const steps = stepsOf(store, one);
      await steps.fetchSession(session.publicId, NOW);
      await steps.takeAttempt('same', 1);
      await steps.consumeGrant('same', REDEMPTION, [aUse()], NOW);
      await steps.claimResponse(session.id, NOW);
      await steps.recordIssuance(session.id, aBatch(session), 2, 3, NOW);
      await steps.takeStatusRun({ id: 'same', keyChainId: null }, 5);
      await steps.changeStatuses([{ listId: 'same', index: 1, status: 0 }], NOW);
      await steps.saveStatusToken('same', 'jwt', { version: 1, term: 0 }, NOW, seconds(60));
      await steps.removeSession(session.id, 'system');
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

    it('go with all that is their own and with nothing of another', async () => {
      const gone = await fill(store, one, 'mark-one');
      await fill(store, two, 'mark-two');
      const before = await picture(store, two);
      await store.forService(({ tenants }) => tenants.remove(one), { by: 'system' });
      expect(await picture(store, two)).to.deep.equal(before);
      expect(await stepsOf(store, two).remember([gone.value])).to.equal(false);
      expect(await stepsOf(store, one).state()).to.equal(undefined);
      expect(await store.forService(({ clients }) => clients.find(gone.client.clientId))).to.equal(undefined);

      await addTenant(store, { id: one });
      const anew = await picture(store, one);
      expect(anew).to.deep.include(EMPTY);
      expect(anew.grant?.grant).to.equal(undefined);
      expect(await stepsOf(store, one).remember([gone.value])).to.equal(true);
    });
  });
}
