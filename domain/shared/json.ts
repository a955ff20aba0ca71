import { decodeBase64url } from './base64url.ts';
import { isUnambiguous } from './json-ambiguity.ts';
import { decodeUtf8 } from './utf8.ts';

export { isMemberName, isSafeId, isValidText as isText } from './json-ambiguity.ts';

export type JsonPrimitive = string | number | boolean | null;
export type Json = JsonPrimitive | readonly Json[] | JsonObject;
export type JsonObject = { readonly [member: string]: Json };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Limit of properties and entries in a document of an unauthenticated sender. A megabyte of them would block the thread for fifty
 * milliseconds; messages of wallets are far smaller.
 */
export const MAX_UNTRUSTED_PROPERTIES = 2_000;
/** Limit of escapes per allowed property, because parsing an escape takes several times as long as a character. */
const ESCAPES_PER_MEMBER = 10;

/**
 * Parses untrusted JSON. `undefined` for invalid JSON, a duplicate property name (RFC 8259 section 4 leaves the meaning open, so two
 * parsers could see different documents), nesting deeper than `maxDepth`, more than about `maxMembers` properties and entries (commas and
 * brackets within strings count as well), an infinite number, a name that reaches a prototype, invalid text (see `isValidText`), or an
 * integer that would change, as most beyond 2^53 do (RFC 8259 section 6).
 */
export function parseJson(text: string, maxDepth = 32, maxMembers?: number): Json | undefined {
  if (maxMembers !== undefined && !isWithinPropertyLimit(text, maxMembers)) return undefined;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  return isUnambiguous(text, value, maxDepth) ? value : undefined;
}

export function parseJsonObject(text: string, maxDepth = 32, maxMembers?: number): JsonObject | undefined {
  const value = parseJson(text, maxDepth, maxMembers);
  return isJsonObject(value) ? value : undefined;
}

/** Parses strict base64url of UTF-8, like `parseJson`. */
export function decodeJson(base64url: string, maxDepth = 32, maxMembers?: number): Json | undefined {
  const bytes = decodeBase64url(base64url);
  const text = bytes === undefined ? undefined : decodeUtf8(bytes);
  return text === undefined ? undefined : parseJson(text, maxDepth, maxMembers);
}

/** Canonical JSON: equal values have equal texts. Properties are sorted by name; `counts` excludes properties. */
export function canonicalJson(value: unknown, counts = (_member: unknown) => true): string {
  return writeCanonical(value ?? null, counts) ?? 'null';
}

/** Written by hand: `JSON.stringify` with a replacer creates an object for each object, which takes twice as long. */
function writeCanonical(input: unknown, counts: (member: unknown) => boolean): string | undefined {
  if (typeof input !== 'object' || input === null) return JSON.stringify(input);
  const { toJSON } = input as { readonly toJSON?: unknown };
  const value: unknown = typeof toJSON === 'function' ? toJSON.call(input) : input;
  if (Array.isArray(value)) return `[${value.map((entry) => writeCanonical(entry, counts) ?? 'null').join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members: string[] = [];
  for (const name of sortCanonically(Object.keys(value))) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    const text = counts(member) ? writeCanonical(member, counts) : undefined;
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join()}}`;
}

const INDEX = /^(?:0|[1-9][0-9]{0,9})$/;
const MAX_INDEX = 2 ** 32 - 2;

/** Property order of an object: array indices come first, by number, then other names alphabetically. */
function sortCanonically(names: string[]): readonly string[] {
  let indices = 0;
  while (INDEX.test(names[indices] ?? '') && Number(names[indices]) <= MAX_INDEX) indices++;
  return indices === 0 ? names.sort() : [...names.slice(0, indices), ...names.slice(indices).sort()];
}

/** The value at a path of property names and positions, which may be dotted; undefined if the path does not exist. */
export function valueAt(value: unknown, path: string | readonly PropertyKey[]): unknown {
  let current = value;
  for (const component of typeof path === 'string' ? path.split('.') : path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, component)) return undefined;
    current = (current as Record<PropertyKey, unknown>)[component];
  }
  return current;
}

export function isStringArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

/** Applies `change` to every string, with its dotted path. */
export function mapStrings(value: Json, change: (text: string, path: string) => string, path = ''): Json {
  const childPath = (name: string | number) => (path === '' ? String(name) : `${path}.${name}`);
  if (typeof value === 'string') return change(value, path);
  if (Array.isArray(value)) return value.map((entry: Json, index) => mapStrings(entry, change, childPath(index)));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, mapStrings(member, change, childPath(name))]));
}

/** Estimates the length of a value as JSON without serializing it. */
export function estimateJsonLength(value: unknown): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 4;
  return Object.entries(value).reduce((sum, [name, member]) => sum + name.length + 4 + estimateJsonLength(member), 2);
}

/** Limit in characters below which any number is parsed fast enough. */
const SHORT_TEXT = 64 * 1024;
/** Parsing a megabyte of digits takes four milliseconds. */
const ENDLESS_NUMBER = /(?:^|[\s:,[\-+.eE])[0-9]{1000}/;

/** Counts properties, entries and escapes before the text is parsed. */
export function isWithinPropertyLimit(text: string, maxMembers: number): boolean {
  if (text.length > SHORT_TEXT && ENDLESS_NUMBER.test(text)) return false;
  const delimiter = /[,[{\\]/g;
  let members = 0;
  let escapes = 0;
  while (delimiter.test(text)) {
    if (text[delimiter.lastIndex - 1] === '\\') escapes++;
    else members++;
    if (members > maxMembers || escapes > maxMembers * ESCAPES_PER_MEMBER) return false;
  }
  return true;
}
