import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { TrustListRepository } from '../../../application/ports/repositories.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { type ListVersion, MAX_VERSIONS, type PublishedList } from '../../../domain/trust-lists/published-list.ts';
import type { ListProblem, ValidCopy } from '../../../domain/trust-lists/stored-list.ts';
import { addTenant, failureOf, NOW, seconds } from './builders.ts';
import { stepsOf } from './steps.ts';

const aTrustList = (changes: Partial<PublishedList> = {}): PublishedList => ({
  id: 'list',
  description: 'Issuers',
  keyChainId: 'trust-list',
  entities: [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme' } }],
  data: { LoTE: { ListAndSchemeInformation: { SchemeTerritory: 'EU' } } },
  signedBy: 'trust-list',
  sequenceNumber: 1,
  jwt: 'one.two.three',
  nextUpdate: seconds(1000),
  createdAt: NOW,
  updatedAt: NOW,
  ...changes,
});
const versionOf = (list: PublishedList): ListVersion => ({ id: randomUUID(), list });
const next = (list: PublishedList, changes: Partial<PublishedList> = {}): PublishedList => ({
  ...list,
  sequenceNumber: list.sequenceNumber + 1,
  updatedAt: seconds(list.sequenceNumber),
  ...changes,
});

export function describeTrustLists(open: () => Store): void {
  describe('published trust lists', () => {
    let store: Store;
    let tenantId: TenantId;
    let otherTenant: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      otherTenant = await addTenant(store);
    });
    const withLists = <T>(work: (lists: TrustListRepository) => Promise<T>, tenant = tenantId) =>
      store.forTenant(tenant, ({ trustLists }) => work(trustLists), { by: 'system', exclusive: true });
    const add = (list: PublishedList, tenant = tenantId) => withLists((lists) => lists.add(list), tenant);

    it('are returned as they were written, in the order of their ids', async () => {
      const [fullList, emptyList] = [aTrustList({ id: 'b' }), aTrustList({ id: 'C', entities: [] })];
      await add(fullList);
      await add(emptyList);
      await withLists(async (lists) => {
        expect(await lists.get('b')).to.deep.equal(fullList);
        expect(await lists.list()).to.deep.equal([emptyList, fullList]);
        expect(await lists.find('none')).to.equal(undefined);
      });
      expect(await failureOf(withLists((lists) => lists.get('none')))).to.equal('not_found');
      expect(await failureOf(add(aTrustList({ id: 'b', jwt: 'x' })))).to.equal('conflict');
      expect(await withLists((lists) => lists.get('b'))).to.deep.equal(fullList);
    });

    it('are published with their expiry', async () => {
      await add(aTrustList());
      const published = { jwt: 'one.two.three', nextUpdate: seconds(1000) };
      expect(await stepsOf(store, tenantId).trustList('list')).to.deep.equal(published);
      expect(await stepsOf(store, tenantId).trustList('none')).to.equal(undefined);
      expect(await stepsOf(store, otherTenant).trustList('list')).to.equal(undefined);
    });

    it('keep every replaced release, the newest first', async () => {
      const releases = [aTrustList()];
      await add(aTrustList());
      for (const jwt of ['b', 'c']) {
        const previous = releases.at(-1) ?? aTrustList();
        const list = next(previous, { jwt, nextUpdate: seconds(2000) });
        expect(await withLists((lists) => lists.replace(list, versionOf(previous)))).to.equal(true);
        releases.push(list);
      }
      await withLists(async (lists) => {
        expect(await lists.get('list')).to.deep.equal(releases[2]);
        const versions = await lists.versions('list');
        expect(versions.map(({ list }) => list)).to.deep.equal([releases[1], releases[0]]);
        const [newestVersion] = versions;
        expect(await lists.version('list', newestVersion?.id ?? '')).to.deep.equal(newestVersion);
        expect(await lists.versions('none')).to.deep.equal([]);
      });
      expect(await failureOf(withLists((lists) => lists.version('list', 'none')))).to.equal('not_found');
      expect((await stepsOf(store, tenantId).trustList('list'))?.jwt).to.equal('c');
    });

    it('are replaced only with the present version', async () => {
      const first = aTrustList();
      const second = next(first, { jwt: 'b' });
      await add(first);
      expect(await withLists((lists) => lists.replace(second, versionOf(first)))).to.equal(true);
      expect(await withLists((lists) => lists.replace(next(first, { jwt: 'x' }), versionOf(first)))).to.equal(false);
      expect(await withLists((lists) => lists.remove(versionOf(first)))).to.equal(false);
      expect(await withLists((lists) => lists.replace(next(first), versionOf(aTrustList({ id: 'z' }))))).to.equal(false);
      await withLists(async (lists) => {
        expect(await lists.get('list')).to.deep.equal(second);
        expect(await lists.versions('list')).to.have.length(1);
        expect(await lists.versions('z')).to.have.length(0);
      });
    });

    it('are replaced once by many simultaneous callers', async () => {
      const first = aTrustList();
      await add(first);
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, index) => withLists((lists) => lists.replace(next(first, { jwt: `r${index}` }), versionOf(first)))),
      );
      expect(results.filter(Boolean)).to.have.length(1);
      const jwt = `r${results.indexOf(true)}`;
      expect((await stepsOf(store, tenantId).trustList('list'))?.jwt).to.equal(jwt);
      expect(await withLists((lists) => lists.versions('list'))).to.have.length(1);
    });

    it('keep their last sequence number after their removal', async () => {
      const first = aTrustList();
      const second = next(first, { jwt: 'b' });
      expect(await withLists((lists) => lists.lastNumber('list'))).to.equal(0);
      await add(first);
      expect(await withLists((lists) => lists.lastNumber('list'))).to.equal(1);
      await withLists((lists) => lists.replace(second, versionOf(first)));
      expect(await withLists((lists) => lists.remove(versionOf(second)))).to.equal(true);
      await withLists(async (lists) => {
        expect(await lists.find('list')).to.equal(undefined);
        expect(await lists.lastNumber('list')).to.equal(2);
        expect(await lists.versions('list')).to.deep.equal([]);
      });
      expect(await stepsOf(store, tenantId).trustList('list')).to.equal(undefined);
      const third = aTrustList({ sequenceNumber: 3 });
      await add(third);
      expect(await withLists((lists) => lists.lastNumber('list'))).to.equal(3);
      await withLists((lists) => lists.replace(next(third), versionOf(third)));
      const versions = await withLists((lists) => lists.versions('list'));
      expect(versions.map(({ list }) => list)).to.deep.equal([third]);
    });

    it('keep only their last sequence number', async () => {
      const first = aTrustList();
      const previous = versionOf(next(first));
      await add(first);
      await withLists((lists) => lists.replace(previous.list, versionOf(first)));
      await withLists((lists) => lists.remove(previous));
      await add(aTrustList({ sequenceNumber: 3 }));
      expect(await failureOf(withLists((lists) => lists.version('list', previous.id)))).to.equal('not_found');
      await withLists((lists) => lists.remove(versionOf(aTrustList({ sequenceNumber: 3 }))));
      expect(await withLists((lists) => lists.lastNumber('list'))).to.equal(3);
    });

    it('return their former releases page by page', async () => {
      const releases = [aTrustList()];
      await add(aTrustList());
      for (let i = 0; i < 5; i++) {
        const previous = releases.at(-1) ?? aTrustList();
        releases.push(next(previous));
        await withLists((lists) => lists.replace(next(previous), versionOf(previous)));
      }
      const numbers = async (limit: number, cursor?: number, ascending = false) =>
        (await withLists((lists) => lists.versions('list', { limit, after: cursor, ascending }))).map(({ list }) => list.sequenceNumber);
      expect(await numbers(2)).to.deep.equal([5, 4]);
      expect(await numbers(2, 4)).to.deep.equal([3, 2]);
      expect(await numbers(2, 2)).to.deep.equal([1]);
      expect(await numbers(2, 1)).to.deep.equal([]);
      expect(await numbers(2, undefined, true)).to.deep.equal([1, 2]);
      expect(await numbers(2, 2, true)).to.deep.equal([3, 4]);
      expect(await numbers(2, 5, true)).to.deep.equal([]);
    });

    it('remove the oldest releases', async () => {
      let list = aTrustList();
      await add(list);
      await withLists(async (lists) => {
        for (let i = 0; i < MAX_VERSIONS + 3; i++) {
          const previous = list;
          list = next(previous);
          await lists.replace(list, versionOf(previous));
        }
      });
      const versions = await withLists((lists) => lists.versions('list'));
      expect(versions).to.have.length(MAX_VERSIONS);
      expect(versions[0]?.list.sequenceNumber).to.equal(MAX_VERSIONS + 3);
      expect(versions.at(-1)?.list.sequenceNumber).to.equal(4);
    });

    it('of another tenant are not found, and are removed with that tenant', async () => {
      const foreignList = aTrustList({ jwt: 'theirs' });
      await add(aTrustList());
      await add(foreignList, otherTenant);
      await withLists((lists) => lists.replace(next(aTrustList()), versionOf(aTrustList())));
      expect(await withLists((lists) => lists.versions('list'), otherTenant)).to.deep.equal([]);
      expect(await withLists((lists) => lists.get('list'), otherTenant)).to.deep.equal(foreignList);
      await withLists((lists) => lists.remove(versionOf(foreignList)), otherTenant);
      await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
      await addTenant(store, { id: tenantId });
      await withLists(async (lists) => {
        expect(await lists.list()).to.deep.equal([]);
        expect(await lists.lastNumber('list')).to.equal(0);
      });
      expect(await withLists((lists) => lists.lastNumber('list'), otherTenant)).to.equal(1);
    });

    it('increment the revision of their tenant with every write, and change nothing when a write fails', async () => {
      const revision = async () => (await stepsOf(store, tenantId).state())?.revision ?? Number.NaN;
      const before = await revision();
      await add(aTrustList());
      await withLists((lists) => lists.replace(next(aTrustList()), versionOf(aTrustList())));
      await withLists((lists) => lists.remove(versionOf(next(aTrustList()))));
      expect(await revision()).to.equal(before + 3);
      const broken = withLists(async (lists) => {
        await lists.add(aTrustList({ sequenceNumber: 3 }));
        throw new Error('broken');
      });
      await failureOf(broken);
      expect(await withLists((lists) => lists.lastNumber('list'))).to.equal(2);
      expect(await revision()).to.equal(before + 3);
    });

    it('are found by their expiry, of all tenants, page by page', async () => {
      // Long before all other times in this store
      const past = (second: number) => new Date(Date.UTC(2019, 0, 1, 0, 0, second));
      await add(aTrustList({ id: 'late', nextUpdate: past(3) }));
      await add(aTrustList({ id: 'early', nextUpdate: past(1) }));
      await add(aTrustList({ id: 'same', nextUpdate: past(1) }), otherTenant);
      await add(aTrustList({ id: 'never', nextUpdate: past(9) }), otherTenant);
      const { maintenance } = store;
      const first = await maintenance.endingTrustLists(past(3), 2);
      expect(first).to.have.deep.members([
        { tenantId, id: 'early', nextUpdate: past(1) },
        { tenantId: otherTenant, id: 'same', nextUpdate: past(1) },
      ]);
      const remaining = await maintenance.endingTrustLists(past(3), 2, first[1]);
      expect(remaining).to.deep.equal([{ tenantId, id: 'late', nextUpdate: past(3) }]);
      expect(await maintenance.endingTrustLists(past(3), 2, remaining[0])).to.deep.equal([]);
      for (const id of [tenantId, otherTenant]) await store.forService(({ tenants }) => tenants.remove(id), { by: 'system' });
      expect(await maintenance.endingTrustLists(past(9), 2)).to.deep.equal([]);
    });
  });
}

