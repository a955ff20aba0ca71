import type { z } from 'zod';
import type { FieldError } from './failure.ts';
import { valueAt } from './json.ts';
import { misspelt, wordsFor } from './written.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

const MAX_FAULTS = 50;
const UNFIT = 'none of the alternatives';

/**
 * To parse with before `fieldErrors`: words what people have to mend. A schema that words its own faults is left alone, and
 * so are all other faults.
 */
export const PARSING = {
  error: (issue: z.core.$ZodRawIssue): string | undefined => {
    if (issue.code === 'unrecognized_keys') return misspelt(issue);
    if (issue.input === undefined && issue.code?.startsWith('invalid_')) return 'is missing';
    if (issue.code === 'invalid_type' && Number.isNaN(issue.input)) return 'is no number';
    const worded = inWords(issue);
    if (worded !== undefined) return worded;
    // One with a discriminator names its values.
    return issue.code === 'invalid_union' && issue.errors.length > 0 ? UNFIT : undefined;
  },
};

/** What is wrong without the words of the validator; undefined where it has words that say more. */
function inWords(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${kindOf(issue.expected)}, not ${kindOf(typeNameOf(issue.input))}`;
    case 'invalid_value':
      return `expected ${issue.values.length === 1 ? '' : 'one of '}${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return limitOf(issue.origin, 'at least', issue.minimum);
    case 'too_big':
      return limitOf(issue.origin, 'at most', issue.maximum);
    default:
      return undefined;
  }
}

function kindOf(name: string): string {
  return name === 'record' ? 'object' : name;
}

function typeNameOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** @param origin what is limited: the length of a text or a list, or a number itself. */
function limitOf(origin: string, words: 'at least' | 'at most', limit: number | bigint): string {
  if (origin === 'string') return `has to have ${words} ${limit} characters`;
  if (origin === 'array' || origin === 'set') return `has to have ${words} ${limit} entries`;
  return `has to be ${words} ${limit}`;
}

/**
 * The faults of a document, one for each field, as its author can mend them: of alternatives the fault of the one
 * that was meant, or what the alternatives are.
 * @param issues of a schema that parsed with `PARSING`.
 * @param value what the issues are about.
 */
export function fieldErrors(issues: readonly Issue[], value: unknown): FieldError[] {
  // What is of another type is not measured as well.
  const ofOtherType = new Set(issues.filter(isOfOtherType).map(placeOf));
  const telling = issues.filter((issue) => isOfOtherType(issue) || !ofOtherType.has(placeOf(issue)));
  const some = telling.slice(0, MAX_FAULTS);
  return some.flatMap((issue) => errorsOf(issue, value, [])).slice(0, MAX_FAULTS);
}

function isOfOtherType({ code }: Issue): boolean {
  return code === 'invalid_type';
}

function placeOf({ path }: Issue): string {
  return path.map(String).join('.');
}

function errorsOf(issue: Issue, value: unknown, above: Path): FieldError[] {
  const path = [...above, ...issue.path];
  const fault = (message: string, below: Path = []) => ({ path: [...path, ...below].map(String).join('.'), message });
  if (issue.code === 'unrecognized_keys') {
    const words = wordsFor(issue);
    if (words !== undefined) return [...words].map(([name, message]) => fault(message, [name]));
  }
  if (issue.code !== 'invalid_union') return [fault(issue.message)];
  const given = valueAt(value, issue.path);
  const meant = issue.errors.filter((issues) => issues.every((each) => isWithin(each, given)));
  const [only] = meant;
  if (meant.length === 1 && only !== undefined) return only.flatMap((each) => errorsOf(each, given, path));
  return [
    fault(issue.message === UNFIT ? `expected ${alternatives(issue.errors)}` : issue.message),
    ...unknownToAll(issue.errors).map(([name, message]) => fault(message, [name])),
  ];
}

/** Members that none of the alternatives knows, with the name that one of them finds near, if any. */
function unknownToAll(branches: readonly (readonly Issue[])[]): [string, string][] {
  const ofWhole = branches.map((issues) => issues.filter(({ path }) => path.length === 0));
  const known = ofWhole.flatMap((issues) => {
    // One that wants something else than an object knows of no members.
    if (!issues.every((issue) => issue.code === 'unrecognized_keys')) return [];
    return new Map(issues.flatMap((issue) => [...(wordsFor(issue) ?? [])]));
  });
  const [first, ...others] = known;
  return [...(first ?? [])].flatMap(([name, plain]) => {
    if (!others.every((words) => words.has(name))) return [];
    const words = known.map((each) => each.get(name) ?? plain);
    return [[name, words.find((text) => text.endsWith('?')) ?? plain]];
  });
}

/** Whether the fault lies in a member that is there and known, or below one, so that its alternative is the one that was meant. */
function isWithin(issue: Issue, value: unknown): boolean {
  if (issue.code === 'unrecognized_keys') return true;
  const isThere = (path: Path) => path.length > 0 && valueAt(value, path) !== undefined;
  return isThere(issue.path) || isThere(issue.path.slice(0, -1));
}

/** Such as `string, null or object with sub`. */
function alternatives(branches: readonly (readonly Issue[])[]): string {
  const names = [...new Set(branches.map(alternative))];
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

function alternative(issues: readonly Issue[]): string {
  const [whole] = issues.filter(({ path }) => path.length === 0);
  if (whole?.code === 'invalid_type') return whole.expected === 'record' ? 'object' : whole.expected;
  if (whole?.code === 'invalid_value') return whole.values.map(String).join(', ');
  if (whole !== undefined && whole.code !== 'unrecognized_keys') return whole.message;
  const members = new Set(issues.flatMap(({ path: [member] }) => (member === undefined ? [] : [member])));
  return members.size === 0 ? 'object' : `object with ${[...members].map(String).join(', ')}`;
}
