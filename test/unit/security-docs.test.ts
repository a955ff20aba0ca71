import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

const root = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/security.md', root), 'utf8');

describe('the page about security', () => {
  it('names tests and pages that exist', () => {
    const named = [...page.matchAll(/`((?:test|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path);
    const linked = [...page.matchAll(/\]\(([\w./-]+)\)/g)].map(([, path = '']) => `docs/${path}`);
    expect(named.length).to.be.greaterThan(40);
    for (const path of [...named, ...linked]) expect(existsSync(new URL(path, root)), path).to.equal(true);
  });

  it('has a test for each answer', () => {
    const rows = page
      .split('\n')
      .filter((line) => /^\| (?!Way|Who|---)/.test(line) && line.split('|').length === 5);
    const answers = rows.filter((row) => !/^\| (a|an|another|who) [^|]*\| [^|]*\| [^|`]*\|$/.test(row));
    expect(answers.length).to.be.greaterThan(30);
    for (const row of answers) expect(row).to.match(/`(test|docs)\//);
  });
});
