import { expect } from 'chai';
import { median, relativeSpread, spreadOf } from '../../bench/statistics.ts';

describe('what repeated measurements say', () => {
  it('is the value in the middle, or the mean of the two in the middle', () => {
    expect(median([3, 1, 2])).to.equal(2);
    expect(median([4, 1, 3, 2])).to.equal(2.5);
  });

  it('lies between the least and the most as long as there are few', () => {
    expect(spreadOf([1, 0.9, 1.1, 1.05, 0.95, 1.2])).to.deep.equal({ median: 1.025, low: 0.9, high: 1.2 });
  });

  it('leaves out what a stranger disturbed once there are enough', () => {
    const nine = [1, 1.01, 0.99, 1.02, 0.98, 1, 1.01, 0.99, 9];
    expect(spreadOf(nine)).to.deep.equal({ median: 1, low: 0.99, high: 1.02 });
  });

  it('holds the true value in at least 95 of 100 cases', () => {
    let seed = 7;
    const next = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    let inside = 0;
    for (let trial = 0; trial < 1_000; trial++) {
      const { low, high } = spreadOf(Array.from({ length: 12 }, next));
      if (low <= 0.5 && high >= 0.5) inside++;
    }
    expect(inside).to.be.greaterThan(940);
  });

  it('is as far apart as half the distance, relative to the middle', () => {
    expect(relativeSpread({ median: 2, low: 1.9, high: 2.1 })).to.be.closeTo(0.05, 1e-9);
  });
});
