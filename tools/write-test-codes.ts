import { globSync, readFileSync, writeFileSync } from 'node:fs';

/** A comment of codes (`// N12, N13`) and the title that follows it. */
const CODES = /^\s*\/\/ (N\d+(?:, N\d+)*)\n(?:\s*(\w+): |[^'"`]*(['"`])((?:(?!\3)[^$])*))/gm;
const BEGIN = '<!-- codes: written by `npm run docs:test-codes` -->';
const END = '<!-- /codes -->';

/** @returns a table of all codes of negative cases, with the title of the first test of each code and the files that contain it. */
export function testCodes(root: URL): string {
  const cases = new Map<string, { title: string; files: Set<string> }>();
  for (const file of globSync('test/{unit,http,contract,deep,vectors}/**/*.ts', { cwd: root }).sort()) {
    for (const [, codes = '', property, , title = property ?? ''] of readFileSync(new URL(file, root), 'utf8').matchAll(CODES)) {
      for (const code of codes.split(', ')) {
        const entry = cases.get(code) ?? { title: title.trim(), files: new Set() };
        entry.files.add(file.replace(/^test\//, ''));
        cases.set(code, entry);
      }
    }
  }
  const numbered = [...cases].sort(([code], [otherCode]) => Number(code.slice(1)) - Number(otherCode.slice(1)));
  const rows = numbered.map(([code, { title, files }]) => `| ${code} | ${title} | ${[...files].join(', ')} |`);
  return ['| Code | What is wrong | Files |', '|---|---|---|', ...rows].join('\n');
}

/** @returns the page with a new table. */
export function withCodes(page: string, root: URL): string {
  const [head = '', tail = ''] = page.split(BEGIN);
  const [, foot = ''] = tail.split(END);
  return `${head}${BEGIN}\n\n${testCodes(root)}\n\n${END}${foot}`;
}

if (process.argv[1]?.endsWith('write-test-codes.ts') === true) {
  const root = new URL('../', import.meta.url);
  const page = new URL('test/README.md', root);
  writeFileSync(page, withCodes(readFileSync(page, 'utf8'), root));
}
