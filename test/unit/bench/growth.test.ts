import { expect } from 'chai';
import type { PairedRun } from '../../bench/against-run.ts';
import { growthFaults } from '../../bench/grow-run.ts';

/** A run in which B costs so many times what A costs. */
function grown(median: number, low: number, high: number): PairedRun {
  const comparison = {
    scenario: 'issue' as const,
    ...{ aMs: 1, bMs: median, sum: { median, low, high }, serverRatio: median },
    ...{
      p99: [1, 1] as const,
      peakMegabytes: [1, 1] as const,
      errors: 0,
      messages: [],
      pairs: [],
      starts: 5,
    },
  };
  return { database: 'postgres', comparisons: [comparison] };
}

describe('the growth of a flow', () => {
  it('may be five percent, and what the pairs differ by', () => {
    expect(growthFaults(grown(1.05, 1.05, 1.05))).to.deep.equal([]);
    expect(growthFaults(grown(1.08, 1.04, 1.12))).to.deep.equal([]);
  });

  it('is a fault beyond that', () => {
    const [fault] = growthFaults(grown(1.08, 1.07, 1.09));
    expect(fault).to.equal('postgres: issue is dearer with much stored, ×1.080');
  });
});
