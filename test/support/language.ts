import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseSync } from '@swc/core';

/** Violations of a rule of the writing style, as `file: text`, and the number of checked places. */
export type Measure = { readonly places: readonly string[]; readonly total: number };
export type Measures = {
  /** Variables and parameters. */
  readonly bindings: Measure;
  readonly types: Measure;
  /** Doc comments that have no subject and verb, since they begin with a preposition. */
  readonly fragments: Measure;
  /** Doc comments that begin with a relative or question word. */
  readonly relatives: Measure;
  /** Lines of comments with an indefinite person. */
  readonly persons: Measure;
  /** Titles of tests. */
  readonly titles: Measure;
};

/** These words say what happened to a value, or where it stands, and not what it is. */
const BARE_NAMES = new Set(
  (
    'about after again all asked at before below changed first former found given gone here kept known last left listed made missing named ' +
    'next one opened other others own present refused rest seen shown since stored such taken there these told until wanted whole written'
  ).split(' '),
);
const BARE_TYPES = new Set(
  (
    'Applied Asked Asking Filled Found Given Ground Held Judged Kept Known Line Listed Looked Made Making Missing Named Of Opened Own Part ' +
    'Party Place Read Room Seen Shown Spent Stored Taken Task Tell Told Turn Waiting Wanted Work Written'
  ).split(' '),
);
const FRAGMENT = /^(As|At|Beside|By|For|From|In|Of|Since|Unless|Until|With|Without)\b/;
const RELATIVE = /^(How|What|When|Where|Whether|Who|Whoever|Whose|Why)\b/;
const PERSON = /\b(anybody|nobody|somebody|strangers?|those who|the one who|whoever|who (asks|comes|has|reads|sends|writes))\b/i;
/** A code of a list of cases, or words that need another sentence to be understood. */
const RIDDLE = /\b([ABCDFGMNSU]\d+|at hand|goes on|is none|stands|told)\b/;

type Source = { readonly file: string; readonly text: string };

function trackedFiles(root: string): readonly string[] {
  const listed = ['ls-files', '--cached', '--others', '--exclude-standard'];
  return execFileSync('git', listed, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
    .trim()
    .split('\n');
}

const PRODUCT = /^(adapters|application|bootstrap|config|domain|packages|tools)\/.*\.tsx?$/;
const EXCLUDED = /\.d\.ts$|\/migrations\/|\/tests?\/|\.test\.ts$/;
const TESTS = /\.(suite|test)\.ts$/;

/** Measures the tracked files of a checkout. */
export function measureCheckout(root: string): Measures {
  const read = (file: string): Source => ({ file, text: readFileSync(`${root}/${file}`, 'utf8') });
  const files = trackedFiles(root);
  return measureLanguage(
    files.filter((file) => PRODUCT.test(file) && !EXCLUDED.test(file)).map(read),
    files.filter((file) => TESTS.test(file)).map(read),
  );
}

/** @param product sources whose names and comments are measured. @param tests sources whose titles are. */
export function measureLanguage(product: readonly Source[], tests: readonly Source[]): Measures {
  const names = product.map((source) => ({ ...namesOf(source), file: source.file }));
  const comments = product.flatMap((source) => docComments(source.text).map((text) => ({ file: source.file, text })));
  const lines = product.flatMap(({ file, text }) => commentLines(text).map((line) => ({ file, text: line })));
  const titles = tests.flatMap(({ file, text }) => titlesOf(text).map((title) => ({ file, text: title })));
  const measureNames = (kind: 'bindings' | 'types') => names.flatMap((source) => source[kind].map((text) => ({ file: source.file, text })));
  return {
    bindings: measure(measureNames('bindings'), (name) => BARE_NAMES.has(name)),
    types: measure(measureNames('types'), (name) => BARE_TYPES.has(name)),
    fragments: measure(comments, (text) => FRAGMENT.test(text)),
    relatives: measure(comments, (text) => RELATIVE.test(text)),
    persons: measure(lines, (text) => PERSON.test(text)),
    titles: measure(titles, (title) => PERSON.test(title) || RIDDLE.test(title)),
  };
}

function measure(texts: readonly Source[], isAtFault: (text: string) => boolean): Measure {
  const places = texts.filter(({ text }) => isAtFault(text)).map(({ file, text }) => `${file}: ${text.slice(0, 100)}`);
  return { places, total: texts.length };
}

type Node = { readonly type?: string; readonly [property: string]: unknown };

function namesOf({ file, text }: Source): { readonly bindings: readonly string[]; readonly types: readonly string[] } {
  const bindings: string[] = [];
  const types: string[] = [];
  const program = parseSync(text, { syntax: 'typescript', tsx: file.endsWith('x'), decorators: true });
  visit(program as unknown as Node, (node) => {
    if (node.type === 'VariableDeclarator') bindings.push(...boundNames(node['id'] as Node));
    if (node.type === 'Parameter') bindings.push(...boundNames(node['pat'] as Node));
    if (node.type === 'ArrowFunctionExpression') bindings.push(...(node['params'] as Node[]).flatMap(boundNames));
    if (node.type === 'TsTypeAliasDeclaration' || node.type === 'TsInterfaceDeclaration') types.push(identifierName(node['id'] as Node));
  });
  return { bindings, types };
}

function visit(value: unknown, visitor: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) visit(item, visitor);
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return;
  visitor(value as Node);
  for (const [property, child] of Object.entries(value)) if (property !== 'span') visit(child, visitor);
}

const identifierName = (identifier: Node) => String(identifier['value']);

/** The names that a pattern binds, such as `{ a, b: c }` or `[d]`. */
function boundNames(pattern: Node | null): string[] {
  switch (pattern?.type) {
    case 'Identifier':
      return [identifierName(pattern)];
    case 'ArrayPattern':
      return (pattern['elements'] as (Node | null)[]).flatMap(boundNames);
    case 'ObjectPattern':
      return (pattern['properties'] as Node[]).flatMap(boundNames);
    case 'AssignmentPatternProperty':
      return [identifierName(pattern['key'] as Node)];
    case 'KeyValuePatternProperty':
      return boundNames(pattern['value'] as Node);
    case 'AssignmentPattern':
      return boundNames(pattern['left'] as Node);
    case 'RestElement':
      return boundNames(pattern['argument'] as Node);
    default:
      return [];
  }
}

function docComments(text: string): readonly string[] {
  return [...text.matchAll(/\/\*\*([\s\S]*?)\*\//g)].map(([, body = '']) => body.replace(/^\s*\*\s?/gm, '').trim());
}

function commentLines(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => /^(\/\/|\/?\*)/.test(line));
}

function titlesOf(text: string): readonly string[] {
  return [...text.matchAll(/\b(?:it|describe)\(\s*['"`]([^'"`]+)['"`]/g)].map(([, title = '']) => title);
}
