import type { z } from 'zod';
import type { FieldError } from './failure.ts';
import { messagesByProperty, unknownPropertiesMessage } from './input-object.ts';
import { valueAt } from './json.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

const MAX_FAULTS = 50;
const UNFIT = 'none of the alternatives';

/**
 * Zod options for `fieldErrors`: they replace messages of the validator by instructions. Messages that a schema defines, and all other
 * errors, stay.
 */
export const PARSE_OPTIONS = {
  error: (issue: z.core.$ZodRawIssue): string | undefined => {
    if (issue.code === 'unrecognized_keys') return unknownPropertiesMessage(issue);
    if (issue.input === undefined && issue.code?.startsWith('invalid_')) return 'is missing';
    if (issue.code === 'invalid_type' && Number.isNaN(issue.input)) return 'is not a number';
    const readableMessage = plainMessage(issue);
    if (readableMessage !== undefined) return readableMessage;
    // A discriminated union lists its values.
    return issue.code === 'invalid_union' && issue.errors.length > 0 ? UNFIT : undefined;
  },
};

/** A message that replaces the validator's; undefined if the validator's is more specific. */
function plainMessage(issue: z.core.$ZodRawIssue): string | undefined {
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

/** @param origin of the limit: the length of a text or a list, or a number. */
function limitOf(origin: string, words: 'at least' | 'at most', limit: number | bigint): string {
  if (origin === 'string') return `has to have ${words} ${limit} characters`;
  if (origin === 'array' || origin === 'set') return `has to have ${words} ${limit} entries`;
  return `has to be ${words} ${limit}`;
}

/**
 * The errors of a document, one per field: for a union the errors of the intended alternative, or a list of the alternatives.
 * @param issues of a schema that was parsed with `PARSE_OPTIONS`.
 * @param value to which the issues refer.
 */
export function fieldErrors(issues: readonly Issue[], value: unknown): FieldError[] {
  // A value of a wrong type is not checked against limits as well.
  const ofOtherType = new Set(issues.filter(isOfOtherType).map(placeOf));
  const relevant = issues.filter((issue) => isOfOtherType(issue) || !ofOtherType.has(placeOf(issue)));
  const limited = relevant.slice(0, MAX_FAULTS);
  return limited.flatMap((issue) => errorsOf(issue, value, [])).slice(0, MAX_FAULTS);
}

function isOfOtherType({ code }: Issue): boolean {
  return code === 'invalid_type';
}

function placeOf({ path }: Issue): string {
  return path.map(String).join('.');
}

function errorsOf(issue: Issue, value: unknown, parentPath: Path): FieldError[] {
  const path = [...parentPath, ...issue.path];
  const fault = (message: string, subpath: Path = []) => ({ path: [...path, ...subpath].map(String).join('.'), message });
  if (issue.code === 'unrecognized_keys') {
    const words = messagesByProperty(issue);
    if (words !== undefined) return [...words].map(([name, message]) => fault(message, [name]));
  }
  if (issue.code !== 'invalid_union') return [fault(issue.message)];
  const unionValue = valueAt(value, issue.path);
  const intendedBranches = issue.errors.filter((issues) => issues.every((branchIssue) => isWithin(branchIssue, unionValue)));
  const [branch] = intendedBranches;
  if (intendedBranches.length === 1 && branch !== undefined)
    return branch.flatMap((branchIssue) => errorsOf(branchIssue, unionValue, path));
  return [
    fault(issue.message === UNFIT ? `expected ${alternatives(issue.errors)}` : issue.message),
    ...unknownInAllBranches(issue.errors).map(([name, message]) => fault(message, [name])),
  ];
}

/** Properties that no alternative has, with a suggestion of one alternative, if any. */
function unknownInAllBranches(branches: readonly (readonly Issue[])[]): [string, string][] {
  const ofWhole = branches.map((issues) => issues.filter(({ path }) => path.length === 0));
  const messages = ofWhole.flatMap((issues) => {
    // An alternative for other types than objects has no properties.
    if (!issues.every((issue) => issue.code === 'unrecognized_keys')) return [];
    return new Map(issues.flatMap((issue) => [...(messagesByProperty(issue) ?? [])]));
  });
  const [firstMessages, ...otherMessages] = messages;
  return [...(firstMessages ?? [])].flatMap(([name, plain]) => {
    if (!otherMessages.every((words) => words.has(name))) return [];
    const words = messages.map((messagesByName) => messagesByName.get(name) ?? plain);
    return [[name, words.find((text) => text.endsWith('?')) ?? plain]];
  });
}

/** True if the error is at or below a present and known property, so that its alternative is the intended one. */
function isWithin(issue: Issue, value: unknown): boolean {
  if (issue.code === 'unrecognized_keys') return true;
  const isThere = (path: Path) => path.length > 0 && valueAt(value, path) !== undefined;
  return isThere(issue.path) || isThere(issue.path.slice(0, -1));
}

/** Lists the alternatives, for example `string, null or object with sub`. */
function alternatives(branches: readonly (readonly Issue[])[]): string {
  const names = [...new Set(branches.map(alternative))];
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

function alternative(issues: readonly Issue[]): string {
  const [rootIssue] = issues.filter(({ path }) => path.length === 0);
  if (rootIssue?.code === 'invalid_type') return rootIssue.expected === 'record' ? 'object' : rootIssue.expected;
  if (rootIssue?.code === 'invalid_value') return rootIssue.values.map(String).join(', ');
  if (rootIssue !== undefined && rootIssue.code !== 'unrecognized_keys') return rootIssue.message;
  const members = new Set(issues.flatMap(({ path: [member] }) => (member === undefined ? [] : [member])));
  return members.size === 0 ? 'object' : `object with ${[...members].map(String).join(', ')}`;
}
