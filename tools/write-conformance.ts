import { globSync, readFileSync, writeFileSync } from 'node:fs';

/** A requirement that one sentence of a specification defines for the service. */
export type Requirement = {
  readonly section: string;
  /** The word that makes it a requirement (RFC 2119). */
  readonly word: string;
  /** The requirement, in short words of our own. */
  readonly text: string;
  /** A short description of the implementation and its place. */
  readonly ours: string;
  /** `file: words of a title` of tests that violate or fulfil the requirement and check the result; files are below `test/`. */
  readonly tests?: readonly string[];
  /** The reason why it is not met, or cannot be tested. */
  readonly open?: string;
};

/** The sentences of one specification that bind an issuer, an authorization server or a verifier. */
export type Specification = {
  readonly name: string;
  /** The number of sentences that bind wallets, authors of profiles or registries, and are left out. */
  readonly others: number;
  readonly requirements: readonly Requirement[];
};

const PAGE = 'docs/reference/conformance.md';
const BEGIN = '<!-- requirements: written by `npm run docs:conformance` -->';
const END = '<!-- /requirements -->';

/** @returns the specifications in the order of their file names. */
export function specifications(root: URL): readonly Specification[] {
  return globSync('test/conformance/*.json', { cwd: root })
    .sort()
    .map((file) => JSON.parse(readFileSync(new URL(file, root), 'utf8')) as Specification);
}

/** @returns the page with new tables. */
export function withRequirements(page: string, allSpecifications: readonly Specification[]): string {
  const [head = '', tail = ''] = page.split(BEGIN);
  const [, foot = ''] = tail.split(END);
  return `${head}${BEGIN}\n\n${[summary(allSpecifications), ...allSpecifications.map(tableOf)].join('\n\n')}\n\n${END}${foot}`;
}

function summary(allSpecifications: readonly Specification[]): string {
  const line = (name: string, some: readonly Requirement[], others: number) => {
    const tested = some.filter(({ tests = [] }) => tests.length > 0).length;
    const open = some.filter(({ open }) => open !== undefined).length;
    return `| ${name} | ${some.length} | ${tested} | ${open} | ${others} |`;
  };
  const sum = allSpecifications.reduce((count, { others }) => count + others, 0);
  return [
    '| Specification | Bind us | With a test | Open, with the reason | Bind others |',
    '|---|---:|---:|---:|---:|',
    ...allSpecifications.map(({ name, requirements, others }) => line(name, requirements, others)),
    line(
      '**Together**',
      allSpecifications.flatMap(({ requirements }) => requirements),
      sum,
    ),
  ].join('\n');
}

function tableOf({ name, requirements }: Specification): string {
  const rows = requirements.map(({ section, word, text, ours, tests = [], open }) => {
    const testNames = tests.map((test) => `\`${test}\``);
    const lastCell = [...testNames, ...(open === undefined ? [] : [`**open:** ${open}`])].join('<br>');
    return `| ${[section, word, text, ours, lastCell].map(cell).join(' | ')} |`;
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
