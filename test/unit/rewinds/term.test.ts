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
const term = (number: number, counter: number, beginning: TermBeginning = 'promoted', id = `id-${number}`): Term => ({
  number,
  id,
  lineage: 'service',
  place: 'here',
  counter,
  beganAt: new Date(number * 1000),
  how: beginning,
  lostAt: null,
  listFloor: 0,
  witnessedAt: null,
  witnessedCounter: null,
  witnessedIdleChecks: null,
  witnessedBy: null,
});
const positionAt = (number: number, counter: number, termId = `id-${number}`): Position => ({
  lineage: 'service',
  term: number,
  termId,
  counter,
});

describe('database history', () => {
  const cases: readonly [string, readonly Term[], Position, ReturnType<typeof compareWithHistory>][] = [
    ['has its current position', [term(5, 8)], positionAt(5, 8), 'whole'],
    ['has earlier positions', [term(5, 8)], positionAt(5, 7), 'whole'],
    ['does not have later positions', [term(5, 8)], positionAt(5, 9), 'lost'],
    ['has the end of a former term', [term(7, 9), term(5, 8)], positionAt(5, 8), 'whole'],
    ['does not have positions after the end of a former term', [term(7, 12), term(5, 8)], positionAt(5, 9), 'lost'],
    ['has not another term of the same number', [term(5, 20)], positionAt(5, 9, 'other'), 'lost'],
    ['does not have an unknown term', [term(5, 8)], positionAt(6, 8), 'lost'],
    ['is empty', [], positionAt(5, 1), 'lost'],
    ['was fenced since', [term(7, 8, 'fenced'), term(5, 8)], positionAt(5, 9), 'settled'],
    ['was accepted since', [term(9, 8), term(7, 8, 'accepted'), term(5, 8)], positionAt(6, 9), 'settled'],
    ['was fenced before', [term(7, 9), term(4, 8, 'fenced')], positionAt(5, 9), 'lost'],
    ['was restored to its fence', [term(5, 8, 'fenced')], positionAt(5, 9), 'lost'],
  ];
  for (const [name, terms, position, verdict] of cases) {
    it(`${name}: ${verdict}`, () => {
      expect(compareWithHistory({ terms }, position)).to.equal(verdict);
    });
  }

  it('has an unchanged position even without the number of confirmations', () => {
    expect(compareWithHistory({ terms: [term(5, 8)] }, { ...positionAt(5, 8), idleChecks: 7 })).to.equal('whole');
  });

  it('has a next term after all known and lost ones', () => {
    expect(nextTermNumber({ terms: [term(5, 1)], now: NOW })).to.equal(SECONDS);
    expect(nextTermNumber({ terms: [term(SECONDS, 1)], now: NOW })).to.equal(SECONDS + 1);
    expect(nextTermNumber({ terms: [term(5, 1)], now: NOW }, SECONDS + 9)).to.equal(SECONDS + 10);
  });

  it('selects the later of two positions', () => {
    expect(newerPosition(positionAt(5, 9), positionAt(6, 1))).to.deep.equal(positionAt(6, 1));
    expect(newerPosition(positionAt(6, 1), positionAt(5, 9))).to.deep.equal(positionAt(6, 1));
    expect(newerPosition(positionAt(6, 1), positionAt(6, 2))).to.deep.equal(positionAt(6, 2));
    const positionWithIdleChecks = { ...positionAt(6, 1), idleChecks: 3 };
    expect(newerPosition(positionAt(6, 1), positionWithIdleChecks)).to.equal(positionWithIdleChecks);
    expect(newerPosition(positionWithIdleChecks, { ...positionWithIdleChecks, idleChecks: 2 })).to.equal(positionWithIdleChecks);
    expect(newerPosition(positionWithIdleChecks, positionAt(6, 2))).to.deep.equal(positionAt(6, 2));
  });

  it('has the time of the last fence', () => {
    expect(fencedAt({ terms: [term(5, 1, 'accepted')] })).to.equal(undefined);
    expect(fencedAt({ terms: [term(9, 1), term(7, 1, 'fenced'), term(5, 1, 'fenced')] })).to.deep.equal(new Date(7_000));
  });
});
