import { expect } from 'chai';
import { describeComparison, summary } from '../../bench/pairs.ts';
import { RESULT } from './made-up-run.ts';

/** A pair in which B costs so many times what A costs. */
function pair(ratio: number) {
  return [RESULT, { ...RESULT, serverMs: 1.2 * ratio, databaseMs: 0.3 * ratio }] as const;
}

const verdict = (groups: readonly (readonly number[])[]) =>
  describeComparison(
    summary(
      'issue',
      groups.map((ratios) => ratios.map(pair)),
      [],
    ),
  );

describe('the comparison of two builds', () => {
  it('shows nothing while a pair was the other way round', () => {
    expect(verdict([[0.9, 0.95, 1.01, 0.92, 0.93, 0.94]])).to.include('no difference to be seen');
  });

  it('only looks like a difference when all pairs are of one or two processes of each', () => {
    const shared = [
      [0.9, 0.91, 0.92],
      [0.93, 0.94, 0.95],
    ];
    expect(verdict(shared)).to.include('×0.925 (0.900–0.950)').and.to.include('B looks cheaper');
  });

  it('counts each start once when there are enough of them', () => {
    const starts = [[1.1, 1.3, 1.11], [1.12], [1.13], [1.14], [1.15]];
    expect(verdict(starts)).to.include('×1.130 (1.110–1.150)').and.to.include('B is dearer');
  });
});
