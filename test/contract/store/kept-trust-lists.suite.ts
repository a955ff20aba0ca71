import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { GoodCopy, ListFinding } from '../../../domain/trust-lists/kept-list.ts';
import { addTenant, NOW, seconds } from './builders.ts';

const DAY = 86_400;

export function describeKeptTrustLists(open: () => Store): void {
  describe('good copies of lists of others', () => {
    let store: Store;
    let tenantId: TenantId;
    let id: string;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      id = randomUUID();
    });
    const place = { uri: 'https://operator.example/list' };
    const aCopy = (sequenceNumber: number, changes: Partial<GoodCopy> = {}): GoodCopy => ({
      list: {
        ...{ sequenceNumber, issuedAt: NOW, nextUpdate: seconds(30 * DAY), territory: 'DE' },
        entities: [{ id: 'e', name: 'Ünïversity', country: 'DE', services: [] }],
      },
      ...{ documentHash: `d${sequenceNumber}`, contentHash: 'c', checkedAt: NOW },
      ...changes,
    });
    const finding: ListFinding = { fault: 'untrusted_signer', reason: 'who is that', signer: 'MIIB' };
    const lists = (of = tenantId) => store.lists(of);

    it('are read as they were kept, with their times, by their tenant alone', async () => {
      await lists().keepCopy(id, place, aCopy(5));
      expect(await lists().goodCopy(id)).to.deep.equal(aCopy(5));
      const stranger = await addTenant(store);
      expect(await lists(stranger).goodCopy(id)).to.equal(undefined);
      expect(await lists(stranger).keptLists(10)).to.deep.equal([]);
      await lists(stranger).distrustCopies();
      await lists(stranger).dropCopies();
      expect(await lists(stranger).confirmCopy(id, 'd5', seconds(9))).to.equal(false);
      expect(await lists().goodCopy(id)).to.deep.equal(aCopy(5));
    });

    it('give way to newer ones, and to no older one', async () => {
      await lists().keepCopy(id, place, aCopy(5));
      await lists().keepCopy(id, place, aCopy(4));
      expect((await lists().goodCopy(id))?.list.sequenceNumber).to.equal(5);
      await lists().keepCopy(id, place, aCopy(6));
      expect((await lists().goodCopy(id))?.list.sequenceNumber).to.equal(6);
    });

    it('are found once more, which is no new copy', async () => {
      await lists().keepCopy(id, place, aCopy(5));
      expect(await lists().confirmCopy(id, 'd4', seconds(60))).to.equal(false);
      expect(await lists().confirmCopy(id, 'd5', seconds(60))).to.equal(true);
      expect((await lists().goodCopy(id))?.checkedAt).to.deep.equal(seconds(60));
      await lists().distrustCopies();
      expect((await lists().goodCopy(id))?.checkedAt).to.deep.equal(new Date(0));
    });

    it('stay while something is held against a later one, of which one process hears first', async () => {
      await lists().keepCopy(id, place, aCopy(5));
      const before = await store.maintenance.heldTrustLists(seconds(50));
      const all = await Promise.all(
        Array.from({ length: 5 }, () => lists().holdAgainst(id, place, finding, seconds(60))),
      );
      expect(all.filter((isNew) => isNew)).to.have.length(1);
      expect(await lists().holdAgainst(id, place, finding, seconds(70))).to.equal(false);
      const [kept] = await lists().keptLists(10);
      expect(kept).to.deep.equal({
        ...{ id, place, sequenceNumber: 5, endsAt: seconds(30 * DAY), checkedAt: NOW, seenAt: seconds(70) },
        held: { ...finding, since: seconds(60) },
      });
      expect(await lists().goodCopy(id)).to.deep.equal(aCopy(5));
      expect(await store.maintenance.heldTrustLists(seconds(50))).to.equal(before + 1);
      expect(await lists().holdAgainst(id, place, { ...finding, signer: 'MIIC' }, seconds(80))).to.equal(
        true,
      );
      await lists().confirmCopy(id, 'd5', seconds(90));
      expect((await lists().keptLists(10))[0]?.held).to.equal(null);
      expect(await store.maintenance.heldTrustLists(seconds(50))).to.equal(before);
    });

    it('have what is held against a later one told once, and again when it is something else', async () => {
      const untold = async () =>
        (await store.maintenance.untoldFindings(1_000)).filter(
          (one) => one.id === id && one.tenantId === tenantId,
        );
      await lists().keepCopy(id, place, aCopy(5));
      expect(await untold()).to.deep.equal([]);
      await lists().holdAgainst(id, place, finding, seconds(60));
      const [one] = await untold();
      expect(one).to.deep.equal({ tenantId, id, place, finding, since: seconds(60) });
      await lists().holdAgainst(id, place, { ...finding, signer: 'MIIC' }, seconds(70));
      if (one !== undefined) await store.maintenance.toldFinding(one);
      const [next] = await untold();
      expect(next?.finding.signer, 'another one came meanwhile').to.equal('MIIC');
      if (next !== undefined) await store.maintenance.toldFinding(next);
      expect(await untold()).to.deep.equal([]);
      await lists().confirmCopy(id, 'd5', seconds(80));
      await lists().holdAgainst(id, place, finding, seconds(90));
      expect(await untold()).to.have.length(1);
    });

    it('need not be there for something to be held against a list', async () => {
      await lists().holdAgainst(id, place, finding, NOW);
      expect(await lists().goodCopy(id)).to.equal(undefined);
      const [kept] = await lists().keptLists(10);
      expect(kept).to.deep.include({ sequenceNumber: 0, endsAt: null, checkedAt: null });
      await lists().keepCopy(id, place, aCopy(1));
      expect((await lists().keptLists(10))[0]?.held).to.equal(null);
    });

    it('go when they have ended and nobody looked for them any more', async () => {
      await lists().keepCopy(id, place, aCopy(5));
      const forget = (days: number) => store.maintenance.forgetKeptTrustLists(seconds(days * DAY), 1_000);
      await forget(29);
      expect(await lists().goodCopy(id)).to.deep.equal(aCopy(5));
      await forget(31);
      expect(await lists().goodCopy(id)).to.equal(undefined);
    });

    it('are at most 128 of a tenant', async () => {
      for (let index = 0; index < 129; index++)
        await lists().holdAgainst(`${id}-${index}`, place, finding, NOW);
      expect(await lists().keptLists(1_000)).to.have.length(128);
    });
  });
}
