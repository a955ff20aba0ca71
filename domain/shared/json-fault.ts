import { isJsonObject } from './json.ts';
import { endOfString, followedByColon, isText, keepsNumbers, OpenObject } from './json-ambiguity.ts';

/** Characters; what is longer is not read a second time to tell where it is wrong. */
const READ_TWICE = 64 * 1024;
/** What is longer than so many characters for each member that its sender may send mostly has too many of them. */
const MEMBER_LENGTH = 8;
/** Characters of a name that are shown. */
const SHOWN_NAME = 32;

type Fault = { readonly what: string; readonly at: number };

/**
 * Why `parseJsonObject` does not take a text, as the rest of a sentence: `is not JSON (line 1, column 2)`. Names of
 * members are told, values never are. What is as long as only an attack is, for the members that its sender may send,
 * gets all reasons instead of its own: to find that one takes as long as to read the text.
 * @param maxMembers as it was for the parser; without them the sender is trusted, and a text of any length is looked at.
 */
export function describeJsonProblem(text: string, maxMembers?: number, maxDepth = 32): string {
  const longest = maxMembers === undefined ? Infinity : Math.min(READ_TWICE, maxMembers * MEMBER_LENGTH);
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
  // Nothing else is left, as long as the parser and this agree.
  return maxMembers === undefined ? anyOf(maxDepth) : `has more than ${maxMembers} members and entries`;
}

const NO_OBJECT = 'must be a JSON object';

function beginsAsObject(text: string): boolean {
  return /^[ \t\r\n]*\{/.test(text);
}

function anyOf(maxDepth: number, maxMembers?: number): string {
  return (
    'must be one whole JSON object: without repeated members, NUL, members called `__proto__`, or `prototype` in `constructor`, ' +
    `or integers beyond 2^53 - 1 (send those as text), at most ${maxDepth} levels deep` +
    (maxMembers === undefined ? '' : `, with at most ${maxMembers} members and entries`)
  );
}

/** Walks valid JSON once, up to what the parser refuses first. */
function findFirstProblem(text: string, maxDepth: number): Fault | undefined {
  /** The names of each open object; a list has none. */
  const open: (OpenObject | undefined)[] = [];
  const mark = /["[\]{}]/g;
  let between = 0;
  while (mark.test(text)) {
    const at = mark.lastIndex - 1;
    const number = changedNumber(text, between, at);
    if (number !== undefined) return number;
    const char = text[at];
    if (char === '{' || char === '[') {
      if (open.length === maxDepth) return { what: `nests deeper than ${maxDepth} levels`, at };
      open.push(char === '{' ? new OpenObject(open.at(-1)) : undefined);
    } else if (char === '}' || char === ']') open.pop();
    else {
      const end = endOfString(text, at);
      const what = findStringProblem(text, at, end, open.at(-1));
      if (what !== undefined) return { what, at };
      mark.lastIndex = end + 1;
    }
    between = mark.lastIndex;
  }
  return undefined;
}

function findStringProblem(text: string, start: number, end: number, names: OpenObject | undefined): string | undefined {
  const raw = text.slice(start + 1, end);
  const string = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
  if (string.includes('\0')) return 'has NUL in a text';
  if (!isText(string)) return 'has half a surrogate pair in a text, which is no character';
  if (names === undefined || !followedByColon(text, end)) return undefined;
  if (!names.allows(string)) {
    const place = string === '__proto__' ? '' : ' in "constructor"';
    return `has a member called ${shown(string)}${place}, which no document may have`;
  }
  if (names.has(string)) return `has the member ${shown(string)} twice in one object`;
  names.add(string);
  return undefined;
}

/** @returns the first number between two places that is not kept. */
function changedNumber(text: string, start: number, end: number): Fault | undefined {
  const part = text.slice(start, end);
  if (keepsNumbers(part)) return undefined;
  for (const { 0: number, index } of part.matchAll(/-?[0-9][0-9.eE+-]*/g)) {
    if (!keepsNumbers(number)) return { what: 'has a number beyond 2^53 - 1 that is not kept; send it as text', at: start + index };
  }
  return undefined;
}

/** Whoever reads a log or a terminal is shown no control character, nor one that turns the line around. */
function shown(name: string): string {
  const isLong = name.length > SHOWN_NAME;
  // Half a pair at the cut is left out.
  const part = isLong ? name.slice(0, SHOWN_NAME).replace(/[\ud800-\udbff]$/, '') : name;
  const escaped = JSON.stringify(part).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) =>
    Array.from({ length: char.length }, (_, at) => escapeOf(char.charCodeAt(at))).join(''),
  );
  return isLong ? `${escaped}…` : escaped;
}

function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** As the parser of the platform counts: from one, in UTF-16 units. */
function placeOf(text: string, at: number): string {
  const lines = text.slice(0, at).split(/\r\n|\r|\n/);
  return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
}
