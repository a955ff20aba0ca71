import { decodeBase64url } from './base64url.ts';
import { decodeUtf8 } from './utf8.ts';

export type JsonPrimitive = string | number | boolean | null;
export type Json = JsonPrimitive | readonly Json[] | JsonObject;
export type JsonObject = { readonly [member: string]: Json };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Names that would reach an object's prototype; no document may carry them. */
const PROTOTYPE_MEMBERS = new Set(['__proto__', 'constructor', 'prototype']);

/** Whether `parseJson` takes documents with a member of this name. */
export function isMemberName(name: string): boolean {
  return !PROTOTYPE_MEMBERS.has(name);
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
  // Hardly any document of a wallet has an escape.
  const isSound = text.includes('\\') ? isUnambiguous(text, maxDepth) : isPlain(text, value, maxDepth);
  return isSound ? value : undefined;
}

/** Sixteen digits and points, or an exponent of three, as texts may have, too; no shorter number becomes another one. */
const LONG_NUMBER = /[0-9](?:[0-9.]{15}|[eE]\+?[0-9]{3})/;
/** The same with the whole number that they belong to. */
const WHOLE_NUMBER =
  /-?(?=[0-9][0-9.]{15}|[0-9.]*[0-9][eE]\+?[0-9]{3})([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?/g;
/** Significant digits that are always kept. */
const KEPT_DIGITS = 15;

/** @param between a part of valid JSON without strings. @returns whether its numbers are some, and integers as they stand there. */
export function keepsNumbers(between: string): boolean {
  if (!LONG_NUMBER.test(between)) return true;
  for (const [source, whole = '', fraction = '', exponent] of between.matchAll(WHOLE_NUMBER)) {
    const value = Number(source);
    // What is too large to be read would count as endless: a token with such an `exp` never ends.
    if (!Number.isFinite(value)) return false;
    if (!Number.isInteger(value) || String(value) === source) continue;
    const significant = withoutZeros(fraction);
    const isInteger = significant === '' && exponent === undefined;
    const isKept = isInteger
      ? BigInt(Math.abs(value)) === BigInt(whole)
      : (whole + significant).replace(/^0+/, '').length <= KEPT_DIGITS;
    if (!isKept) return false;
  }
  return true;
}

function withoutZeros(fraction: string): string {
  let end = fraction.length;
  while (fraction[end - 1] === '0') end--;
  return fraction.slice(0, end);
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
  if (Array.isArray(value))
    return `[${value.map((entry) => writeCanonical(entry, counts) ?? 'null').join()}]`;
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
  if (Array.isArray(value)) {
    return value.map((entry: Json, index) => mapTexts(entry, change, below(index)));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, mapTexts(member, change, below(name))]),
  );
}

/** About how many characters a value has as JSON, without writing it. */
export function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 4;
  return Object.entries(value).reduce((sum, [name, member]) => sum + name.length + 4 + lengthOf(member), 2);
}

/** Databases keep no NUL, and half a surrogate pair is no character (RFC 7493 section 2.1). */
export function isText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** Characters; a number within so many is read fast enough. */
const SHORT_TEXT = 64 * 1024;
/** A megabyte of digits takes four milliseconds to read. */
const ENDLESS_NUMBER = /(?:^|[\s:,[\-+.eE])[0-9]{1000}/;

/** Looks for what counts, before anything is built. */
function holdsAtMost(text: string, maxMembers: number): boolean {
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

/** What an escape can write that is no text. */
const HEX_ESCAPE = '\\u';

const COLON = ':'.charCodeAt(0);
/** Characters of a number that may become another one, such as `1e999`. */
const SHORTEST_LONG_NUMBER = 5;

/**
 * Whether valid JSON without any escape means one thing, by what it became: a name that stands twice in one object leaves fewer
 * members than colons stand between the texts.
 */
function isPlain(text: string, value: Json, maxDepth: number): boolean {
  let colons = 0;
  for (let between = 0; between < text.length; ) {
    const quote = text.indexOf('"', between);
    const end = quote === -1 ? text.length : quote;
    for (let at = between; at < end; at++) if (text.charCodeAt(at) === COLON) colons++;
    if (end - between >= SHORTEST_LONG_NUMBER && !keepsNumbers(text.slice(between, end))) return false;
    between = quote === -1 ? end : text.indexOf('"', quote + 1) + 1;
  }
  return countMembers(value, maxDepth) === colons;
}

/** @returns undefined where it nests deeper, or has a member of a name that no document may carry. */
function countMembers(value: Json, maxDepth: number): number | undefined {
  if (typeof value !== 'object' || value === null) return 0;
  if (maxDepth === 0) return undefined;
  const isList = Array.isArray(value);
  if (!isList && !Object.keys(value).every(isMemberName)) return undefined;
  let members = 0;
  for (const member of (isList ? value : Object.values(value)) as readonly Json[]) {
    const below = countMembers(member, maxDepth - 1);
    if (below === undefined) return undefined;
    members += isList ? below : below + 1;
  }
  return members;
}

/** Walks text that is known to be valid JSON and looks at strings, depth and long numbers only. */
function isUnambiguous(text: string, maxDepth: number): boolean {
  const open: (Set<string> | undefined)[] = [];
  const mark = /["[\]{}]/g;
  const mayHaveLongNumber = LONG_NUMBER.test(text);
  let between = 0;
  while (mark.test(text)) {
    const at = mark.lastIndex - 1;
    // Between texts; looked at in the few documents alone that have such digits anywhere.
    if (mayHaveLongNumber && !keepsNumbers(text.slice(between, at))) return false;
    const char = text[at];
    if (char === '{' || char === '[') {
      open.push(char === '{' ? new Set() : undefined);
      if (open.length > maxDepth) return false;
    } else if (char === '}' || char === ']') {
      open.pop();
    } else {
      const end = endOfString(text, at);
      if (!isSoundString(text, at, end, open.at(-1))) return false;
      mark.lastIndex = end + 1;
    }
    between = mark.lastIndex;
  }
  return !mayHaveLongNumber || keepsNumbers(text.slice(between));
}

/** @param members of the object that the string stands in; a name is added to them. */
function isSoundString(text: string, start: number, end: number, members: Set<string> | undefined): boolean {
  const isName = members !== undefined && followedByColon(text, end);
  const raw = text.slice(start + 1, end);
  if (!isName && !raw.includes(HEX_ESCAPE)) return true;
  const string = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
  // Only an escape can write what is no text.
  if (string !== raw && !isText(string)) return false;
  if (!isName) return true;
  if (members.has(string) || PROTOTYPE_MEMBERS.has(string)) return false;
  members.add(string);
  return true;
}

export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

/** Each colon is looked for from two strings at most, so that it is found in the time of one walk. */
export function followedByColon(text: string, end: number): boolean {
  const next = text[end + 1] ?? '';
  if (next.trim() !== '') return next === ':';
  const colon = text.indexOf(':', end + 1);
  return colon !== -1 && text.slice(end + 1, colon).trim() === '';
}
