import { isJsonObject } from './json.ts';
import { endOfString, followedByColon, isValidText, keepsNumbers, ObjectScope } from './json-ambiguity.ts';

/** Longer texts are not parsed a second time for a more precise message. */
const MAX_REPARSED_LENGTH = 64 * 1024;
/** A text with more characters per allowed property mostly has too many properties. */
const MEMBER_LENGTH = 8;
/** Limit of the characters of a name in messages. */
const SHOWN_NAME = 32;

type Fault = { readonly what: string; readonly at: number };

/**
 * The reason why `parseJsonObject` rejects a text, as the end of a sentence: `is not JSON (line 1, column 2)`. Property names are shown,
 * values never. A text as long as an attack gets a list of all possible reasons, because finding the actual one takes as long as parsing.
 * @param maxMembers limit that was passed to the parser; without it the sender is trusted, and texts of any length are analysed.
 */
export function describeJsonProblem(text: string, maxMembers?: number, maxDepth = 32): string {
  const longest = maxMembers === undefined ? Infinity : Math.min(MAX_REPARSED_LENGTH, maxMembers * MEMBER_LENGTH);
  if (text.length > longest) return beginsAsObject(text) ? anyOf(maxDepth, maxMembers) : NO_OBJECT;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // The rest of the message quotes the text.
    const [, line, column] = /\(line (\d+) column (\d+)\)/.exec(String(error)) ?? [];
    return `is not JSON${line === undefined ? '' : ` (line ${line}, column ${column})`}`;
  }
  if (!isJsonObject(value)) return NO_OBJECT;
  const fault = findFirstProblem(text, maxDepth);
  if (fault !== undefined) return `${fault.what} (${placeOf(text, fault.at)})`;
  // This is the only remaining reason, as long as it agrees with the parser.
  return maxMembers === undefined ? anyOf(maxDepth) : `has more than ${maxMembers} properties and entries`;
}

const NO_OBJECT = 'must be a JSON object';

function beginsAsObject(text: string): boolean {
  return /^[ \t\r\n]*\{/.test(text);
}

function anyOf(maxDepth: number, maxMembers?: number): string {
  return (
    'must be one complete JSON object: without repeated properties, NUL, properties called `__proto__`, or `prototype` in `constructor`, ' +
    `or integers beyond 2^53 - 1 (send those as text), at most ${maxDepth} levels deep` +
    (maxMembers === undefined ? '' : `, with at most ${maxMembers} properties and entries`)
  );
}

/** Scans valid JSON up to the first problem. */
function findFirstProblem(text: string, maxDepth: number): Fault | undefined {
  /** The names of each open object; undefined for arrays. */
  const open: (ObjectScope | undefined)[] = [];
  const delimiter = /["[\]{}]/g;
  let textStart = 0;
  while (delimiter.test(text)) {
    const offset = delimiter.lastIndex - 1;
    const number = changedNumber(text, textStart, offset);
    if (number !== undefined) return number;
    const char = text[offset];
    if (char === '{' || char === '[') {
      if (open.length === maxDepth) return { what: `is nested deeper than ${maxDepth} levels`, at: offset };
      open.push(char === '{' ? new ObjectScope(open.at(-1)) : undefined);
    } else if (char === '}' || char === ']') open.pop();
    else {
      const end = endOfString(text, offset);
      const what = findStringProblem(text, offset, end, open.at(-1));
      if (what !== undefined) return { what, at: offset };
      delimiter.lastIndex = end + 1;
    }
    textStart = delimiter.lastIndex;
  }
  return undefined;
}

function findStringProblem(text: string, start: number, end: number, names: ObjectScope | undefined): string | undefined {
  const raw = text.slice(start + 1, end);
  const string = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
  if (string.includes('\0')) return 'has NUL in a text';
  if (!isValidText(string)) return 'has an unpaired surrogate in a text';
  if (names === undefined || !followedByColon(text, end)) return undefined;
  if (!names.allows(string)) {
    const place = string === '__proto__' ? '' : ' in "constructor"';
    return `has a property called ${printableName(string)}${place}, which is not allowed`;
  }
  if (names.has(string)) return `has the property ${printableName(string)} twice in one object`;
  names.add(string);
  return undefined;
}

/** @returns the first number between two offsets that would change. */
function changedNumber(text: string, start: number, end: number): Fault | undefined {
  const part = text.slice(start, end);
  if (keepsNumbers(part)) return undefined;
  for (const { 0: number, index } of part.matchAll(/-?[0-9][0-9.eE+-]*/g)) {
    if (!keepsNumbers(number))
      return { what: 'has a number beyond 2^53 - 1 that would lose precision; send it as text', at: start + index };
  }
  return undefined;
}

/** Escapes control characters and bidirectional overrides, because the name is printed in logs and terminals. */
function printableName(name: string): string {
  const isLong = name.length > SHOWN_NAME;
  // A lone surrogate at the cut is removed.
  const part = isLong ? name.slice(0, SHOWN_NAME).replace(/[\ud800-\udbff]$/, '') : name;
  const escaped = JSON.stringify(part).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) =>
    Array.from({ length: char.length }, (_, offset) => escapeOf(char.charCodeAt(offset))).join(''),
  );
  return isLong ? `${escaped}…` : escaped;
}

function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** Counts like the parser of the platform: from one, in UTF-16 units. */
function placeOf(text: string, offset: number): string {
  const lines = text.slice(0, offset).split(/\r\n|\r|\n/);
  return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
}
