/** Names of objects that are not used as identifiers. */
const PROTOTYPE_MEMBERS = new Set(['__proto__', 'constructor', 'prototype']);

/** Whether a configuration, a credential query or a claim query may have this id. */
export function isSafeId(name: string): boolean {
  return !PROTOTYPE_MEMBERS.has(name);
}

/**
 * Whether a document may have a member of this name. Only `__proto__`, and `prototype` in the object called `constructor`, reach
 * the prototype of other objects when a program copies members one by one.
 * @param parent name of the member whose value is the object; undefined for the document and in an array.
 */
export function isMemberName(name: string, parent?: string): boolean {
  return name !== '__proto__' && !(name === 'prototype' && parent === 'constructor');
}

/** Databases keep no NUL, and half a surrogate pair is no character (RFC 7493 section 2.1). */
export function isText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * Whether valid JSON means one thing to each reader.
 * @param value what the text became.
 */
export function isUnambiguous(text: string, value: unknown, maxDepth: number): boolean {
  // Hardly any document of a wallet has an escape.
  return text.includes('\\') ? isSound(text, maxDepth) : isPlain(text, value, maxDepth);
}

/** Sixteen digits and points, or an exponent of three, as texts may have, too; no shorter number becomes another one. */
const LONG_NUMBER = /[0-9](?:[0-9.]{15}|[eE]\+?[0-9]{3})/;
/** The same with the whole number that they belong to. */
const WHOLE_NUMBER = /-?(?=[0-9][0-9.]{15}|[0-9.]*[0-9][eE]\+?[0-9]{3})([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?/g;
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
    const isKept = isInteger ? BigInt(Math.abs(value)) === BigInt(whole) : (whole + significant).replace(/^0+/, '').length <= KEPT_DIGITS;
    if (!isKept) return false;
  }
  return true;
}

function withoutZeros(fraction: string): string {
  let end = fraction.length;
  while (fraction[end - 1] === '0') end--;
  return fraction.slice(0, end);
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
function isPlain(text: string, value: unknown, maxDepth: number): boolean {
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
function countMembers(value: unknown, maxDepth: number, parent?: string): number | undefined {
  if (typeof value !== 'object' || value === null) return 0;
  if (maxDepth === 0) return undefined;
  let members = 0;
  if (Array.isArray(value)) {
    for (const member of value as readonly unknown[]) {
      const below = countMembers(member, maxDepth - 1);
      if (below === undefined) return undefined;
      members += below;
    }
    return members;
  }
  for (const [name, member] of Object.entries(value)) {
    if (!isMemberName(name, parent)) return undefined;
    const below = countMembers(member, maxDepth - 1, name);
    if (below === undefined) return undefined;
    members += below + 1;
  }
  return members;
}

/** An object of a text that is being walked. */
export class OpenObject {
  readonly #parent: string | undefined;
  readonly #names = new Set<string>();
  #name: string | undefined;

  /** @param outer the object whose member it is; undefined for the document and in an array. */
  constructor(outer: OpenObject | undefined) {
    this.#parent = outer === undefined ? undefined : outer.#name;
  }

  allows(name: string): boolean {
    return isMemberName(name, this.#parent);
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(name: string): void {
    this.#names.add(name);
    this.#name = name;
  }
}

/** Walks text that is known to be valid JSON and looks at strings, depth and long numbers only. */
function isSound(text: string, maxDepth: number): boolean {
  const open: (OpenObject | undefined)[] = [];
  const mark = /["[\]{}]/g;
  const mayHaveLongNumber = LONG_NUMBER.test(text);
  let between = 0;
  while (mark.test(text)) {
    const at = mark.lastIndex - 1;
    // Between texts; looked at in the few documents alone that have such digits anywhere.
    if (mayHaveLongNumber && !keepsNumbers(text.slice(between, at))) return false;
    const char = text[at];
    if (char === '{' || char === '[') {
      open.push(char === '{' ? new OpenObject(open.at(-1)) : undefined);
      if (open.length > maxDepth) return false;
    } else if (char === '}' || char === ']') open.pop();
    else {
      const end = endOfString(text, at);
      if (!isSoundString(text, at, end, open.at(-1))) return false;
      mark.lastIndex = end + 1;
    }
    between = mark.lastIndex;
  }
  return !mayHaveLongNumber || keepsNumbers(text.slice(between));
}

/** @param members of the object that the string stands in; a name is added to them. */
function isSoundString(text: string, start: number, end: number, members: OpenObject | undefined): boolean {
  const isName = members !== undefined && followedByColon(text, end);
  const raw = text.slice(start + 1, end);
  if (!isName && !raw.includes(HEX_ESCAPE)) return true;
  const string = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
  // Only an escape can write what is no text.
  if (string !== raw && !isText(string)) return false;
  if (!isName) return true;
  if (members.has(string) || !members.allows(string)) return false;
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
