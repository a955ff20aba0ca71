import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { withCodes } from '../../tools/write-test-codes.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGES = [
  ...readdirSync(`${ROOT}docs/architecture`).map((page) => `docs/architecture/${page}`),
  'CONTRIBUTING.md',
  'SECURITY.md',
];
/** What looks like a path and has neither a placeholder nor a pattern in it. */
const PATH = /`((?:domain|application|adapters|bootstrap|config|tools|test|docs)\/[\w./-]*)`/g;

describe('The pages on the architecture', () => {
  for (const page of PAGES) {
    it(`${page} names files and folders that are there`, () => {
      const text = readFileSync(`${ROOT}${page}`, 'utf8');
      const missing = Array.from(text.matchAll(PATH), ([, path = '']) => path).filter(
        (path) => !existsSync(`${ROOT}${path}`),
      );
      expect(missing).to.deep.equal([]);
    });
  }

  it('list every decision', () => {
    const files = readdirSync(`${ROOT}docs/decisions`).filter((file) => file !== 'README.md');
    const listed = readFileSync(`${ROOT}docs/decisions/README.md`, 'utf8');
    expect(files.filter((file) => !listed.includes(`(${file})`))).to.deep.equal([]);
  });
});

describe('The page on the tests', () => {
  it('lists every code that stands in the name of a test', () => {
    const root = new URL('../../', import.meta.url);
    const page = readFileSync(new URL('test/README.md', root), 'utf8');
    expect(withCodes(page, root), 'npm run docs:test-codes').to.equal(page);
  });
});
