import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { FollowerCursor } from '../../../application/ports/followed-wallets.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { Change } from '../../../domain/changes/change.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { FollowingBatch } from '../../../domain/status-lists/wallet-status.ts';
import { aBatch, aDeferred, addTenant, NOW, openOffer, seconds } from './builders.ts';
import { issuanceDeferral, stepsOf } from './steps.ts';

const URI = 'https://provider.example/status/1';
const FOREVER = 100_000;

export function describeFollowedWallets(open: () => Store): void {
  describe('credentials with a followed wallet status', () => {
    let store: Store;
    let tenantId: TenantId;
    let session: Session;
    let listId: string;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      ({ session } = await openOffer(store, tenantId));
      listId = randomUUID();
    });
    const followingBatch = (batchId: string, indices: number[], changes: Partial<FollowingBatch> = {}) => ({
      ...{ batchId, sessionId: session.id, endsAt: seconds(FOREVER) },
      statuses: indices.map((idx) => ({ uri: URI, anchor: 'anchor', idx, listId })),
      ...changes,
    });
    const commit = (change: Change) => store.commit(tenantId, change, NOW);
    const issue = async (id: string, indices: number[], changes: Partial<FollowingBatch> = {}) => {
      const batch = aBatch(session, { id });
      return commit({ issued: batch, follows: followingBatch(id, indices, changes) });
    };
    const list = () => ({ tenantId, id: listId });
    const findDueList = async (now = NOW) => (await store.maintenance.dueFollowedLists(now, 1_000)).find(({ id }) => id === listId);
    const followers = async (indices: number[], limit = 10) =>
      (await store.maintenance.followers(list(), indices, limit)).map(({ batchId }) => batchId).sort();

    it('are found by the status entry of their wallet, and by no other', async () => {
      expect((await issue('one', [3, 9])).done).to.equal(true);
      await issue('two', [9]);
      await issue('three', [100_000_000]);
      expect(await followers([9])).to.deep.equal(['one', 'two']);
      expect(await followers([3])).to.deep.equal(['one']);
      expect(await followers([4, 5])).to.deep.equal([]);
      expect(await followers([3, 9, 100_000_000], 2)).to.have.length(2);
      const [{ batch, idx, sessionId } = {}] = await store.maintenance.followers(list(), [3], 10);
      expect(batch).to.deep.equal(aBatch(session, { id: 'one' }));
      expect([idx, sessionId]).to.deep.equal([3, session.id]);
      const listOfOtherTenant = { tenantId: await addTenant(store), id: listId };
      expect(await store.maintenance.followers(listOfOtherTenant, [3, 9], 10)).to.deep.equal([]);
    });

    it('make the wallet status list due, once for all credentials', async () => {
      await issue('one', [3]);
      await issue('two', [4]);
      expect(await findDueList()).to.deep.equal({
        ...{ tenantId, id: listId, uri: URI, anchor: 'anchor' },
        ...{ checkedAt: null, failure: null },
      });
      await store.maintenance.noteFollowedList(list(), NOW, seconds(60));
      expect(await findDueList(seconds(59))).to.equal(undefined);
      await issue('three', [5]);
      expect(await findDueList(seconds(59)), 'another credential does not make the list due').to.equal(undefined);
      expect((await findDueList(seconds(60)))?.checkedAt).to.deep.equal(NOW);
    });

    it('record since when the list cannot be fetched, until a fetch succeeds', async () => {
      await issue('one', [3]);
      const { maintenance } = store;
      const before = await maintenance.failingLists(seconds(5));
      await maintenance.noteFollowedList(list(), seconds(1), seconds(1), 'status_unavailable: timeout');
      await maintenance.noteFollowedList(list(), seconds(2), seconds(2), 'status_invalid: signer');
      const failure = { since: seconds(1), count: 2, reason: 'status_invalid: signer' };
      expect((await findDueList(seconds(2)))?.failure).to.deep.equal(failure);
      expect((await maintenance.followedLists(tenantId, 10)).map((list) => list.failure)).to.deep.equal([failure]);
      expect(await maintenance.failingLists(seconds(5))).to.equal(before + 1);
      expect(await maintenance.failingLists(seconds(0))).to.equal(before);
      await maintenance.noteFollowedList(list(), seconds(3), seconds(3));
      expect((await findDueList(seconds(3)))?.failure).to.equal(null);
      expect(await maintenance.failingLists(seconds(5))).to.equal(before);
    });

    it('are recorded with their issuance, or not at all', async () => {
      const follows = followingBatch('gone', [3]);
      const change = { issued: aBatch(session, { id: 'gone' }), follows, unrevoked: 'grant' };
      const failedCondition = { id: session.id, running: ['failed'], issuedBelow: 1 } as const;
      expect((await commit({ ...change, session: failedCondition })).done).to.equal(false);
      expect([await followers([3]), await findDueList()]).to.deep.equal([[], undefined]);
    });

    it('do not reveal the owner of the list to the database', async () => {
      await issue('one', [3]);
      const [row] = await store.maintenance.dueFollowedLists(NOW, 1_000);
      expect(row?.uri).to.equal(URI);
      expect(listId).to.not.include('provider');
    });

    it('are revoked, unfollow the wallet and wait for the notification of their backend', async () => {
      await issue('one', [3]);
      await issue('two', [3]);
      const entries = await store.maintenance.followers(list(), [3], 10);
      await store.maintenance.revokeFollowers(list(), entries, seconds(7));
      // As a process would repeat it that stopped before it released the followers
      await store.maintenance.revokeFollowers(list(), entries, seconds(8));
      expect(await followers([3])).to.deep.equal([]);
      const waiting = async () => (await store.maintenance.walletRevokedBatches(1_000)).filter((batch) => batch.tenantId === tenantId);
      expect((await waiting()).map(({ batchId }) => batchId).sort()).to.deep.equal(['one', 'two']);
      const [first] = await waiting();
      expect(first).to.deep.include({
        ...{ tenantId, sessionId: session.id, fellAt: seconds(7) },
        credentialConfigurationId: aBatch(session).credentialConfigurationId,
      });
      await store.maintenance.forgetWalletRevoked({ tenantId, batchId: 'one' });
      expect((await waiting()).map(({ batchId }) => batchId)).to.deep.equal(['two']);
      await store.maintenance.forgetWalletRevoked({ tenantId, batchId: 'two' });
    });

    it('are revoked once when several processes visit them simultaneously, in any order', async () => {
      for (let count = 0; count < 300; count++) await commit({ follows: followingBatch(`b${count}`, [count % 7], { endsAt: null }) });
      const entries = await store.maintenance.followers(list(), [0, 1, 2, 3, 4, 5, 6], 1_000);
      expect(entries).to.have.length(300);
      const batches = entries.map((follower) => ({ ...follower, batch: aBatch(session, { id: follower.batchId }) }));
      const orders = [batches, [...batches].reverse(), batches.slice(100), batches.slice(0, 200).reverse()];
      await Promise.all(orders.map((order) => store.maintenance.revokeFollowers(list(), order, NOW)));
      expect(await followers([0, 1, 2, 3, 4, 5, 6], 1_000)).to.deep.equal([]);
      const waiting = (await store.maintenance.walletRevokedBatches(1_000)).filter((batch) => batch.tenantId === tenantId);
      expect(waiting).to.have.length(300);
      await Promise.all(waiting.map((batch) => store.maintenance.forgetWalletRevoked(batch)));
    });

    it('are unfollowed after their expiry, a few at a time', async () => {
      for (const [id, endSession] of [
        ['a', 10],
        ['b', 20],
        ['c', 30],
      ] as const) {
        await issue(id, [1, 2], { endsAt: seconds(endSession) });
      }
      await issue('endless', [1], { endsAt: null });
      const readFollowers = async (now: Date) => {
        let cursor: FollowerCursor | undefined;
        do {
          ({ nextCursor: cursor } = await store.maintenance.forgetEndedFollowers(now, 3, cursor));
        } while (cursor !== undefined);
      };
      await readFollowers(seconds(9));
      expect(await followers([1, 2], 100)).to.have.length(7);
      await readFollowers(seconds(20));
      expect(await followers([1, 2], 100)).to.deep.equal(['c', 'c', 'endless']);
      await readFollowers(seconds(30));
      expect(await followers([1, 2], 100)).to.deep.equal(['endless']);
    });

    it('leave a list that is removed a day after the last credential, unless another credential follows it', async () => {
      await issue('one', [3], { endsAt: seconds(1) });
      const forgetIdleLists = (now: Date) => store.maintenance.forgetIdleLists(now, 1_000);
      const lists = async () => (await store.maintenance.followedLists(tenantId, 10)).length;
      await forgetIdleLists(seconds(0));
      const followers = await store.maintenance.followers(list(), [3], 10);
      await store.maintenance.revokeFollowers(list(), followers, NOW);
      await forgetIdleLists(seconds(10));
      await forgetIdleLists(seconds(10 + 86_399));
      expect(await lists()).to.equal(1);
      await issue('two', [4]);
      await forgetIdleLists(seconds(10 + 86_401));
      expect(await lists(), 'the list is followed again').to.equal(1);
      await store.maintenance.revokeFollowers(list(), await store.maintenance.followers(list(), [4], 10), NOW);
      await forgetIdleLists(seconds(200_000));
      await forgetIdleLists(seconds(200_000 + 86_400));
      expect(await lists()).to.equal(0);
    });

    it('of a deferred transaction are sealed until the credential is created', async () => {
      const steps = stepsOf(store, tenantId);
      const transaction = aDeferred(session);
      await steps.commit(issuanceDeferral(transaction, 1));
      const statuses = [{ uri: URI, anchor: 'anchor', idx: 3, keptUntil: 1_900_000_000 }];
      await commit({ holds: { transactionId: transaction.id, statuses } });
      expect((await steps.deferred(transaction.id))?.walletStatuses).to.deep.equal(statuses);
      await commit({ holds: { transactionId: transaction.id, statuses: [] }, follows: followingBatch('late', [3]) });
      expect((await steps.deferred(transaction.id))?.walletStatuses).to.equal(null);
      expect(await followers([3])).to.deep.equal(['late']);
    });
  });
}
