import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { IssuedToSubject, RevocationOrder } from '../../../application/ports/issued-subjects.ts';
import type { Store } from '../../../application/ports/store.ts';
import { SYSTEM } from '../../../domain/audit/audit-entry.ts';
import type { Change } from '../../../domain/changes/change.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { FollowingBatch } from '../../../domain/status-lists/wallet-status.ts';
import { aBatch, aDeferred, addTenant, aGrant, NOW, openOffer, REDEMPTION, seconds } from './builders.ts';

const FOREVER = 100_000;

export function describeIssuedSubjects(open: () => Store): void {
  describe('credentials by subject', () => {
    let store: Store;
    let tenantId: TenantId;
    let session: Session;
    let fingerprint: string;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      ({ session } = await openOffer(store, tenantId));
      fingerprint = randomUUID();
    });
    type IssueOptions = { readonly configurationId?: string; readonly endsAt?: Date | null; readonly follows?: FollowingBatch };
    const issue = (id: string, { configurationId = 'card', endsAt = null, follows }: IssueOptions = {}, subject = fingerprint) => {
      const batch = aBatch(session, { id, credentialConfigurationId: configurationId });
      const entry = { fingerprint: subject, batch: batch, endsAt, authorizedAt: NOW };
      return store.commit(tenantId, { issued: batch, identifies: entry, ...(follows && { follows }) }, NOW);
    };
    const order = (configurations?: string[], tenant = tenantId) =>
      store.maintenance.orderRevocations(tenant, [fingerprint], configurations, NOW);
    const findOrders = (limit = 10) => store.maintenance.revocationOrdersOf(tenantId, [fingerprint], limit);
    const release = (batchIds: readonly string[], change: Change = {}, tenant = tenantId) =>
      store.commit(tenant, { ...change, releases: { fingerprint, sessionId: session.id, batchIds } }, NOW);
    const fulfilOrder = async (one?: RevocationOrder) => {
      const order = one ?? (await findOrders())[0];
      if (order === undefined) throw new Error('nothing was ordered');
      await store.maintenance.fulfilOrder(order);
    };
    const issuedToSubject = (configurationId = 'card'): IssuedToSubject => ({
      ...{ tenantId, fingerprint, sessionId: session.id, credentialConfigurationId: configurationId },
    });

    it('have one subject key for each tenant, which is created once', async () => {
      const { maintenance } = store;
      const keys = await Promise.all(Array.from({ length: 5 }, () => maintenance.subjectKey(tenantId, randomBytes(32))));
      expect(new Set(keys.map((key) => key.toString('hex'))).size).to.equal(1);
      const otherKey = await maintenance.subjectKey(await addTenant(store), randomBytes(32));
      expect(otherKey).to.not.deep.equal(keys[0]);
      const keyOfUnknownTenant = maintenance.subjectKey('unknown' as TenantId, randomBytes(32));
      expect(await keyOfUnknownTenant.catch((error: Error) => error.message)).to.equal('the tenant was removed');
    });

    it('are recorded with their issuance or not at all, also together with a followed wallet', async () => {
      const statuses = [{ uri: 'https://provider.example/1', anchor: 'anchor', idx: 3, listId: randomUUID() }];
      const follows = { batchId: 'two', sessionId: session.id, endsAt: null, statuses };
      expect((await issue('one')).done).to.equal(true);
      expect((await issue('two', { follows })).done).to.equal(true);
      const batch = aBatch(session, { id: 'gone' });
      const failedCondition = { id: session.id, running: ['failed'], issuedBelow: 1 } as const;
      const result = await store.commit(
        tenantId,
        { issued: batch, identifies: { fingerprint, batch: batch, endsAt: null, authorizedAt: NOW }, session: failedCondition },
        NOW,
      );
      expect(result.done).to.equal(false);
      expect((await store.maintenance.batchesOf(issuedToSubject())).toSorted()).to.deep.equal(['one', 'two']);
      const list = { tenantId, id: statuses[0]?.listId ?? '' };
      expect(await store.maintenance.followers(list, [3], 10)).to.have.length(1);
      expect(await store.maintenance.countBatches(tenantId, [fingerprint], 10)).to.equal(2);
      expect(await store.maintenance.countBatches(tenantId, [fingerprint], 1)).to.equal(1);
      expect(await store.maintenance.countBatches(tenantId, ['another'], 10)).to.equal(0);
    });

    it('are scheduled for revocation once for each session and configuration', async () => {
      await issue('one');
      await issue('two');
      await issue('three', { configurationId: 'other' });
      await issue('bob', {}, randomUUID());
      await order();
      await order();
      expect((await findOrders()).map((order) => order.credentialConfigurationId).toSorted()).to.deep.equal(['card', 'other']);
      expect(await findOrders(1)).to.have.length(1);
      // The second order for the same batches is a moment later.
      const dueOrders = (await store.maintenance.dueRevocationOrders(seconds(1), 1_000)).filter((order) => order.tenantId === tenantId);
      expect(dueOrders).to.deep.equal(await findOrders());
      expect(await store.maintenance.dueRevocationOrders(seconds(-1), 1_000)).to.deep.equal([]);
    });

    it('are scheduled for revocation of some configurations, and of no other tenant', async () => {
      await issue('one');
      await issue('two', { configurationId: 'other' });
      await order(['other', 'none']);
      expect((await findOrders()).map(({ dueAt: _dueAt, ...order }) => order)).to.deep.equal([issuedToSubject('other')]);
      await order(undefined, await addTenant(store));
      expect(await findOrders()).to.have.length(1);
    });

    it('are removed from the schedule after their revocation, and stay when it failed', async () => {
      await issue('one');
      await issue('two');
      await order();
      const { maintenance } = store;
      await maintenance.postponeOrder(issuedToSubject(), seconds(60));
      const isDue = async (now: Date) => (await maintenance.dueRevocationOrders(now, 1_000)).some((order) => order.tenantId === tenantId);
      expect([await isDue(seconds(59)), await isDue(seconds(60))]).to.deep.equal([false, true]);
      expect((await release(['one'])).done).to.equal(true);
      await fulfilOrder();
      expect([await findOrders(), await maintenance.batchesOf(issuedToSubject())]).to.deep.equal([[], ['two']]);
    });

    it('are released once with all related changes, or not at all', async () => {
      await issue('one');
      await issue('two');
      const both = await Promise.all(Array.from({ length: 8 }, () => release(['one', 'two'])));
      expect(both.filter(({ done }) => done)).to.have.length(1);
      expect(both.find(({ done }) => !done)).to.deep.equal({ done: false, part: 'releases' });
      await issue('three');
      for (const ids of [['one', 'three'], ['none']]) expect(await release(ids)).to.deep.equal({ done: false, part: 'releases' });
      expect(await store.maintenance.batchesOf(issuedToSubject())).to.deep.equal(['three']);
      const failedCondition = { id: session.id, running: ['failed'] } as const;
      expect(await release(['three'], { session: failedCondition })).to.deep.equal({ done: false, part: 'session' });
      expect(await store.maintenance.batchesOf(issuedToSubject())).to.deep.equal(['three']);
      const otherTenant = await addTenant(store);
      expect((await release(['three'], {}, otherTenant)).done).to.equal(false);
      expect((await release(['three'])).done).to.equal(true);
    });

    it('are released with an audit entry, which counts only the released ones', async () => {
      await issue('one');
      const change = { action: 'revoked', kind: 'session', target: session.id, changes: [] } as const;
      const audit = { by: SYSTEM, change } as const;
      const both = await Promise.all(Array.from({ length: 8 }, () => release(['one'], { audit })));
      expect(both.filter(({ done }) => done)).to.have.length(1);
      const auditEntries = await store.forTenant(tenantId, (transaction) => transaction.audit.list({ limit: 100 }));
      expect(auditEntries.filter(({ target }) => target === session.id)).to.have.length(1);
    });

    it('stay scheduled when their revocation was requested again during the revocation', async () => {
      await issue('one');
      await order();
      const [first] = await findOrders();
      await issue('two');
      await order();
      await fulfilOrder(first);
      expect(await findOrders(), 'the order covers a batch that was issued in the meantime').to.have.length(1);
      await fulfilOrder();
      expect(await findOrders()).to.deep.equal([]);
    });

    const identify = (id: string, authorized: { grantId?: string; authorizedAt?: Date }, configurationId = 'card') => {
      const batch = aBatch(session, { id, credentialConfigurationId: configurationId });
      const entry = { fingerprint, batch: batch, endsAt: null, authorizedAt: NOW, ...authorized };
      return store.commit(tenantId, { issued: batch, identifies: entry }, NOW);
    };
    const createRedeemedGrant = async (time: Date, credentialConfigurationIds: readonly string[] = ['card']) => {
      const grant = aGrant(session, { credentialConfigurationIds });
      const change = { id: grant.id, act: 'redeem', redemption: REDEMPTION } as const;
      await store.commit(tenantId, { opens: { grant } }, time);
      expect((await store.commit(tenantId, { grant: change }, time)).done).to.equal(true);
      return grant.id;
    };
    const revokedAt = async (grantId: string) => (await store.read(tenantId).grant(grantId))?.grant?.revokedAt ?? null;
    const REJECTED = { done: false, part: 'identifies' } as const;

    it('are not recorded for a wallet that was authorized before a revocation, but for a later one', async () => {
      // The processes whose clocks are ahead and behind recorded these grants before and after the revocation.
      const before = await createRedeemedGrant(seconds(40));
      const { maintenance } = store;
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(10));
      // An older revocation record does not replace a newer one.
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(5));
      const grantAfter = await createRedeemedGrant(seconds(-20));
      expect(await identify('one', { grantId: before, authorizedAt: seconds(20) })).to.deep.equal(REJECTED);
      expect(await identify('two', { authorizedAt: seconds(10) })).to.deep.equal(REJECTED);
      expect(await identify('three', { grantId: 'gone', authorizedAt: seconds(10) })).to.deep.equal(REJECTED);
      expect((await store.read(tenantId).issued(session.id))?.batches).to.deep.equal([]);
      expect(await identify('four', { grantId: grantAfter, authorizedAt: seconds(1) })).to.deep.equal({ done: true });
      expect(await identify('five', { authorizedAt: seconds(11) })).to.deep.equal({ done: true });
      expect((await maintenance.batchesOf(issuedToSubject())).toSorted()).to.deep.equal(['five', 'four']);
      // The revocation record belongs to this tenant and this subject.
      expect((await issue('six', {}, randomUUID())).done).to.equal(true);
    });

    it('are not recorded after a revocation of their configuration alone', async () => {
      await store.maintenance.noteRevoked(tenantId, [fingerprint], ['other', 'card'], seconds(10));
      for (const configurationId of ['other', 'card']) expect(await identify(configurationId, {}, configurationId)).to.deep.equal(REJECTED);
      expect(await identify('third', {}, 'third')).to.deep.equal({ done: true });
    });

    it('record the grant, which is revoked when all of its configurations are revoked', async () => {
      const { maintenance } = store;
      const one = await createRedeemedGrant(NOW);
      const two = await createRedeemedGrant(NOW, ['card', 'other']);
      const otherGrant = await createRedeemedGrant(NOW);
      for (const [id, grantId] of Object.entries({ one, two })) await identify(id, { grantId });
      const all = async () => {
        const times = await Promise.all([one, two, otherGrant].map(revokedAt));
        return times.map((time) => time !== null);
      };
      await maintenance.noteRevoked(tenantId, [fingerprint], ['card'], seconds(10));
      await maintenance.revokeGrants(tenantId, ['unknown'], seconds(10));
      await maintenance.revokeGrants(await addTenant(store), [fingerprint], seconds(10));
      expect(await all()).to.deep.equal([false, false, false]);
      await maintenance.revokeGrants(tenantId, [fingerprint], seconds(10));
      expect(await all()).to.deep.equal([true, false, false]);
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(20));
      await maintenance.revokeGrants(tenantId, [fingerprint], seconds(20));
      expect(await all()).to.deep.equal([true, true, false]);
      const laterGrant = await createRedeemedGrant(NOW);
      expect((await identify('later', { grantId: laterGrant })).done).to.equal(true);
      await maintenance.revokeGrants(tenantId, [fingerprint], seconds(20));
      expect(await revokedAt(laterGrant)).to.equal(null);
      expect(await revokedAt(one), 'the first revocation counts').to.deep.equal(seconds(10));
    });

    it('revoke a grant that issued none of them, unless it covers more than was revoked', async () => {
      const { maintenance } = store;
      const [one, two] = [await createRedeemedGrant(NOW), await createRedeemedGrant(NOW, ['card', 'other'])];
      const revoke = (grantId: string) => maintenance.revokeGrant(tenantId, fingerprint, grantId, seconds(20));
      expect(await revoke(one)).to.equal(false);
      await maintenance.noteRevoked(tenantId, [fingerprint], ['card'], seconds(10));
      expect([await revoke(one), await revoke(two), await revoke('none')]).to.deep.equal([true, false, false]);
      expect(await revoke(one), 'the revocation is final').to.equal(true);
    });

    it('of a deferred transaction keep the time of the authorization of their wallet', async () => {
      const grantId = await createRedeemedGrant(seconds(-30));
      const statuses = [{ uri: 'https://provider.example/1', anchor: 'anchor', idx: 3, keptUntil: 1_900_000_000 }];
      for (const [configurationId, authorizedAt] of [
        [{ grantId: null, authorizedAt: seconds(-90) }, seconds(-90)],
        [{ grantId, authorizedAt: NOW }, seconds(-30)],
        [{ grantId: null, authorizedAt: null }, null],
      ] as const) {
        for (const hasStatuses of [false, true]) {
          const transaction = aDeferred(session, configurationId);
          const condition = { transactionId: transaction.id, statuses };
          await store.commit(tenantId, { opens: { deferred: transaction }, ...(hasStatuses && { holds: condition }) }, NOW);
          const storedTransaction = await store.read(tenantId).deferred(transaction.id);
          expect(storedTransaction?.authorizedAt).to.deep.equal(authorizedAt);
          expect(storedTransaction?.walletStatuses).to.deep.equal(hasStatuses ? statuses : null);
        }
      }
    });

    it('are not recorded for a grant that was recorded before the revocation and redeemed after it', async () => {
      const grants = [aGrant(session), aGrant(session)] as const;
      const [before, grantAfter] = grants;
      await store.commit(tenantId, { opens: { grant: before } }, seconds(30));
      await store.maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(10));
      await store.commit(tenantId, { opens: { grant: grantAfter } }, NOW);
      for (const { id } of grants) {
        const redemption = { id, act: 'redeem', redemption: REDEMPTION } as const;
        expect((await store.commit(tenantId, { grant: redemption }, seconds(40))).done).to.equal(true);
      }
      expect(await identify('one', { grantId: before.id, authorizedAt: seconds(50) })).to.deep.equal(REJECTED);
      expect(await identify('two', { grantId: grantAfter.id, authorizedAt: NOW })).to.deep.equal({ done: true });
    });

    it('keep the order of revocations when all records of the tenant are old', async () => {
      const { maintenance } = store;
      for (const _ of [1, 2]) await maintenance.noteRevoked(tenantId, [fingerprint, randomUUID()], undefined, NOW);
      const grantId = await createRedeemedGrant(NOW);
      const twoYearsLater = seconds(2 * 366 * 86_400);
      await maintenance.noteRevoked(tenantId, [randomUUID()], undefined, twoYearsLater);
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, twoYearsLater);
      expect(await identify('one', { grantId, authorizedAt: twoYearsLater })).to.deep.equal(REJECTED);
    });

    it('keep a grant that also serves another subject, until that subject is revoked, too', async () => {
      const { maintenance } = store;
      const [sharedGrant, ownGrant] = [await createRedeemedGrant(NOW), await createRedeemedGrant(NOW)];
      const otherSubject = randomUUID();
      await identify('one', { grantId: sharedGrant });
      const batch = aBatch(session, { id: 'two' });
      const entry = { fingerprint: otherSubject, batch: batch, endsAt: null, authorizedAt: NOW };
      await store.commit(tenantId, { issued: batch, identifies: { ...entry, grantId: sharedGrant } }, NOW);
      await identify('three', { grantId: ownGrant });
      const serves = () => maintenance.servesOthers(issuedToSubject());
      expect(await serves()).to.equal(true);
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, NOW);
      await maintenance.revokeGrants(tenantId, [fingerprint], NOW);
      expect(await maintenance.revokeGrant(tenantId, fingerprint, sharedGrant, NOW)).to.equal(false);
      expect([await revokedAt(sharedGrant), await revokedAt(ownGrant)]).to.deep.equal([null, NOW]);
      expect(await serves()).to.equal(true);
      await maintenance.noteRevoked(tenantId, [otherSubject], undefined, NOW);
      expect(await serves()).to.equal(false);
      await maintenance.revokeGrants(tenantId, [otherSubject], seconds(1));
      expect(await revokedAt(sharedGrant)).to.deep.equal(seconds(1));
    });

    it('are found by a simultaneous revocation, or not recorded', async () => {
      const { maintenance } = store;
      const issuances = Array.from({ length: 24 }, (_, index) => identify(`batch-${index}`, {}));
      const revocation = (async () => {
        await maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(1));
        await order();
        return maintenance.batchesOf(issuedToSubject());
      })();
      const results = await Promise.all(issuances);
      const recorded = results.flatMap(({ done }, index) => (done ? [`batch-${index}`] : []));
      expect((await revocation).toSorted()).to.deep.equal(recorded.toSorted());
    });

    it('are removed after their expiry', async () => {
      await issue('short', { endsAt: seconds(5) });
      await issue('long', { endsAt: seconds(FOREVER) });
      await issue('endless');
      for (let removed = 500; removed >= 500; ) removed = await store.maintenance.forgetExpired(seconds(5), 500);
      expect((await store.maintenance.batchesOf(issuedToSubject())).toSorted()).to.deep.equal(['endless', 'long']);
    });
  });
}
