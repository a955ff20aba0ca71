import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type Requirement, specifications, withRequirements } from '../../../tools/write-conformance.ts';

const ROOT = new URL('../../../', import.meta.url);
const WORDS = ['MUST', 'MUST NOT', 'SHALL', 'SHALL NOT', 'REQUIRED', 'SHOULD', 'SHOULD NOT', 'RECOMMENDED', 'NOT RECOMMENDED'];
/** The minimum length of a test title. */
const MIN_TITLE = 6;
/** The minimum number of fixed words in a generated title. A row with a shorter one must name the case. */
const MIN_OWN_WORDS = 18;
const MAX_TEXT = 300;

const sources = new Map<string, string | undefined>();
function sourceOf(file: string): string | undefined {
  const path = new URL(`test/${file}`, ROOT);
  if (!sources.has(file)) sources.set(file, existsSync(path) ? readFileSync(path, 'utf8') : undefined);
  return sources.get(file);
}

/** Returns the faults of a row. */
function faultsOf({ section, word, text, ours, tests = [], open }: Requirement): string[] {
  const location = `${section} ${text}`;
  const faults: string[] = [];
  if (!WORDS.includes(word)) faults.push(`${location}: ${word} is no word of RFC 2119`);
  if (section === '' || text === '' || text.length > MAX_TEXT) faults.push(`${location}: no sentence, or a long one`);
  if (ours === '') faults.push(`${location}: nothing is said of what we do`);
  if (tests.length === 0 && (open ?? '') === '') faults.push(`${location}: neither a test nor a reason`);
  for (const test of tests) {
    const [, file = '', title = ''] = /^(\S+\.(?:ts|json)): (.+)$/.exec(test) ?? [];
    const source = sourceOf(file);
    if (source === undefined) faults.push(`${location}: there is no file ${test}`);
    else if (title.length < MIN_TITLE || !source.includes(title)) faults.push(`${location}: no such test: ${test}`);
    else if (title.includes('${') && title.replaceAll(/\$\{[^}]*\}/g, '').length < MIN_OWN_WORDS)
      faults.push(`${location}: names no case: ${test}`);
  }
  return faults;
}

describe('The table of requirements', () => {
  const all = specifications(ROOT);

  for (const { name, requirements } of all) {
    it(`names a test, or the reason why not, for each sentence of ${name}`, () => {
      expect(requirements.flatMap(faultsOf)).to.deep.equal([]);
    });
  }

  it('detects a missing test, and a sentence without one', () => {
    const row = { section: '1', word: 'MUST', text: 'x', ours: 'y' };
    const existingTest = 'unit/docs/conformance.test.ts: would notice a test that is gone';
    expect(faultsOf({ ...row, tests: [existingTest] })).to.deep.equal([]);
    const missingTest = `unit/docs/conformance.test.ts: ${'never '.repeat(3)}written`;
    for (const tests of [[], ['unit/gone.test.ts: would notice'], [missingTest], ['unit/docs/conformance.test.ts: it']]) {
      expect(faultsOf({ ...row, tests })).to.have.length(1);
    }
    expect(faultsOf({ ...row, open: 'for a reason' })).to.deep.equal([]);
  });

  it('rejects a title with a placeholder, which stands for many cases', () => {
    const file = 'unit/docs/conformance.test.ts: ';
    const row = (title: string) => ({ section: '1', word: 'MUST', text: 'x', ours: 'y', tests: [file + title] });
    const name = '$'.concat('{name}');
    const longTitle = `names a test, or the reason why not, for each sentence of ${name}`;
    expect(faultsOf(row(longTitle))).to.deep.equal([]);
    expect(faultsOf(row(longTitle.slice(-20)))).to.have.length(1);
  });

  it('is in the documents as it is', () => {
    const page = readFileSync(new URL('docs/reference/conformance.md', ROOT), 'utf8');
    expect(page).to.equal(withRequirements(page, all));
  });
});
