import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { growthFaults, type PairedRun } from '../../bench/against-run.ts';
import {
  type BaselineDatabase,
  changesSince,
  describeChange,
  drawChart,
  findNewFlows,
  makeBaseline,
  readBaseline,
} from '../../bench/baseline.ts';
import type { DatabaseRun } from '../../bench/database-run.ts';
import { readOptions } from '../../bench/options.ts';
import { computeSpread, describeComparison, median, relativeSpread, summary } from '../../bench/pairs.ts';
import { reportOn } from '../../bench/report.ts';
import { fakeRun, RESULT } from './fake-run.ts';

describe('benchmark arguments', () => {
  it('select all scenarios on both databases by default', () => {
    const { only, databases, against } = readOptions([]);
    expect([only.size, databases, against]).to.deep.equal([0, ['postgres', 'sqlite'], undefined]);
  });

  it('name a second service with its own settings and options', () => {
    const args = ['--against', '/other', '--env', 'A=b=c', '--node-option=--max-semi-space-size=16'];
    expect(readOptions(args).against).to.deep.equal({
      tree: '/other',
      environment: { A: 'b=c' },
      nodeOptions: ['--max-semi-space-size=16'],
    });
  });

  it('let all data grow unless some are named', () => {
    expect(readOptions([]).grow).to.deep.equal([]);
    expect(readOptions(['--grow']).grow).to.deep.equal(['sessions', 'tenants', 'lists', 'keys']);
    expect(readOptions(['--grow', '--grow-by', 'keys,lists']).grow).to.deep.equal(['keys', 'lists']);
  });

  for (const [description, args, reason] of [
    ['an unknown scenario', ['--only', 'dance'], 'no scenario "dance"'],
    ['an unknown growth', ['--grow', '--grow-by', 'fame'], 'no growth "fame"'],
    ['a setting without a second service', ['--env', 'A=b'], '--against'],
    ['a setting without a value', ['--against', '.', '--env', 'A'], 'NAME=value'],
    ['too few pairs', ['--against', '.', '--pairs', '4'], 'from 5 on'],
    ['no time at all', ['--seconds', '0'], 'positive'],
    ['several processes on SQLite', ['--processes', '2', '--database', 'sqlite'], 'PostgreSQL only'],
    ['a baseline without the table', ['--against', '.', '--baseline', 'a.json'], '--baseline is about the table'],
    ['a file to save without the table', ['--memory', '--save', 'a.json'], '--save is about the table'],
  ] as const) {
    it(`are rejected with the usage: ${description}`, () => {
      expect(() => readOptions(args))
        .to.throw(reason)
        .with.property('message')
        .that.includes('--only <name')
        // The fault is the last line, so it is visible below the options.
        .and.matches(new RegExp(`${reason}[^\\n]*$`));
    });
  }
});

describe('result of repeated measurements', () => {
  it('is the median, or the mean of the two middle values', () => {
    expect(median([3, 1, 2])).to.equal(2);
    expect(median([4, 1, 3, 2])).to.equal(2.5);
  });

  it('has the minimum and the maximum as its interval for few measurements', () => {
    expect(computeSpread([1, 0.9, 1.1, 1.05, 0.95, 1.2])).to.deep.equal({ median: 1.025, low: 0.9, high: 1.2 });
  });

  it('ignores outliers for many measurements', () => {
    const measurements = [1, 1.01, 0.99, 1.02, 0.98, 1, 1.01, 0.99, 9];
    expect(computeSpread(measurements)).to.deep.equal({ median: 1, low: 0.99, high: 1.02 });
  });

  it('has an interval that contains the true value in at least 95 of 100 cases', () => {
    let seed = 7;
    const next = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    let hits = 0;
    for (let trial = 0; trial < 1_000; trial++) {
      const { low, high } = computeSpread(Array.from({ length: 12 }, next));
      if (low <= 0.5 && high >= 0.5) hits++;
    }
    expect(hits).to.be.greaterThan(940);
  });

  it('has a spread of half the interval, relative to the median', () => {
    expect(relativeSpread({ median: 2, low: 1.9, high: 2.1 })).to.be.closeTo(0.05, 1e-9);
  });
});

/** A run in which B costs `median` times as much as A. */
function runWithGrowth(median: number, low: number, high: number): PairedRun {
  const comparison = {
    scenario: 'issue' as const,
    ...{ aMs: 1, bMs: median, sum: { median, low, high }, serverRatio: median },
    ...{ p99: [1, 1] as const, peakMegabytes: [1, 1] as const, errors: 0, messages: [], pairs: [], starts: 5 },
  };
  return { database: 'postgres', comparisons: [comparison] };
}

describe('cost growth of a flow', () => {
  it('may be five percent plus the spread of the pairs', () => {
    expect(growthFaults(runWithGrowth(1.05, 1.05, 1.05))).to.deep.equal([]);
    expect(growthFaults(runWithGrowth(1.08, 1.04, 1.12))).to.deep.equal([]);
  });

  it('is a fault beyond that limit', () => {
    const [fault] = growthFaults(runWithGrowth(1.08, 1.07, 1.09));
    expect(fault).to.equal('postgres: issue is dearer with much stored, ×1.080');
  });
});

const MACHINE = { processor: 'one', cores: 2, node: 'v24.0.0' };

/** A run whose windows differ by two percent and whose repetition costs two percent more. */
function runWithCost(factor: number, slowness = 1): DatabaseRun {
  const result = {
    ...RESULT,
    slowness,
    serverMs: 1.2 * factor * slowness,
    databaseMs: 0.3 * factor * slowness,
    windowsMs: [1.47, 1.5, 1.5, 1.53].map((ms) => ms * factor * slowness),
  };
  const repeated = { ...result, tables: 'again' as const, serverMs: result.serverMs + 0.03 * factor * slowness };
  return { ...fakeRun(slowness), results: [result, repeated] };
}

