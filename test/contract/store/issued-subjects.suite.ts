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
    type Issuing = { readonly of?: string; readonly endsAt?: Date | null; readonly follows?: FollowingBatch };
    const issue = (id: string, { of = 'card', endsAt = null, follows }: Issuing = {}, named = fingerprint) => {
      const issued = aBatch(session, { id, credentialConfigurationId: of });
      const identifies = { fingerprint: named, batch: issued, endsAt, authorizedAt: NOW };
      return store.commit(tenantId, { issued, identifies, ...(follows && { follows }) }, NOW);
    };
    const order = (configurations?: string[], tenant = tenantId) =>
      store.maintenance.orderRevocations(tenant, [fingerprint], configurations, NOW);
    const ordered = (limit = 10) => store.maintenance.revocationOrdersOf(tenantId, [fingerprint], limit);
    const release = (batchIds: readonly string[], change: Change = {}, tenant = tenantId) =>
      store.commit(tenant, { ...change, releases: { fingerprint, sessionId: session.id, batchIds } }, NOW);
    const fulfil = async (one?: RevocationOrder) => {
      const given = one ?? (await ordered())[0];
      if (given === undefined) throw new Error('nothing was ordered');
      await store.maintenance.fulfilOrder(given);
    };
    const about = (of = 'card'): IssuedToSubject => ({
      ...{ tenantId, fingerprint, sessionId: session.id, credentialConfigurationId: of },
    });

    it('have one subject key for each tenant, which is created once', async () => {
      const { maintenance } = store;
      const keys = await Promise.all(Array.from({ length: 5 }, () => maintenance.subjectKey(tenantId, randomBytes(32))));
      expect(new Set(keys.map((key) => key.toString('hex'))).size).to.equal(1);
      const other = await maintenance.subjectKey(await addTenant(store), randomBytes(32));
      expect(other).to.not.deep.equal(keys[0]);
      const nobody = maintenance.subjectKey('nobody' as TenantId, randomBytes(32));
      expect(await nobody.catch((error: Error) => error.message)).to.equal('the tenant was removed');
    });

    it('are recorded with their issuance or not at all, also together with a followed wallet', async () => {
      const statuses = [{ uri: 'https://provider.example/1', anchor: 'anchor', idx: 3, listId: randomUUID() }];
      const follows = { batchId: 'two', sessionId: session.id, endsAt: null, statuses };
      expect((await issue('one')).done).to.equal(true);
      expect((await issue('two', { follows })).done).to.equal(true);
      const issued = aBatch(session, { id: 'gone' });
      const never = { id: session.id, running: ['failed'], issuedBelow: 1 } as const;
      const refused = await store.commit(
        tenantId,
        { issued, identifies: { fingerprint, batch: issued, endsAt: null, authorizedAt: NOW }, session: never },
        NOW,
      );
      expect(refused.done).to.equal(false);
      expect((await store.maintenance.batchesOf(about())).toSorted()).to.deep.equal(['one', 'two']);
      const list = { tenantId, id: statuses[0]?.listId ?? '' };
      expect(await store.maintenance.followers(list, [3], 10)).to.have.length(1);
      expect(await store.maintenance.countBatches(tenantId, [fingerprint], 10)).to.equal(2);
      expect(await store.maintenance.countBatches(tenantId, [fingerprint], 1)).to.equal(1);
      expect(await store.maintenance.countBatches(tenantId, ['another'], 10)).to.equal(0);
    });

    it('are scheduled for revocation once for each session and configuration', async () => {
      await issue('one');
      await issue('two');
      await issue('three', { of: 'other' });
      await issue('bob', {}, randomUUID());
      await order();
      await order();
      expect((await ordered()).map((each) => each.credentialConfigurationId).toSorted()).to.deep.equal(['card', 'other']);
      expect(await ordered(1)).to.have.length(1);
      // The second order of the same is a moment later.
      const due = (await store.maintenance.dueRevocationOrders(seconds(1), 1_000)).filter((each) => each.tenantId === tenantId);
      expect(due).to.deep.equal(await ordered());
      expect(await store.maintenance.dueRevocationOrders(seconds(-1), 1_000)).to.deep.equal([]);
    });

    it('are scheduled for revocation of some configurations, and of no other tenant', async () => {
      await issue('one');
      await issue('two', { of: 'other' });
      await order(['other', 'none']);
      expect((await ordered()).map(({ dueAt: _due, ...each }) => each)).to.deep.equal([about('other')]);
      await order(undefined, await addTenant(store));
      expect(await ordered()).to.have.length(1);
    });

    it('are removed from the schedule after their revocation, and stay when it failed', async () => {
      await issue('one');
      await issue('two');
      await order();
      const { maintenance } = store;
      await maintenance.postponeOrder(about(), seconds(60));
      const due = async (now: Date) => (await maintenance.dueRevocationOrders(now, 1_000)).some((each) => each.tenantId === tenantId);
      expect([await due(seconds(59)), await due(seconds(60))]).to.deep.equal([false, true]);
      expect((await release(['one'])).done).to.equal(true);
      await fulfil();
      expect([await ordered(), await maintenance.batchesOf(about())]).to.deep.equal([[], ['two']]);
    });

    it('are released once with all related changes, or not at all', async () => {
      await issue('one');
      await issue('two');
      const both = await Promise.all(Array.from({ length: 8 }, () => release(['one', 'two'])));
      expect(both.filter(({ done }) => done)).to.have.length(1);
      expect(both.find(({ done }) => !done)).to.deep.equal({ done: false, part: 'releases' });
      await issue('three');
      for (const ids of [['one', 'three'], ['none']]) expect(await release(ids)).to.deep.equal({ done: false, part: 'releases' });
      expect(await store.maintenance.batchesOf(about())).to.deep.equal(['three']);
      const never = { id: session.id, running: ['failed'] } as const;
      expect(await release(['three'], { session: never })).to.deep.equal({ done: false, part: 'session' });
      expect(await store.maintenance.batchesOf(about())).to.deep.equal(['three']);
      const other = await addTenant(store);
      expect((await release(['three'], {}, other)).done).to.equal(false);
      expect((await release(['three'])).done).to.equal(true);
    });

    it('are released with an audit entry, which counts only the released ones', async () => {
      await issue('one');
      const change = { action: 'revoked', kind: 'session', target: session.id, changes: [] } as const;
      const audit = { by: SYSTEM, change } as const;
      const both = await Promise.all(Array.from({ length: 8 }, () => release(['one'], { audit })));
      expect(both.filter(({ done }) => done)).to.have.length(1);
      const told = await store.forTenant(tenantId, (transaction) => transaction.audit.list({ limit: 100 }));
      expect(told.filter(({ target }) => target === session.id)).to.have.length(1);
    });

    it('stay scheduled when their revocation was requested again during the revocation', async () => {
      await issue('one');
      await order();
      const [first] = await ordered();
      await issue('two');
      await order();
      await fulfil(first);
      expect(await ordered(), 'it is about what came meanwhile').to.have.length(1);
      await fulfil();
      expect(await ordered()).to.deep.equal([]);
    });

    const identify = (id: string, authorized: { grantId?: string; authorizedAt?: Date }, of = 'card') => {
      const issued = aBatch(session, { id, credentialConfigurationId: of });
      const identifies = { fingerprint, batch: issued, endsAt: null, authorizedAt: NOW, ...authorized };
      return store.commit(tenantId, { issued, identifies }, NOW);
    };
    const redeemed = async (at: Date, credentialConfigurationIds: readonly string[] = ['card']) => {
      const grant = aGrant(session, { credentialConfigurationIds });
      const change = { id: grant.id, act: 'redeem', redemption: REDEMPTION } as const;
      await store.commit(tenantId, { opens: { grant } }, at);
      expect((await store.commit(tenantId, { grant: change }, at)).done).to.equal(true);
      return grant.id;
    };
    const revokedAt = async (grantId: string) => (await store.read(tenantId).grant(grantId))?.grant?.revokedAt ?? null;
    const REFUSED = { done: false, part: 'identifies' } as const;

    it('are not recorded for a wallet that was authorized before a revocation, but for a later one', async () => {
      // The processes whose clocks are ahead and behind recorded these grants before and after the revocation.
      const before = await redeemed(seconds(40));
      const { maintenance } = store;
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(10));
      // An older note does not replace a newer one.
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(5));
      const after = await redeemed(seconds(-20));
      expect(await identify('one', { grantId: before, authorizedAt: seconds(20) })).to.deep.equal(REFUSED);
      expect(await identify('two', { authorizedAt: seconds(10) })).to.deep.equal(REFUSED);
      expect(await identify('three', { grantId: 'gone', authorizedAt: seconds(10) })).to.deep.equal(REFUSED);
      expect((await store.read(tenantId).issued(session.id))?.batches).to.deep.equal([]);
      expect(await identify('four', { grantId: after, authorizedAt: seconds(1) })).to.deep.equal({ done: true });
      expect(await identify('five', { authorizedAt: seconds(11) })).to.deep.equal({ done: true });
      expect((await maintenance.batchesOf(about())).toSorted()).to.deep.equal(['five', 'four']);
      // The note is of this tenant and of this person.
      expect((await issue('six', {}, randomUUID())).done).to.equal(true);
    });

    it('are not recorded after a revocation of their configuration alone', async () => {
      await store.maintenance.noteRevoked(tenantId, [fingerprint], ['other', 'card'], seconds(10));
      for (const each of ['other', 'card']) expect(await identify(each, {}, each)).to.deep.equal(REFUSED);
      expect(await identify('third', {}, 'third')).to.deep.equal({ done: true });
    });

    it('record the grant, which is revoked when all of its configurations are revoked', async () => {
      const { maintenance } = store;
      const one = await redeemed(NOW);
      const two = await redeemed(NOW, ['card', 'other']);
      const another = await redeemed(NOW);
      for (const [id, grantId] of Object.entries({ one, two })) await identify(id, { grantId });
      const all = async () => {
        const times = await Promise.all([one, two, another].map(revokedAt));
        return times.map((time) => time !== null);
      };
      await maintenance.noteRevoked(tenantId, [fingerprint], ['card'], seconds(10));
      await maintenance.revokeGrants(tenantId, ['nobody'], seconds(10));
      await maintenance.revokeGrants(await addTenant(store), [fingerprint], seconds(10));
      expect(await all()).to.deep.equal([false, false, false]);
      await maintenance.revokeGrants(tenantId, [fingerprint], seconds(10));
      expect(await all()).to.deep.equal([true, false, false]);
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(20));
      await maintenance.revokeGrants(tenantId, [fingerprint], seconds(20));
      expect(await all()).to.deep.equal([true, true, false]);
      const later = await redeemed(NOW);
      expect((await identify('later', { grantId: later })).done).to.equal(true);
      await maintenance.revokeGrants(tenantId, [fingerprint], seconds(20));
      expect(await revokedAt(later)).to.equal(null);
      expect(await revokedAt(one), 'the first revocation counts').to.deep.equal(seconds(10));
    });

    it('revoke a grant that issued none of them, unless it covers more than was revoked', async () => {
      const { maintenance } = store;
      const [one, two] = [await redeemed(NOW), await redeemed(NOW, ['card', 'other'])];
      const revoke = (grantId: string) => maintenance.revokeGrant(tenantId, fingerprint, grantId, seconds(20));
      expect(await revoke(one)).to.equal(false);
      await maintenance.noteRevoked(tenantId, [fingerprint], ['card'], seconds(10));
      expect([await revoke(one), await revoke(two), await revoke('none')]).to.deep.equal([true, false, false]);
      expect(await revoke(one), 'it stays so').to.equal(true);
    });

    it('of a deferred transaction keep the time of the authorization of their wallet', async () => {
      const grantId = await redeemed(seconds(-30));
      const statuses = [{ uri: 'https://provider.example/1', anchor: 'anchor', idx: 3, keptUntil: 1_900_000_000 }];
      for (const [of, authorizedAt] of [
        [{ grantId: null, authorizedAt: seconds(-90) }, seconds(-90)],
        [{ grantId, authorizedAt: NOW }, seconds(-30)],
        [{ grantId: null, authorizedAt: null }, null],
      ] as const) {
        for (const isHeld of [false, true]) {
          const transaction = aDeferred(session, of);
          const holds = { transactionId: transaction.id, statuses };
          await store.commit(tenantId, { opens: { deferred: transaction }, ...(isHeld && { holds }) }, NOW);
          const stored = await store.read(tenantId).deferred(transaction.id);
          expect(stored?.authorizedAt).to.deep.equal(authorizedAt);
          expect(stored?.walletStatuses).to.deep.equal(isHeld ? statuses : null);
        }
      }
    });

    it('are not recorded for a grant that was recorded before the revocation and redeemed after it', async () => {
      const grants = [aGrant(session), aGrant(session)] as const;
      const [before, after] = grants;
      await store.commit(tenantId, { opens: { grant: before } }, seconds(30));
      await store.maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(10));
      await store.commit(tenantId, { opens: { grant: after } }, NOW);
      for (const { id } of grants) {
        const redemption = { id, act: 'redeem', redemption: REDEMPTION } as const;
        expect((await store.commit(tenantId, { grant: redemption }, seconds(40))).done).to.equal(true);
      }
      expect(await identify('one', { grantId: before.id, authorizedAt: seconds(50) })).to.deep.equal(REFUSED);
      expect(await identify('two', { grantId: after.id, authorizedAt: NOW })).to.deep.equal({ done: true });
    });

    it('keep the order of revocations when all records of the tenant are old', async () => {
      const { maintenance } = store;
      for (const _ of [1, 2]) await maintenance.noteRevoked(tenantId, [fingerprint, randomUUID()], undefined, NOW);
      const grantId = await redeemed(NOW);
      const yearsLater = seconds(2 * 366 * 86_400);
      await maintenance.noteRevoked(tenantId, [randomUUID()], undefined, yearsLater);
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, yearsLater);
      expect(await identify('one', { grantId, authorizedAt: yearsLater })).to.deep.equal(REFUSED);
    });

    it('keep a grant that also serves another subject, until that subject is revoked, too', async () => {
      const { maintenance } = store;
      const [shared, own] = [await redeemed(NOW), await redeemed(NOW)];
      const another = randomUUID();
      await identify('one', { grantId: shared });
      const issued = aBatch(session, { id: 'two' });
      const identifies = { fingerprint: another, batch: issued, endsAt: null, authorizedAt: NOW };
      await store.commit(tenantId, { issued, identifies: { ...identifies, grantId: shared } }, NOW);
      await identify('three', { grantId: own });
      const serves = () => maintenance.servesOthers(about());
      expect(await serves()).to.equal(true);
      await maintenance.noteRevoked(tenantId, [fingerprint], undefined, NOW);
      await maintenance.revokeGrants(tenantId, [fingerprint], NOW);
      expect(await maintenance.revokeGrant(tenantId, fingerprint, shared, NOW)).to.equal(false);
      expect([await revokedAt(shared), await revokedAt(own)]).to.deep.equal([null, NOW]);
      expect(await serves()).to.equal(true);
      await maintenance.noteRevoked(tenantId, [another], undefined, NOW);
      expect(await serves()).to.equal(false);
      await maintenance.revokeGrants(tenantId, [another], seconds(1));
      expect(await revokedAt(shared)).to.deep.equal(seconds(1));
    });

    it('are found by a simultaneous revocation, or not recorded', async () => {
      const { maintenance } = store;
      const issuances = Array.from({ length: 24 }, (_, index) => identify(`batch-${index}`, {}));
      const revocation = (async () => {
        await maintenance.noteRevoked(tenantId, [fingerprint], undefined, seconds(1));
        await order();
        return maintenance.batchesOf(about());
      })();
      const results = await Promise.all(issuances);
      const recorded = results.flatMap(({ done }, index) => (done ? [`batch-${index}`] : []));
      expect((await revocation).toSorted()).to.deep.equal(recorded.toSorted());
    });

    it('are removed after their expiry', async () => {
      await issue('short', { endsAt: seconds(5) });
      await issue('long', { endsAt: seconds(FOREVER) });
      await issue('endless');
      for (let gone = 500; gone >= 500; ) gone = await store.maintenance.forgetExpired(seconds(5), 500);
      expect((await store.maintenance.batchesOf(about())).toSorted()).to.deep.equal(['endless', 'long']);
    });
  });
}
