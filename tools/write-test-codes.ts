import { globSync, readFileSync, writeFileSync } from 'node:fs';

const CODE = /['"`](N\d+)[:\s]\s*([^'"`$]*)/g;
const BEGIN = '<!-- codes: written by `npm run docs:test-codes` -->';
const END = '<!-- /codes -->';

/** Every code in the name of a test, with what the name says and the files it stands in. */
export function testCodes(root: URL): string {
  const found = new Map<string, { text: string; files: Set<string> }>();
  for (const file of globSync('test/{unit,http,contract,deep,vectors}/**/*.ts', { cwd: root }).sort()) {
    for (const [, code = '', text = ''] of readFileSync(new URL(file, root), 'utf8').matchAll(CODE)) {
      const known = found.get(code) ?? { text: text.trim(), files: new Set() };
      known.files.add(file.replace(/^test\//, ''));
      found.set(code, known);
    }
  }
  const numbered = [...found].sort(([one], [other]) => Number(one.slice(1)) - Number(other.slice(1)));
  const rows = numbered.map(([code, { text, files }]) => `| ${code} | ${text} | ${[...files].join(', ')} |`);
  return ['| Code | What is wrong | Files |', '|---|---|---|', ...rows].join('\n');
}

/** The page with its table made anew. */
export function withCodes(page: string, root: URL): string {
  const [before = '', rest = ''] = page.split(BEGIN);
  const [, after = ''] = rest.split(END);
  return `${before}${BEGIN}\n\n${testCodes(root)}\n\n${END}${after}`;
}

if (process.argv[1]?.endsWith('write-test-codes.ts') === true) {
  const root = new URL('../', import.meta.url);
  const page = new URL('test/README.md', root);
  writeFileSync(page, withCodes(readFileSync(page, 'utf8'), root));
}