const DAY = 86_400;

export function describeKeptTrustLists(open: () => Store): void {
  describe('stored copies of followed trust lists', () => {
    let store: Store;
    let tenantId: TenantId;
    let id: string;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      id = randomUUID();
    });
    const location = { uri: 'https://operator.example/list' };
    const aCopy = (sequenceNumber: number, changes: Partial<ValidCopy> = {}): ValidCopy => ({
      list: {
        ...{ sequenceNumber, issuedAt: NOW, nextUpdate: seconds(30 * DAY), territory: 'DE' },
        entities: [{ id: 'e', name: 'Ünïversity', country: 'DE', services: [] }],
      },
      ...{ documentHash: `d${sequenceNumber}`, contentHash: 'c', checkedAt: NOW },
      ...changes,
    });
    const finding: ListProblem = { fault: 'untrusted_signer', reason: 'unknown signer', signer: 'MIIB' };
    const lists = (tenant = tenantId) => store.lists(tenant);

    it('are read as they were stored, with their times, and only by their tenant', async () => {
      await lists().keepCopy(id, location, aCopy(5));
      expect(await lists().goodCopy(id)).to.deep.equal(aCopy(5));
      const otherTenant = await addTenant(store);
      expect(await lists(otherTenant).goodCopy(id)).to.equal(undefined);
      expect(await lists(otherTenant).storedLists(10)).to.deep.equal([]);
      await lists(otherTenant).distrustCopies();
      await lists(otherTenant).dropCopies();
      expect(await lists(otherTenant).confirmCopy(id, 'd5', seconds(9))).to.equal(false);
      expect(await lists().goodCopy(id)).to.deep.equal(aCopy(5));
    });

    it('are replaced by newer lists, and not by older ones', async () => {
      await lists().keepCopy(id, location, aCopy(5));
      await lists().keepCopy(id, location, aCopy(4));
      expect((await lists().goodCopy(id))?.list.sequenceNumber).to.equal(5);
      await lists().keepCopy(id, location, aCopy(6));
      expect((await lists().goodCopy(id))?.list.sequenceNumber).to.equal(6);
    });

    it('are confirmed by an unchanged list, which is no new copy', async () => {
      await lists().keepCopy(id, location, aCopy(5));
      expect(await lists().confirmCopy(id, 'd4', seconds(60))).to.equal(false);
      expect(await lists().confirmCopy(id, 'd5', seconds(60))).to.equal(true);
      expect((await lists().goodCopy(id))?.checkedAt).to.deep.equal(seconds(60));
      await lists().distrustCopies();
      expect((await lists().goodCopy(id))?.checkedAt).to.deep.equal(new Date(0));
    });

    it('are kept while a later list has a problem, which one process reports first', async () => {
      await lists().keepCopy(id, location, aCopy(5));
      const before = await store.maintenance.countHeldTrustLists(seconds(50));
      const all = await Promise.all(Array.from({ length: 5 }, () => lists().recordProblem(id, location, finding, seconds(60))));
      expect(all.filter((isNew) => isNew)).to.have.length(1);
      expect(await lists().recordProblem(id, location, finding, seconds(70))).to.equal(false);
      const [storedList] = await lists().storedLists(10);
      expect(storedList).to.deep.equal({
        ...{ id, place: location, sequenceNumber: 5, endsAt: seconds(30 * DAY), checkedAt: NOW, seenAt: seconds(70) },
        held: { ...finding, since: seconds(60) },
      });
      expect(await lists().goodCopy(id)).to.deep.equal(aCopy(5));
      expect(await store.maintenance.countHeldTrustLists(seconds(50))).to.equal(before + 1);
      expect(await lists().recordProblem(id, location, { ...finding, signer: 'MIIC' }, seconds(80))).to.equal(true);
      await lists().confirmCopy(id, 'd5', seconds(90));
      expect((await lists().storedLists(10))[0]?.held).to.equal(null);
      expect(await store.maintenance.countHeldTrustLists(seconds(50))).to.equal(before);
    });

    it('report the problem of a later version once, and again when the problem changes', async () => {
      const findUnreported = async () =>
        (await store.maintenance.unreportedProblems(1_000)).filter((one) => one.id === id && one.tenantId === tenantId);
      await lists().keepCopy(id, location, aCopy(5));
      expect(await findUnreported()).to.deep.equal([]);
      await lists().recordProblem(id, location, finding, seconds(60));
      const [one] = await findUnreported();
      expect(one).to.deep.equal({ tenantId, id, place: location, finding, since: seconds(60) });
      await lists().recordProblem(id, location, { ...finding, signer: 'MIIC' }, seconds(70));
      if (one !== undefined) await store.maintenance.markProblemReported(one);
      const [next] = await findUnreported();
      expect(next?.finding.signer, 'another problem was found in the meantime').to.equal('MIIC');
      if (next !== undefined) await store.maintenance.markProblemReported(next);
      expect(await findUnreported()).to.deep.equal([]);
      await lists().confirmCopy(id, 'd5', seconds(80));
      await lists().recordProblem(id, location, finding, seconds(90));
      expect(await findUnreported()).to.have.length(1);
    });

    it('need not exist for a problem of the list to be recorded', async () => {
      await lists().recordProblem(id, location, finding, NOW);
      expect(await lists().goodCopy(id)).to.equal(undefined);
      const [storedList] = await lists().storedLists(10);
      expect(storedList).to.deep.include({ sequenceNumber: 0, endsAt: null, checkedAt: null });
      await lists().keepCopy(id, location, aCopy(1));
      expect((await lists().storedLists(10))[0]?.held).to.equal(null);
    });

    it('are removed when they have expired and are no longer used', async () => {
      await lists().keepCopy(id, location, aCopy(5));
      const forgetLists = (days: number) => store.maintenance.forgetStoredTrustLists(seconds(days * DAY), 1_000);
      await forgetLists(29);
      expect(await lists().goodCopy(id)).to.deep.equal(aCopy(5));
      await forgetLists(31);
      expect(await lists().goodCopy(id)).to.equal(undefined);
    });

    it('are limited to 128 for each tenant', async () => {
      for (let index = 0; index < 129; index++) await lists().recordProblem(`${id}-${index}`, location, finding, NOW);
      expect(await lists().storedLists(1_000)).to.have.length(128);
    });
  });
}
