import { expect } from 'chai';
import { evaluateReport, type ListedSurvivor, type Report } from '../mutation/judge.ts';

const SOURCE = 'if (a &&\n    b) return;\nreturn c ? 1 : 2;\n';
const range = { start: { line: 1, column: 5 }, end: { line: 2, column: 6 } };
const lastRange = { start: { line: 3, column: 8 }, end: { line: 3, column: 9 } };
const killed = (count: number) => Array.from({ length: count }, () => ({ status: 'Killed', replacement: 'true', location: lastRange }));
const report = (mutants: Report['files'][string]['mutants']): Report => ({ files: { 'domain/a.ts': { source: SOURCE, mutants } } });
const listed: ListedSurvivor = { file: 'domain/a.ts', check: 'a && b', becomes: 'true', reason: 'no test can observe it' };
const survivor = (replacement: string, location = range) => ({ status: 'Survived', replacement, location });

describe('redundant checks in mutation results', () => {
  it('are identified by their place and text', () => {
    const { lines, isGood } = evaluateReport(report([...killed(99), survivor('true')]), []);
    expect(lines).to.deep.equal(['domain/a.ts:1 a && b may be true', '99 of 100 checks noticed, 99.0 %; 0 listed survivors']);
    expect(isGood).to.equal(false);
  });

  it('are allowed with a listed reason', () => {
    expect(evaluateReport(report([...killed(99), survivor('true')]), [listed]).isGood).to.equal(true);
    expect(evaluateReport(report([...killed(99), survivor('false')]), [listed]).isGood).to.equal(false);
    const anyReplacement: ListedSurvivor = { file: 'domain/a.ts', check: 'a && b', reason: 'no test can observe it' };
    expect(evaluateReport(report([...killed(99), survivor('false')]), [anyReplacement]).isGood).to.equal(true);
  });

  it('fail the run beyond one in twenty, even if they are listed', () => {
    expect(evaluateReport(report([...killed(94), ...Array(6).fill(survivor('true'))]), [listed]).isGood).to.equal(false);
    const slow = { status: 'Timeout', replacement: 'true', location: lastRange };
    const unseen = { status: 'NoCoverage', replacement: 'true', location: range };
    const ignored = { status: 'Ignored', replacement: 'true', location: lastRange };
    expect(evaluateReport(report([slow, ...killed(18), unseen, ignored]), [listed]).lines.at(-1)).to.contain('19 of 20');
  });

  it('are removed from the list once a test covers them', () => {
    const { lines, isGood } = evaluateReport(report(killed(9)), [listed, { ...listed, file: 'domain/b.ts' }]);
    expect(lines[0]).to.equal('domain/a.ts a && b is noticed: no longer list it');
    expect(isGood).to.equal(true);
  });
});
