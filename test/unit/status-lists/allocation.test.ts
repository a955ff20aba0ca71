import { createHash, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { allocateFrom, indexAt, prepareAllocation } from '../../../domain/status-lists/allocation.ts';

const SECRET = createHash('sha256').update('a secret for tests').digest();

function allocate(secret: Uint8Array, first: number, count: number, capacity: number): readonly number[] {
  return allocateFrom(prepareAllocation(secret, capacity), first, count);
}

function isPermutation(secret: Uint8Array, capacity: number): boolean {
  const seen = new Uint8Array(capacity);
  for (const index of allocate(secret, 0, capacity, capacity)) seen[index] = 1;
  return seen.every((mark) => mark === 1);
}

describe('status list allocation', () => {
  it('hands out every index of a list exactly once', () => {
    for (const capacity of [1, 2, 3, 7, 8, 99, 100, 101, 104, 1000, 1024, 65_537, 100_000, 1_048_576]) {
      expect(isPermutation(SECRET, capacity), String(capacity)).to.equal(true);
    }
  });

  it('is a permutation for any secret and capacity', () => {
    const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(secret, fc.integer({ min: 1, max: 3000 }), (key, capacity) => isPermutation(key, capacity)),
      { numRuns: 60 },
    );
  });

  it('gives a run the indices of its counters, wherever the run begins', () => {
    const run = fc.tuple(fc.nat(900), fc.nat(100));
    const prepared = prepareAllocation(SECRET, 1000);
    const whole = allocate(SECRET, 0, 1000, 1000);
    fc.assert(
      fc.property(run, ([first, count]) => {
        expect(allocateFrom(prepared, first, count)).to.deep.equal(whole.slice(first, first + count));
        expect(indexAt(prepared, first)).to.equal(whole[first]);
      }),
    );
  });

  // Lists live for years; a change of the derivation would hand out the same index twice.
  it('never changes', () => {
    expect(allocate(SECRET, 0, 6, 100)).to.deep.equal([19, 12, 30, 89, 27, 22]);
    expect(allocate(SECRET, 0, 6, 100_000)).to.deep.equal([36184, 35476, 14511, 48142, 84135, 70019]);
  });

  it('depends on the secret', () => {
    const capacity = 100_000;
    const [one, other] = [SECRET, randomBytes(32)].map((secret) => allocate(secret, 0, 1000, capacity));
    const equal = one?.filter((index, i) => index === other?.[i]).length;
    expect(equal).to.be.lessThan(10);
  });

  it('depends on the capacity', () => {
    expect(allocate(SECRET, 0, 20, 100_000)).not.to.deep.equal(allocate(SECRET, 0, 20, 100_001));
  });

  it('does not let consecutive counters be neighbours', () => {
    const indices = allocate(SECRET, 0, 100_000, 100_000);
    const steps = indices.slice(1).map((index, i) => Math.abs(index - (indices[i] ?? 0)));
    // A random permutation has two such pairs on average.
    expect(steps.filter((step) => step === 1).length).to.be.lessThan(12);
    // And the distance between neighbours is a third of the range.
    const mean = steps.reduce((sum, step) => sum + step, 0) / steps.length;
    expect(mean).to.be.within(33_000, 33_700);
  });

  it('spreads the first counters over the whole list', () => {
    const buckets = new Array<number>(10).fill(0);
    for (const index of allocate(SECRET, 0, 10_000, 100_000)) {
      const bucket = Math.floor(index / 10_000);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    for (const count of buckets) expect(count).to.be.within(880, 1120);
  });

  it('refuses counters outside the list, short secrets and odd capacities', () => {
    const prepared = prepareAllocation(SECRET, 100);
    for (const counter of [-1, 100, 1.5, Number.NaN]) {
      expect(() => indexAt(prepared, counter)).to.throw(RangeError);
    }
    for (const [first, count] of [
      [90, 11],
      [0, -1],
      [0, 1.5],
    ] as const) {
      expect(() => allocateFrom(prepared, first, count)).to.throw(RangeError, 'no room for the run');
    }
    expect(() => prepareAllocation(SECRET.subarray(1), 100)).to.throw(RangeError);
    for (const capacity of [0, -1, 1.5, 2 ** 28]) {
      expect(() => prepareAllocation(SECRET, capacity)).to.throw(RangeError, 'The capacity is not one');
    }
  });
});
