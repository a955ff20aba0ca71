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

/** Performs random steps on a budget and calls `check` after each of them. */
function checkProperty(
  isEvicting: boolean,
  check: (current: readonly Holder[], step: { added: Holder; bytes: number; isRefused: boolean }) => void,
) {
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
        const current = holders.filter(({ isOver }) => !isOver);
        const holder = current[index % Math.max(current.length, 1)];
        if (kind === 'open' || holder === undefined) open(party);
        else if (kind === 'release') {
          holder.share.release();
          holder.isOver = true;
        } else {
          const isRefused = doesThrow(() => holder.share.add(bytes));
          if (!isRefused) holder.bytes += bytes;
          check(current, { added: holder, bytes, isRefused });
        }
      }
    }),
  );
}

function doesThrow(work: () => void): boolean {
  try {
    work();
    return false;
  } catch (error) {
    expect(error).to.equal(FULL);
    return true;
  }
}

const sumBytes = (holders: readonly Holder[], party?: string) =>
  holders.filter((holder) => !holder.isOver && (party ?? holder.party) === holder.party).reduce((total, { bytes }) => total + bytes, 0);

describe('MemoryBudget', () => {
  for (const isEvicting of [false, true]) {
    describe(isEvicting ? 'that evicts the largest share' : 'that rejects', () => {
      it('never holds more than the limits in total and per key', () =>
        checkProperty(isEvicting, (current) => {
          expect(sumBytes(current)).to.be.at.most(LIMITS.total);
          for (const party of ['a', 'b', 'c']) expect(sumBytes(current, party)).to.be.at.most(LIMITS.perKey);
        }));
    });
  }

  it('rejects bytes only if a limit would be exceeded, without adding them', () =>
    checkProperty(false, (current, { added, bytes, isRefused }) => {
      const rejectedBytes = isRefused ? bytes : 0;
      const partyBytes = added.party === undefined ? 0 : sumBytes(current, added.party) + rejectedBytes;
      expect(sumBytes(current) + rejectedBytes > LIMITS.total || partyBytes > LIMITS.perKey).to.equal(isRefused);
    }));

  it('evicts only shares of the largest key, and none while all fit', () =>
    checkProperty(true, (current, { added, bytes, isRefused }) => {
      const evicted = current.filter(({ isOver }) => isOver);
      if (evicted.length === 0 || isRefused) {
        expect(evicted).to.deep.equal([]);
        return;
      }
      const bytesAtFirst = (party: string | undefined) =>
        current.filter((holder) => holder.party === party).reduce((total, holder) => total + holder.bytes, 0);
      expect(current.reduce((total, holder) => total + holder.bytes, 0)).to.be.greaterThan(LIMITS.total);
      expect(added.bytes).to.be.at.least(bytes);
      const max = Math.max(...current.map(({ party }) => bytesAtFirst(party)));
      expect(evicted.some(({ party }) => bytesAtFirst(party) === max)).to.equal(true);
    }));

  it('evicts the largest share of the largest key, whose later bytes do not count', () => {
    const budget = new MemoryBudget({ total: 100, perKey: 80 }, () => FULL);
    const evicted: string[] = [];
    const open = (party: string, name: string) => budget.open(party, () => evicted.push(name));
    open('a', 'small').add(10);
    const largeHolder = open('a', 'large');
    largeHolder.add(60);
    const otherHolder = open('b', 'other');
    otherHolder.add(40);
    expect(evicted).to.deep.equal(['large']);
    largeHolder.add(1_000);
    largeHolder.release();
    expect(() => otherHolder.add(41)).to.throw(FULL.message);
    otherHolder.release();
    otherHolder.release();
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
