import { expect } from 'chai';
import type { DatabaseRun, Result } from '../../bench/database-run.ts';
import { REFERENCE } from '../../bench/floor.ts';
import { reportOn } from '../../bench/report.ts';

const RESULT: Result = {
  scenario: 'issue',
  tables: 'many',
  flows: 1_000,
  seconds: 8,
  p50: 1,
  p95: 2,
  p99: 3,
  errors: 0,
  messages: [],
  serverMs: 1.2,
  databaseMs: 0.3,
  windowsMs: [1.5],
  peakMegabytes: 150,
  strangersCores: 0,
};

/** A run on a machine that takes so many times the reference. */
function run(slowness: number, change: Partial<Result> = {}): DatabaseRun {
  const reference = { signMs: REFERENCE.signMs * slowness, verifyMs: REFERENCE.verifyMs * slowness };
  const costs = {
    reference,
    signMs: 0.02,
    verifyMs: 0.06,
    importMs: 0,
    generateMs: 0,
    agreeMs: 0,
    hashMs: 0,
  };
  return {
    database: 'postgres',
    costs,
    starts: [{ startMs: 400, idleMegabytes: 70 }],
    results: [{ ...RESULT, ...change }],
    preloaded: { sessions: 1, entries: 1 },
  };
}

describe('the report of the benchmark', () => {
  it('has no faults when every goal is met', () => {
    expect(reportOn(run(1)).faults).to.deep.equal([]);
  });

  it('names a flow that is dearer than its goal, and by how much it is above what can be reached', () => {
    const { faults, judgements } = reportOn(run(1, { serverMs: 2.3 }));
    expect(faults).to.deep.equal(['issue (offer, token, nonce, credential): 2.600 ms, goal 1.600']);
    expect(judgements[0]?.practicalRatio).to.be.closeTo(2, 1e-9);
  });

  it('asks as much more of a machine as it is quicker than the reference', () => {
    expect(reportOn(run(2, { serverMs: 2.3 })).faults).to.deep.equal([]);
    expect(reportOn(run(0.5)).faults).to.deep.equal([
      'issue (offer, token, nonce, credential): 1.500 ms, goal 0.800',
      'first start, with the schema: 400 ms, goal 250',
    ]);
  });

  it('names wrong answers, flows that never ended and too much memory while issuing', () => {
    expect(reportOn(run(1, { flows: 0, errors: 3, peakMegabytes: 201 })).faults).to.deep.equal([
      'issue (offer, token, nonce, credential): nothing came of it',
      'issue (offer, token, nonce, credential): 3 errors',
      'issue (offer, token, nonce, credential): peak 201 MB, goal 200',
    ]);
  });
});
