import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import {
  CURED_REASONS,
  cureOf,
  FAILURE_PLACES,
} from '../../adapters/http/console/app/pages/sessions/cures.ts';
import { FAILURES, REASONS } from '../../adapters/http/console/app/pages/sessions/explanations.ts';
import { SESSION_FAILURE_CODES } from '../../domain/sessions/failure-code.ts';
import { REFUSAL_REASONS } from '../../domain/shared/refusal.ts';

const section = (file: string, title: string) =>
  readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8')
    .split(`## ${title}`)[1]
    ?.split('\n## ')[0] ?? '';
const plain = (text: string) =>
  text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .trim();

describe('what the console says of failures', () => {
  it('has a sentence for each code and each reason', () => {
    expect(SESSION_FAILURE_CODES.filter((code) => FAILURES[code] === undefined)).to.deep.equal([]);
    expect(REFUSAL_REASONS.filter((reason) => REASONS[reason] === undefined)).to.deep.equal([]);
  });

  it('is what the documents say', () => {
    const rows = section('troubleshooting.md', 'A session failed').matchAll(
      /^\| `(\w+)` \| \w+ \| (.*?) \| (.*?) \|$/gm,
    );
    const failures = [...rows].map(([, code = '', cause = '', cure = '']) => [
      code,
      [plain(cause), plain(cure)],
    ]);
    expect(FAILURES).to.deep.equal(Object.fromEntries(failures));
    const reasons = section('verifying.md', 'Why a presentation is refused').matchAll(
      /^\| (`.*?) \| (.*?) \|$/gm,
    );
    const meant = [...reasons].flatMap(([, names = '', meaning = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, plain(meaning)]),
    );
    expect(REASONS).to.deep.equal(Object.fromEntries(meant));
  });

  it('sends people to sections that there are, for reasons and codes that there are', () => {
    const reasons: readonly string[] = REFUSAL_REASONS;
    expect(CURED_REASONS.filter((reason) => !reasons.includes(reason))).to.deep.equal([]);
    const codes: readonly string[] = SESSION_FAILURE_CODES;
    expect(Object.keys(FAILURE_PLACES).filter((code) => !codes.includes(code))).to.deep.equal([]);
    const cures = [...reasons.map(cureOf), ...Object.values(FAILURE_PLACES)];
    const sections = cures.flatMap(({ section: title }) => (title === undefined ? [] : [title]));
    expect(sections.filter((title) => section('troubleshooting.md', title) === '')).to.deep.equal([]);
  });
});
