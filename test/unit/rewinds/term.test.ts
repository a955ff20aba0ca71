import { expect } from 'chai';
import {
  compareWithHistory,
  fencedAt,
  newerPosition,
  nextTermNumber,
  type Position,
  type Term,
  type TermBeginning,
} from '../../../domain/rewinds/term.ts';

const NOW = new Date('2026-11-24T12:00:00Z');
const SECONDS = NOW.getTime() / 1000;
const term = (number: number, counter: number, how: TermBeginning = 'promoted', id = `id-${number}`): Term => ({
  number,
  id,
  lineage: 'service',
  place: 'here',
  counter,
  beganAt: new Date(number * 1000),
  how,
  lostAt: null,
  listFloor: 0,
  witnessedAt: null,
  witnessedCounter: null,
  witnessedIdleChecks: null,
  witnessedBy: null,
});
const seen = (number: number, counter: number, termId = `id-${number}`): Position => ({
  lineage: 'service',
  term: number,
  termId,
  counter,
});

describe('database history', () => {
  const cases: readonly [string, readonly Term[], Position, ReturnType<typeof compareWithHistory>][] = [
    ['has what it is at', [term(5, 8)], seen(5, 8), 'whole'],
    ['has what came before', [term(5, 8)], seen(5, 7), 'whole'],
    ['has not what comes later', [term(5, 8)], seen(5, 9), 'lost'],
    ['has what a former term ended with', [term(7, 9), term(5, 8)], seen(5, 8), 'whole'],
    ['has not what a former term did not come to', [term(7, 12), term(5, 8)], seen(5, 9), 'lost'],
    ['has not another term of the same number', [term(5, 20)], seen(5, 9, 'other'), 'lost'],
    ['has not a term that it does not know', [term(5, 8)], seen(6, 8), 'lost'],
    ['is empty', [], seen(5, 1), 'lost'],
    ['was fenced since', [term(7, 8, 'fenced'), term(5, 8)], seen(5, 9), 'settled'],
    ['was accepted since', [term(9, 8), term(7, 8, 'accepted'), term(5, 8)], seen(6, 9), 'settled'],
    ['was fenced before', [term(7, 9), term(4, 8, 'fenced')], seen(5, 9), 'lost'],
    ['went back to its fence', [term(5, 8, 'fenced')], seen(5, 9), 'lost'],
  ];
  for (const [name, terms, position, verdict] of cases) {
    it(`${name}: ${verdict}`, () => {
      expect(compareWithHistory({ terms }, position)).to.equal(verdict);
    });
  }

  it('has an unchanged position even without the number of confirmations', () => {
    expect(compareWithHistory({ terms: [term(5, 8)] }, { ...seen(5, 8), idleChecks: 7 })).to.equal('whole');
  });

  it('has a next term after all known and lost ones', () => {
    expect(nextTermNumber({ terms: [term(5, 1)], now: NOW })).to.equal(SECONDS);
    expect(nextTermNumber({ terms: [term(SECONDS, 1)], now: NOW })).to.equal(SECONDS + 1);
    expect(nextTermNumber({ terms: [term(5, 1)], now: NOW }, SECONDS + 9)).to.equal(SECONDS + 10);
  });

  it('selects the later of two positions', () => {
    expect(newerPosition(seen(5, 9), seen(6, 1))).to.deep.equal(seen(6, 1));
    expect(newerPosition(seen(6, 1), seen(5, 9))).to.deep.equal(seen(6, 1));
    expect(newerPosition(seen(6, 1), seen(6, 2))).to.deep.equal(seen(6, 2));
    const checked = { ...seen(6, 1), idleChecks: 3 };
    expect(newerPosition(seen(6, 1), checked)).to.equal(checked);
    expect(newerPosition(checked, { ...checked, idleChecks: 2 })).to.equal(checked);
    expect(newerPosition(checked, seen(6, 2))).to.deep.equal(seen(6, 2));
  });

  it('has the time of the last fence', () => {
    expect(fencedAt({ terms: [term(5, 1, 'accepted')] })).to.equal(undefined);
    expect(fencedAt({ terms: [term(9, 1), term(7, 1, 'fenced'), term(5, 1, 'fenced')] })).to.deep.equal(new Date(7_000));
  });
});
