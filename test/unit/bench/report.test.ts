import { expect } from 'chai';
import { reportOn } from '../../bench/report.ts';
import { madeUpRun } from './made-up-run.ts';

describe('the report of the benchmark', () => {
  it('has no faults when every goal is met', () => {
    expect(reportOn(madeUpRun(1)).faults).to.deep.equal([]);
  });

  it('names a flow that is dearer than its goal, and by how much it is above what can be reached', () => {
    const { faults, judgements } = reportOn(madeUpRun(1, { serverMs: 2.3 }));
    expect(faults).to.deep.equal(['issue (offer, token, nonce, credential): 2.600 ms, goal 1.600']);
    expect(judgements[0]?.practicalRatio).to.be.closeTo(2, 1e-9);
  });

  it('asks as much more of a machine as it is quicker than the reference', () => {
    expect(reportOn(madeUpRun(2, { serverMs: 2.3 })).faults).to.deep.equal([]);
    expect(reportOn(madeUpRun(0.5)).faults).to.deep.equal([
      'issue (offer, token, nonce, credential): 1.500 ms, goal 0.800',
      'first start, with the schema: 400 ms, goal 250',
    ]);
  });

  it('names wrong answers, flows that never ended and too much memory while issuing', () => {
    expect(reportOn(madeUpRun(1, { flows: 0, errors: 3, peakMegabytes: 201 })).faults).to.deep.equal([
      'issue (offer, token, nonce, credential): nothing came of it',
      'issue (offer, token, nonce, credential): 3 errors',
      'issue (offer, token, nonce, credential): peak 201 MB, goal 200',
    ]);
  });
});
