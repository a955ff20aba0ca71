import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { addList, addTenant, aList, failureOf, NOW, seconds } from './builders.ts';
import { stepsOf } from './steps.ts';

export function describeStatusLists(open: () => Store): void {
  describe('status lists', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });
    const sorted = async (listId: string, after: number) =>
      (await stepsOf(store, tenantId).statusEntries(listId, after)).sort((a, b) => a.index - b.index);

    it('are returned as they were added', async () => {
      const list = await addList(store, tenantId, {
        credentialConfigurationId: 'diploma',
        keyChainId: 'chain',
        immediateUpdate: true,
        enableAggregation: false,
      });
      expect(await stepsOf(store, tenantId).statusList(list.id)).to.deep.equal(list);
      await store.forTenant(tenantId, async ({ statusLists }) => {
        expect(await statusLists.get(list.id)).to.deep.equal(list);
        expect(await statusLists.list()).to.deep.equal([list]);
      });
      expect(await stepsOf(store, tenantId).statusList('none')).to.equal(undefined);
      const missing = store.forTenant(tenantId, ({ statusLists }) => statusLists.get('none'));
      expect(await failureOf(missing)).to.equal('not_found');
    });

    it('are listed by age, and cause a conflict for an existing id', async () => {
      await addList(store, tenantId, { id: 'b', createdAt: seconds(1) });
      await addList(store, tenantId, { id: 'c' });
      await addList(store, tenantId, { id: 'a', createdAt: seconds(1) });
      const lists = await store.forTenant(tenantId, ({ statusLists }) => statusLists.list());
      expect(lists.map(({ id }) => id)).to.deep.equal(['c', 'a', 'b']);
      const secondAdd = store.forTenant(tenantId, ({ statusLists }) => statusLists.add(aList({ id: 'a' })), { by: 'system' });
      expect(await failureOf(secondAdd)).to.equal('conflict');
    });

    it('allocate ranges one after the other and never beyond their capacity', async () => {
      const list = await addList(store, tenantId, { capacity: 10 });
      const steps = stepsOf(store, tenantId);
      expect(await steps.allocateStatusRun(list, 4)).to.equal(0);
      expect(await steps.allocateStatusRun(list, 5)).to.equal(4);
      expect(await steps.allocateStatusRun(list, 2)).to.equal(undefined);
      expect(await steps.allocateStatusRun(list, 1)).to.equal(9);
      expect(await steps.allocateStatusRun(list, 1)).to.equal(undefined);
      expect((await steps.statusList(list.id))?.usedEntries).to.equal(10);
      expect(await steps.allocateStatusRun({ ...list, id: 'none' }, 1)).to.equal(undefined);
    });

    it('allocate no entry that is recorded as used, independent of their counter', async () => {
      const list = await addList(store, tenantId, { capacity: 10 });
      const steps = stepsOf(store, tenantId);
      expect(await steps.allocateStatusRun(list, 2, 5)).to.equal(5);
      expect((await steps.statusList(list.id))?.usedEntries).to.equal(7);
      expect(await steps.allocateStatusRun(list, 2, 3)).to.equal(7);
      expect(await steps.allocateStatusRun(list, 2, 9)).to.equal(undefined);
      expect((await steps.statusList(list.id))?.usedEntries).to.equal(9);
    });

    it('change their signer, with a new version each time', async () => {
      const list = await addList(store, tenantId);
      const binding = { credentialConfigurationId: 'diploma', keyChainId: 'chain' };
      const rebind = (id: string, unused = false) =>
        store.forTenant(tenantId, ({ statusLists }) => statusLists.rebind(id, binding, { unused }), { by: 'system' });
      expect(await rebind(list.id)).to.deep.equal({ ...list, ...binding, version: 2 });
      expect(await stepsOf(store, tenantId).statusListVersions([list.id])).to.deep.equal([
        { id: list.id, version: 2, term: 0, keyChainId: 'chain' },
      ]);
      expect(await failureOf(rebind('none'))).to.equal('not_found');
      const otherTenant = await addTenant(store);
      const foreignRebind = store.forTenant(otherTenant, ({ statusLists }) => statusLists.rebind(list.id, binding, { unused: false }), {
        by: 'system',
      });
      expect(await failureOf(foreignRebind)).to.equal('not_found');
    });

    it('return the requested entries that ever had another status', async () => {
      const list = await addList(store, tenantId);
      const otherTenant = await addTenant(store);
      const statuses = [3, 5, 7].map((index) => ({ listId: list.id, index, status: 1 }));
      await store.commit(tenantId, { statuses }, NOW);
      const readStatuses = async (id: TenantId, indices: readonly number[]) =>
        (await stepsOf(store, id).statusEntriesAt(list.id, indices)).sort((one, two) => one.index - two.index);
      expect(await readStatuses(tenantId, [2, 3, 7])).to.deep.equal([
        { index: 3, status: 1 },
        { index: 7, status: 1 },
      ]);
      expect(await readStatuses(tenantId, [])).to.deep.equal([]);
      expect(await readStatuses(otherTenant, [3, 7])).to.deep.equal([]);
    });

    it('do not change their signer as unused once an entry was allocated', async () => {
      const binding = { credentialConfigurationId: null, keyChainId: 'chain' };
      const rebind = (id: string) =>
        store.forTenant(tenantId, ({ statusLists }) => statusLists.rebind(id, binding, { unused: true }), { by: 'system' });
      const list = await addList(store, tenantId);
      expect((await rebind(list.id))?.keyChainId).to.equal('chain');
      await stepsOf(store, tenantId).allocateStatusRun({ ...list, ...binding }, 1);
      const used = await stepsOf(store, tenantId).statusList(list.id);
      expect(await rebind(list.id)).to.equal(undefined);
      expect(await stepsOf(store, tenantId).statusList(list.id)).to.deep.equal(used);
    });

    it('allocate no entry for an outdated signer', async () => {
      const olderList = await addList(store, tenantId);
      const binding = { credentialConfigurationId: null, keyChainId: 'chain' };
      const newerList = await store.forTenant(tenantId, ({ statusLists }) => statusLists.rebind(olderList.id, binding, { unused: true }), {
        by: 'system',
      });
      const steps = stepsOf(store, tenantId);
      expect(await steps.allocateStatusRun(olderList, 1)).to.equal(undefined);
      expect(await steps.allocateStatusRun({ ...olderList, keyChainId: 'other' }, 1)).to.equal(undefined);
      expect(await steps.allocateStatusRun(newerList ?? olderList, 1)).to.equal(0);
    });

    it('are removed only while they are unused', async () => {
      const [unusedList, usedList] = [await addList(store, tenantId), await addList(store, tenantId)];
      const steps = stepsOf(store, tenantId);
      await steps.allocateStatusRun(usedList, 1);
      const remove = (id: string, by = tenantId) =>
        store.forTenant(by, ({ statusLists }) => statusLists.removeUnused(id), { by: 'system' });
      expect(await remove(usedList.id)).to.equal(false);
      expect(await remove(unusedList.id, await addTenant(store))).to.equal(false);
      expect(await steps.statusList(unusedList.id)).to.not.equal(undefined);
      expect(await remove(unusedList.id)).to.equal(true);
      expect(await remove(unusedList.id)).to.equal(false);
      expect(await steps.statusList(unusedList.id)).to.equal(undefined);
      expect(await steps.allocateStatusRun(unusedList, 1)).to.equal(undefined);
      expect((await steps.statusList(usedList.id))?.usedEntries).to.equal(1);
    });

    it('are either removed or used, depending on the first transaction', async () => {
      for (let round = 0; round < 6; round++) {
        const list = await addList(store, tenantId);
        const { id } = list;
        const steps = stepsOf(store, tenantId);
        const allocated: number[] = [];
        let removed = 0;
        const allocate = async () => {
          const first = await steps.allocateStatusRun(list, 1);
          if (first !== undefined) allocated.push(first);
        };
        const remove = async () => {
          const removal = store.forTenant(tenantId, ({ statusLists }) => statusLists.removeUnused(id), { by: 'system' });
          if (await removal) removed++;
        };
        const order = round % 2 === 0 ? [allocate, remove] : [remove, allocate];
        await Promise.all(Array.from({ length: 40 }, (_, i) => order[i % 2]?.()));
        expect(removed).to.equal(allocated.length === 0 ? 1 : 0);
        expect(new Set(allocated).size).to.equal(allocated.length);
        const remainingList = await steps.statusList(id);
        expect(remainingList?.usedEntries).to.equal(allocated.length === 0 ? undefined : 20);
      }
    });

    it('increment their version once per change and return later changes', async () => {
      const one = await addList(store, tenantId);
      const two = await addList(store, tenantId, { version: 5 });
      const steps = stepsOf(store, tenantId);
      await steps.commit({
        statuses: [
          { listId: one.id, index: 3, status: 2 },
          { listId: one.id, index: 7, status: 2 },
          { listId: two.id, index: 3, status: 1 },
        ],
      });
      await steps.commit({ statuses: [{ listId: one.id, index: 3, status: 0 }] });
      const versions = await steps.statusListVersions([one.id, two.id, 'none']);
      expect(versions).to.have.deep.members([
        { id: one.id, version: 3, term: 0, keyChainId: null },
        { id: two.id, version: 6, term: 0, keyChainId: null },
      ]);
      expect(await sorted(one.id, 0)).to.deep.equal([
        { index: 3, status: 0 },
        { index: 7, status: 2 },
      ]);
      expect(await sorted(one.id, 2)).to.deep.equal([{ index: 3, status: 0 }]);
      expect(await sorted(one.id, 3)).to.deep.equal([]);
      expect(await sorted(two.id, 5)).to.deep.equal([{ index: 3, status: 1 }]);
    });

    it('apply the last of several changes of one entry, and reject changes of an unknown list', async () => {
      const { id } = await addList(store, tenantId);
      const steps = stepsOf(store, tenantId);
      await steps.commit({
        statuses: [
          { listId: id, index: 1, status: 0 },
          { listId: 'none', index: 1, status: 1 },
          { listId: id, index: 1, status: 2 },
        ],
      });
      await steps.commit({ statuses: [] });
      expect(await sorted(id, 0)).to.deep.equal([{ index: 1, status: 2 }]);
      expect(await sorted('none', 0)).to.deep.equal([]);
      expect(await steps.statusListVersions([id])).to.deep.equal([{ id, version: 2, term: 0, keyChainId: null }]);
    });

    it('keep the newest token', async () => {
      const { id } = await addList(store, tenantId, { version: 3 });
      const steps = stepsOf(store, tenantId);
      const token = async () => (await steps.statusList(id))?.token;
      const save = (jwt: string, version: number, signedAt: number, term = 0) =>
        steps.saveStatusToken(id, jwt, { version, term }, seconds(signedAt), seconds(signedAt + 60));
      await save('first', 2, 10);
      expect(await token()).to.deep.equal({ jwt: 'first', version: 2, issuedAt: seconds(10), expiresAt: seconds(70) });
      await save('older version', 1, 20);
      await save('older', 2, 9);
      await save('as old', 2, 10);
      expect((await token())?.jwt).to.equal('first');
      await save('younger', 2, 11);
      expect((await token())?.jwt).to.equal('younger');
      await save('newer version', 3, 5);
      expect((await token())?.jwt).to.equal('newer version');
      await save('a version that the database does not have', 4, 20);
      await save('another term of the database', 3, 30, 7);
      expect((await token())?.jwt).to.equal('newer version');
    });

    it('keep the expiry of a token that is not stored itself', async () => {
      const { id } = await addList(store, tenantId, { version: 2 });
      const steps = stepsOf(store, tenantId);
      const readBoth = async () => {
        const { token, tokenExpiresAt } = (await steps.statusList(id)) ?? {};
        const list = await store.forTenant(tenantId, ({ statusLists }) => statusLists.get(id));
        expect(list).to.deep.include({ token, tokenExpiresAt });
        return { token, tokenExpiresAt };
      };
      expect(await readBoth()).to.deep.equal({ token: null, tokenExpiresAt: null });
      await steps.saveStatusToken(id, null, { version: 2, term: 0 }, seconds(10), seconds(70));
      expect(await readBoth()).to.deep.equal({ token: null, tokenExpiresAt: seconds(70) });
      await steps.saveStatusToken(id, null, { version: 1, term: 0 }, seconds(20), seconds(80));
      expect(await readBoth()).to.deep.equal({ token: null, tokenExpiresAt: seconds(70) });
    });

    it('of external issuers replace an older release, and no newer one', async () => {
      const steps = stepsOf(store, tenantId);
      const recordVersion = (sequenceNumber: number, contentHash: string, id = 'list') =>
        steps.recordListVersion(id, { sequenceNumber, contentHash }, NOW);
      expect(await recordVersion(2, 'b')).to.deep.equal({ sequenceNumber: 2, contentHash: 'b' });
      expect(await recordVersion(2, 'b')).to.deep.equal({ sequenceNumber: 2, contentHash: 'b' });
      expect(await recordVersion(2, 'c')).to.deep.equal({ sequenceNumber: 2, contentHash: 'b' });
      expect(await recordVersion(1, 'a')).to.deep.equal({ sequenceNumber: 2, contentHash: 'b' });
      expect(await recordVersion(1, 'a', 'another')).to.deep.equal({ sequenceNumber: 1, contentHash: 'a' });
      expect(await recordVersion(3_000_000_000, 'c')).to.deep.equal({ sequenceNumber: 3_000_000_000, contentHash: 'c' });
      const stepsOfOtherTenant = stepsOf(store, await addTenant(store));
      expect(await stepsOfOtherTenant.recordListVersion('list', { sequenceNumber: 1, contentHash: 'a' }, NOW)).to.deep.equal({
        sequenceNumber: 1,
        contentHash: 'a',
      });
    });

    it('of external issuers are removed with their tenant', async () => {
      const release = { sequenceNumber: 2, contentHash: 'b' };
      const otherTenant = await addTenant(store);
      for (const tenant of [tenantId, otherTenant]) await stepsOf(store, tenant).recordListVersion('list', release, NOW);
      await store.forTenant(tenantId, ({ seenReleases }) => seenReleases.removeAll(), { by: 'system' });
      const olderVersion = { sequenceNumber: 1, contentHash: 'a' };
      expect(await stepsOf(store, tenantId).recordListVersion('list', olderVersion, NOW)).to.deep.equal(olderVersion);
      expect(await stepsOf(store, otherTenant).recordListVersion('list', olderVersion, NOW)).to.deep.equal(release);
    });

    it('of external issuers keep the newest of many parallel releases', async () => {
      const steps = stepsOf(store, tenantId);
      const numbers = Array.from({ length: 40 }, (_, index) => ((index * 7) % 40) + 1);
      await Promise.all(
        numbers.map((sequenceNumber) => steps.recordListVersion('list', { sequenceNumber, contentHash: `h${sequenceNumber}` }, NOW)),
      );
      const newestVersion = await steps.recordListVersion('list', { sequenceNumber: 1, contentHash: 'x' }, NOW);
      expect(newestVersion).to.deep.equal({ sequenceNumber: 40, contentHash: 'h40' });
    });
  });
}
