import { globSync, readFileSync, writeFileSync } from 'node:fs';

/** What one sentence of a specification demands of us. */
export type Requirement = {
  readonly section: string;
  /** The word that makes it a requirement (RFC 2119). */
  readonly word: string;
  /** What is demanded, in short and in our words. */
  readonly text: string;
  /** What the service does, and where. */
  readonly ours: string;
  /** `file: words of a title` of tests that break it and see it refused, or keep it and see it done; files are below `test/`. */
  readonly tests?: readonly string[];
  /** Why it is not met, or cannot be told by a test. */
  readonly open?: string;
};

/** The sentences of one specification that bind an issuer, an authorization server or a verifier. */
export type Specification = {
  readonly name: string;
  /** Sentences that bind wallets, writers of profiles or registries, and are left out. */
  readonly others: number;
  readonly requirements: readonly Requirement[];
};

const PAGE = 'docs/conformance.md';
const BEGIN = '<!-- requirements: written by `npm run docs:conformance` -->';
const END = '<!-- /requirements -->';

/** In the order of the files' names. */
export function specifications(root: URL): readonly Specification[] {
  return globSync('test/conformance/*.json', { cwd: root })
    .sort()
    .map((file) => JSON.parse(readFileSync(new URL(file, root), 'utf8')) as Specification);
}

/** The page with its tables made anew. */
export function withRequirements(page: string, all: readonly Specification[]): string {
  const [before = '', rest = ''] = page.split(BEGIN);
  const [, after = ''] = rest.split(END);
  return `${before}${BEGIN}\n\n${[summary(all), ...all.map(tableOf)].join('\n\n')}\n\n${END}${after}`;
}

function summary(all: readonly Specification[]): string {
  const line = (name: string, some: readonly Requirement[], others: number) => {
    const tested = some.filter(({ tests = [] }) => tests.length > 0).length;
    const open = some.filter(({ open }) => open !== undefined).length;
    return `| ${name} | ${some.length} | ${tested} | ${open} | ${others} |`;
  };
  const sum = all.reduce((count, { others }) => count + others, 0);
  return [
    '| Specification | Bind us | With a test | Open, with the reason | Bind others |',
    '|---|---:|---:|---:|---:|',
    ...all.map(({ name, requirements, others }) => line(name, requirements, others)),
    line(
      '**Together**',
      all.flatMap(({ requirements }) => requirements),
      sum,
    ),
  ].join('\n');
}

function tableOf({ name, requirements }: Specification): string {
  const rows = requirements.map(({ section, word, text, ours, tests = [], open }) => {
    const shown = tests.map((test) => `\`${test}\``);
    const last = [...shown, ...(open === undefined ? [] : [`**open:** ${open}`])].join('<br>');
    return `| ${[section, word, text, ours, last].map(cell).join(' | ')} |`;
  });
  return [`## ${name}`, '', '| Section | Word | Demanded | Ours | Test |', '|---|---|---|---|---|', ...rows].join('\n');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

if (process.argv[1]?.endsWith('write-conformance.ts') === true) {
  const root = new URL('../', import.meta.url);
  const page = new URL(PAGE, root);
  writeFileSync(page, withRequirements(readFileSync(page, 'utf8'), specifications(root)));
}
