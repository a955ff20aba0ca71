import { expect } from 'chai';
import fc from 'fast-check';
import { MemoryBudget, type MemoryShare } from '../../../application/queues/memory-budget.ts';

const FULL = new Error('too many bytes');
const LIMITS = { total: 100, perKey: 60 };

type Holder = { readonly party: string | undefined; readonly share: MemoryShare; bytes: number; isOver: boolean };

const STEPS = fc.array(
  fc.record({
    kind: fc.constantFrom('open', 'add', 'add', 'add', 'release'),
    party: fc.constantFrom('a', 'b', 'c', undefined),
    index: fc.nat({ max: 20 }),
    bytes: fc.integer({ min: 0, max: 50 }),
  }),
  { minLength: 10, maxLength: 60 },
);

/** Performs random steps on a budget and checks after each of them. */
function always(isEvicting: boolean, check: (held: readonly Holder[], step: { added: Holder; bytes: number; isRefused: boolean }) => void) {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const budget = new MemoryBudget(LIMITS, () => FULL);
      const holders: Holder[] = [];
      const open = (party: string | undefined) => {
        const evict = (reason: Error) => {
          expect(reason).to.equal(FULL);
          holder.isOver = true;
        };
        const holder: Holder = { party, share: isEvicting ? budget.open(party, evict) : budget.open(party), bytes: 0, isOver: false };
        holders.push(holder);
      };
      for (const { kind, party, index, bytes } of steps) {
        const held = holders.filter(({ isOver }) => !isOver);
        const holder = held[index % Math.max(held.length, 1)];
        if (kind === 'open' || holder === undefined) open(party);
        else if (kind === 'release') {
          holder.share.release();
          holder.isOver = true;
        } else {
          const isRefused = isThrown(() => holder.share.add(bytes));
          if (!isRefused) holder.bytes += bytes;
          check(held, { added: holder, bytes, isRefused });
        }
      }
    }),
  );
}

function isThrown(work: () => void): boolean {
  try {
    work();
    return false;
  } catch (error) {
    expect(error).to.equal(FULL);
    return true;
  }
}

const sum = (holders: readonly Holder[], party?: string) =>
  holders.filter((holder) => !holder.isOver && (party ?? holder.party) === holder.party).reduce((total, { bytes }) => total + bytes, 0);

describe('MemoryBudget', () => {
  for (const isEvicting of [false, true]) {
    describe(isEvicting ? 'that evicts the largest share' : 'that rejects', () => {
      it('never holds more than the limits in total and per key', () =>
        always(isEvicting, (held) => {
          expect(sum(held)).to.be.at.most(LIMITS.total);
          for (const party of ['a', 'b', 'c']) expect(sum(held, party)).to.be.at.most(LIMITS.perKey);
        }));
    });
  }

  it('rejects bytes only if a limit would be exceeded, without adding them', () =>
    always(false, (held, { added, bytes, isRefused }) => {
      const extra = isRefused ? bytes : 0;
      const ofParty = added.party === undefined ? 0 : sum(held, added.party) + extra;
      expect(sum(held) + extra > LIMITS.total || ofParty > LIMITS.perKey).to.equal(isRefused);
    }));

  it('evicts only shares of the largest key, and none while all fit', () =>
    always(true, (held, { added, bytes, isRefused }) => {
      const evicted = held.filter(({ isOver }) => isOver);
      if (evicted.length === 0 || isRefused) {
        expect(evicted).to.deep.equal([]);
        return;
      }
      const bytesAtFirst = (party: string | undefined) =>
        held.filter((holder) => holder.party === party).reduce((total, holder) => total + holder.bytes, 0);
      expect(held.reduce((total, holder) => total + holder.bytes, 0)).to.be.greaterThan(LIMITS.total);
      expect(added.bytes).to.be.at.least(bytes);
      const most = Math.max(...held.map(({ party }) => bytesAtFirst(party)));
      expect(evicted.some(({ party }) => bytesAtFirst(party) === most)).to.equal(true);
    }));

  it('evicts the largest share of the largest key, whose later bytes do not count', () => {
    const budget = new MemoryBudget({ total: 100, perKey: 80 }, () => FULL);
    const evicted: string[] = [];
    const open = (party: string, name: string) => budget.open(party, () => evicted.push(name));
    open('a', 'small').add(10);
    const large = open('a', 'large');
    large.add(60);
    const other = open('b', 'other');
    other.add(40);
    expect(evicted).to.deep.equal(['large']);
    large.add(1_000);
    large.release();
    expect(() => other.add(41)).to.throw(FULL.message);
    other.release();
    other.release();
    open('c', 'next').add(80);
    expect(evicted).to.deep.equal(['large']);
  });

  it('evicts as many shares as needed', () => {
    const budget = new MemoryBudget({ total: 100, perKey: 80 }, () => FULL);
    const evicted: number[] = [];
    for (let index = 0; index < 60; index++) budget.open('a', () => evicted.push(index)).add(1);
    budget.open('b', () => evicted.push(-1)).add(50);
    expect(evicted).to.have.length(10);
    expect(evicted).to.not.include(-1);
  });
});
