import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import {
  type BaselineDatabase,
  baselineOf,
  changesSince,
  describeChange,
  notIn,
  readBaseline,
} from '../../bench/baseline.ts';
import { chartOf } from '../../bench/chart.ts';
import type { DatabaseRun } from '../../bench/database-run.ts';
import { madeUpRun, RESULT } from './made-up-run.ts';

const HERE = { processor: 'one', cores: 2, node: 'v24.0.0' };

/** A run whose windows differ by two percent, and that is two percent dearer at its end. */
function measured(factor: number, slowness = 1): DatabaseRun {
  const result = {
    ...RESULT,
    slowness,
    serverMs: 1.2 * factor * slowness,
    databaseMs: 0.3 * factor * slowness,
    windowsMs: [1.47, 1.5, 1.5, 1.53].map((ms) => ms * factor * slowness),
  };
  const again = { ...result, tables: 'again' as const, serverMs: result.serverMs + 0.03 * factor * slowness };
  return { ...madeUpRun(slowness), results: [result, again] };
}

const baseline = (run: DatabaseRun, machine = HERE) => baselineOf([run], machine);

describe('a baseline of the benchmark', () => {
  it('takes a difference within the noise of both runs for none', () => {
    const [change] = changesSince(baseline(measured(1)), baseline(measured(1.05)));
    expect(change?.noise).to.be.closeTo(0.06, 1e-9);
    expect(change?.isRegression).to.equal(false);
  });

  it('names what is dearer by more than that', () => {
    const [change] = changesSince(baseline(measured(1)), baseline(measured(1.07)));
    expect(change?.isRegression).to.equal(true);
    expect(change && describeChange(change))
      .to.include('×1.070')
      .and.to.include('DEARER');
  });

  it('is the same when the machine was slower for a while', () => {
    const [change] = changesSince(baseline(measured(1)), baseline(measured(1, 2)));
    expect(change?.ratio).to.be.closeTo(1, 1e-9);
  });

  it('names what was measured now and not then, of which nothing is known', () => {
    const now = baseline(measured(1));
    expect(notIn(now, now)).to.deep.equal([]);
    const database = now.databases[0] as BaselineDatabase;
    const without = { ...now, databases: [{ ...database, flows: [] }] };
    for (const then of [without, { ...now, databases: [] }])
      expect(notIn(then, now)).to.deep.equal(['postgres: issue: not in the baseline, nothing was compared']);
  });

  it('that is not there, or none, is refused in words', () => {
    expect(() => readBaseline('/nowhere/a.json')).to.throw('there is no /nowhere/a.json; --save writes one');
    const none = fileURLToPath(new URL('../../bench/counts.json', import.meta.url));
    expect(() => readBaseline(none)).to.throw('is no baseline');
  });

  it('is refused when it is of another machine, another Node or another server, unless that is wanted', () => {
    const now = baseline(measured(1));
    for (const other of [{ processor: 'two' }, { cores: 4 }, { node: 'v25.0.0' }]) {
      const then = baseline(measured(1), { ...HERE, ...other });
      expect(() => changesSince(then, now)).to.throw('measured elsewhere');
      expect(changesSince(then, now, true)).to.have.length(1);
    }
    const then = baseline({ ...measured(1), server: 'PostgreSQL 16' });
    expect(() => changesSince(then, now)).to.throw('postgres PostgreSQL 16, here PostgreSQL 17');
  });
});

describe('the chart of the benchmark', () => {
  it('has a bar for each flow with a goal, and colours for a dark page', () => {
    const svg = chartOf(measured(1));
    expect(svg.match(/class="cost"\/>/g)).to.have.length(2);
    expect(svg).to.include('1.5 ms, goal 1.6, at best 1.3').and.to.include('prefers-color-scheme: dark');
  });
});
