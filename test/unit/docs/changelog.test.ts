import { readFileSync } from 'node:fs';
import { expect } from 'chai';

const MAX_LINES_PER_RELEASE = 40;
const MAX_LINE_LENGTH = 120;
const HEADINGS = ['Breaking', 'Added', 'Changed', 'Fixed', 'Security'];

const changelog = readFileSync(new URL('../../../CHANGELOG.md', import.meta.url), 'utf8');
const releases = changelog
  .split(/^(?=## )/m)
  .slice(1)
  .map((text) => ({ name: /^## (\S+)/.exec(text)?.[1] ?? '', text: text.trim() }));

/** Compares two versions `<major>.<minor>.<patch>` by their numbers. */
function compareVersions(left: string, right: string): number {
  return left.localeCompare(right, 'en', { numeric: true });
}

describe('CHANGELOG.md', () => {
  it('lists each release once, the newest first, with unreleased changes above', () => {
    const names = releases.map(({ name }) => name).filter((name, index) => index > 0 || name !== 'Unreleased');
    expect(names).to.include.members(['0.1.0', '0.2.0', '0.3.0']);
    for (const name of names) expect(name).to.match(/^\d+\.\d+\.\d+$/);
    expect(names).to.deep.equal([...new Set(names)].sort(compareVersions).reverse());
  });

  it('has lines of at most 120 characters', () => {
    expect(changelog.split('\n').filter((line) => line.length > MAX_LINE_LENGTH)).to.deep.equal([]);
  });

  for (const { name, text } of releases) {
    it(`describes ${name} in at most 40 lines under Breaking, Added, Changed, Fixed and Security, in this order`, () => {
      expect(text.split('\n')).to.have.length.at.most(MAX_LINES_PER_RELEASE);
      const headings = Array.from(text.matchAll(/^#{3,} (.*)$/gm), ([, heading = '']) => heading);
      expect(headings).to.deep.equal(HEADINGS.filter((heading) => headings.includes(heading)));
    });
  }
});