const baseline = (run: DatabaseRun, machine = MACHINE) => makeBaseline([run], machine);

describe('benchmark baseline', () => {
  it('ignores a difference within the noise of both runs', () => {
    const [change] = changesSince(baseline(runWithCost(1)), baseline(runWithCost(1.05)));
    expect(change?.noise).to.be.closeTo(0.06, 1e-9);
    expect(change?.isRegression).to.equal(false);
  });

  it('reports flows that cost more than that', () => {
    const [change] = changesSince(baseline(runWithCost(1)), baseline(runWithCost(1.07)));
    expect(change?.isRegression).to.equal(true);
    expect(change && describeChange(change))
      .to.include('×1.070')
      .and.to.include('DEARER');
  });

  it('is unaffected when the machine was slower for a while', () => {
    const [change] = changesSince(baseline(runWithCost(1)), baseline(runWithCost(1, 2)));
    expect(change?.ratio).to.be.closeTo(1, 1e-9);
  });

  it('names new measurements without a previous value', () => {
    const current = baseline(runWithCost(1));
    expect(findNewFlows(current, current)).to.deep.equal([]);
    const database = current.databases[0] as BaselineDatabase;
    const withoutFlows = { ...current, databases: [{ ...database, flows: [] }] };
    for (const older of [withoutFlows, { ...current, databases: [] }])
      expect(findNewFlows(older, current)).to.deep.equal(['postgres: issue: not in the baseline, nothing was compared']);
  });

  it('that is missing or invalid is rejected with a message', () => {
    expect(() => readBaseline('/nowhere/a.json')).to.throw('there is no /nowhere/a.json; --save writes one');
    const otherFile = fileURLToPath(new URL('../../bench/counts.json', import.meta.url));
    expect(() => readBaseline(otherFile)).to.throw('is no baseline');
  });

  it('is rejected for another machine, Node version or server, unless it is forced', () => {
    const current = baseline(runWithCost(1));
    for (const machine of [{ processor: 'two' }, { cores: 4 }, { node: 'v25.0.0' }]) {
      const older = baseline(runWithCost(1), { ...MACHINE, ...machine });
      expect(() => changesSince(older, current)).to.throw('measured elsewhere');
      expect(changesSince(older, current, true)).to.have.length(1);
    }
    const older = baseline({ ...runWithCost(1), server: 'PostgreSQL 16' });
    expect(() => changesSince(older, current)).to.throw('postgres PostgreSQL 16, here PostgreSQL 17');
  });
});

describe('benchmark chart', () => {
  it('has a bar for each flow with a goal, and colours for a dark page', () => {
    const svg = drawChart(runWithCost(1));
    expect(svg.match(/class="cost"\/>/g)).to.have.length(2);
    expect(svg).to.include('1.5 ms, goal 1.6, at best 1.3').and.to.include('prefers-color-scheme: dark');
  });
});

/** A pair in which B costs `ratio` times as much as A. */
function pair(ratio: number) {
  return [RESULT, { ...RESULT, serverMs: 1.2 * ratio, databaseMs: 0.3 * ratio }] as const;
}

const comparisonText = (groups: readonly (readonly number[])[]) =>
  describeComparison(
    summary(
      'issue',
      groups.map((ratios) => ratios.map(pair)),
      [],
    ),
  );

describe('comparison of two builds', () => {
  it('reports no difference while one pair contradicts it', () => {
    expect(comparisonText([[0.9, 0.95, 1.01, 0.92, 0.93, 0.94]])).to.include('no difference to be seen');
  });

  it('reports an uncertain difference when all pairs are of one or two processes of each build', () => {
    const shared = [
      [0.9, 0.91, 0.92],
      [0.93, 0.94, 0.95],
    ];
    expect(comparisonText(shared)).to.include('×0.925 (0.900–0.950)').and.to.include('B looks cheaper');
  });

  it('uses each start once if there are enough of them', () => {
    const starts = [[1.1, 1.3, 1.11], [1.12], [1.13], [1.14], [1.15]];
    expect(comparisonText(starts)).to.include('×1.130 (1.110–1.150)').and.to.include('B is dearer');
  });
});

describe('benchmark report', () => {
  it('has no faults if every goal is met', () => {
    expect(reportOn(fakeRun(1)).faults).to.deep.equal([]);
  });

  it('names a flow that costs more than its goal, and its distance to the achievable minimum', () => {
    const { faults, judgements } = reportOn(fakeRun(1, { serverMs: 2.3 }));
    expect(faults).to.deep.equal(['issue (offer, token, nonce, credential): 2.600 ms, goal 1.600']);
    expect(judgements[0]?.practicalRatio).to.be.closeTo(2, 1e-9);
  });

  it('scales goals by the speed of the machine', () => {
    expect(reportOn(fakeRun(2, { serverMs: 2.3 })).faults).to.deep.equal([]);
    expect(reportOn(fakeRun(0.5)).faults).to.deep.equal([
      'issue (offer, token, nonce, credential): 1.500 ms, goal 0.800',
      'first start, with the schema: 400 ms, goal 250',
    ]);
  });

  it('names wrong answers, flows that never ended and excessive memory during issuance', () => {
    expect(reportOn(fakeRun(1, { flows: 0, errors: 3, peakMegabytes: 201 })).faults).to.deep.equal([
      'issue (offer, token, nonce, credential): nothing came of it',
      'issue (offer, token, nonce, credential): 3 errors',
      'issue (offer, token, nonce, credential): peak 201 MB, goal 200',
    ]);
  });
});
