import { decodeBase64url } from './base64url.ts';
import { isUnambiguous } from './json-ambiguity.ts';
import { decodeUtf8 } from './utf8.ts';

export { isMemberName, isSafeId, isText } from './json-ambiguity.ts';

export type JsonPrimitive = string | number | boolean | null;
export type Json = JsonPrimitive | readonly Json[] | JsonObject;
export type JsonObject = { readonly [member: string]: Json };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Members and entries of a document whose sender has shown nothing yet. A megabyte of them would hold the thread for
 * fifty milliseconds; no message of a wallet comes near.
 */
export const MAX_STRANGER_MEMBERS = 2_000;
/** Escapes take several times as long to read as what they stand for. */
const ESCAPES_PER_MEMBER = 10;

/**
 * Parses JSON that an outsider wrote. `undefined` when it is not JSON, names a member twice in one object
 * (RFC 8259 section 4 leaves the meaning open, so two readers could see two documents), nests deeper than
 * `maxDepth`, has more than about `maxMembers` members and entries (commas and brackets within texts count, too) or a
 * number without end,
 * names a member after an object's prototype, carries text that is none (see `isText`), or has an integer that would
 * become another one, as most beyond 2^53 do (RFC 8259 section 6).
 */
export function parseJson(text: string, maxDepth = 32, maxMembers?: number): Json | undefined {
  if (maxMembers !== undefined && !holdsAtMost(text, maxMembers)) return undefined;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  return isUnambiguous(text, value, maxDepth) ? value : undefined;
}

/** Like `parseJson`, for documents that must be objects. */
export function parseJsonObject(text: string, maxDepth = 32, maxMembers?: number): JsonObject | undefined {
  const value = parseJson(text, maxDepth, maxMembers);
  return isJsonObject(value) ? value : undefined;
}

/** Like `parseJson`, for strict base64url of UTF-8. */
export function decodeJson(base64url: string, maxDepth = 32, maxMembers?: number): Json | undefined {
  const bytes = decodeBase64url(base64url);
  const text = bytes === undefined ? undefined : decodeUtf8(bytes);
  return text === undefined ? undefined : parseJson(text, maxDepth, maxMembers);
}

/** One text for equal values: members in the order of their names, those that count. */
export function canonicalJson(value: unknown, counts = (_member: unknown) => true): string {
  return writeCanonical(value ?? null, counts) ?? 'null';
}

/** By itself: `JSON.stringify` with a replacer makes an object for each object, which takes twice as long. */
function writeCanonical(given: unknown, counts: (member: unknown) => boolean): string | undefined {
  if (typeof given !== 'object' || given === null) return JSON.stringify(given);
  const { toJSON } = given as { readonly toJSON?: unknown };
  const value: unknown = typeof toJSON === 'function' ? toJSON.call(given) : given;
  if (Array.isArray(value)) return `[${value.map((entry) => writeCanonical(entry, counts) ?? 'null').join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members: string[] = [];
  for (const name of inCanonicalOrder(Object.keys(value))) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    const text = counts(member) ? writeCanonical(member, counts) : undefined;
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join()}}`;
}

const INDEX = /^(?:0|[1-9][0-9]{0,9})$/;
const MAX_INDEX = 2 ** 32 - 2;

/** As an object has them whose members were added by name: those that are indices come first, by their number. */
function inCanonicalOrder(names: string[]): readonly string[] {
  let indices = 0;
  while (INDEX.test(names[indices] ?? '') && Number(names[indices]) <= MAX_INDEX) indices++;
  return indices === 0 ? names.sort() : [...names.slice(0, indices), ...names.slice(indices).sort()];
}

/** What stands at a path of members and positions, which may be dotted; undefined where it leads nowhere. */
export function valueAt(value: unknown, path: string | readonly PropertyKey[]): unknown {
  let found = value;
  for (const component of typeof path === 'string' ? path.split('.') : path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, component)) return undefined;
    found = (found as Record<PropertyKey, unknown>)[component];
  }
  return found;
}

/** Whether a value is a list of texts, which may be empty. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

/** Applies `change` to every text, which gets its dotted path. */
export function mapTexts(value: Json, change: (text: string, path: string) => string, path = ''): Json {
  const below = (name: string | number) => (path === '' ? String(name) : `${path}.${name}`);
  if (typeof value === 'string') return change(value, path);
  if (Array.isArray(value)) return value.map((entry: Json, index) => mapTexts(entry, change, below(index)));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, mapTexts(member, change, below(name))]));
}

/** About how many characters a value has as JSON, without writing it. */
export function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 4;
  return Object.entries(value).reduce((sum, [name, member]) => sum + name.length + 4 + lengthOf(member), 2);
}

/** Characters; a number within so many is read fast enough. */
const SHORT_TEXT = 64 * 1024;
/** A megabyte of digits takes four milliseconds to read. */
const ENDLESS_NUMBER = /(?:^|[\s:,[\-+.eE])[0-9]{1000}/;

/** Counts members, entries and escapes before anything is built. */
export function holdsAtMost(text: string, maxMembers: number): boolean {
  if (text.length > SHORT_TEXT && ENDLESS_NUMBER.test(text)) return false;
  const mark = /[,[{\\]/g;
  let members = 0;
  let escapes = 0;
  while (mark.test(text)) {
    if (text[mark.lastIndex - 1] === '\\') escapes++;
    else members++;
    if (members > maxMembers || escapes > maxMembers * ESCAPES_PER_MEMBER) return false;
  }
  return true;
}
