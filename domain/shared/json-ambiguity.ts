/** Property names of prototypes, which are not allowed as ids. */
const PROTOTYPE_MEMBERS = new Set(['__proto__', 'constructor', 'prototype']);

/** True for a valid id of a configuration, a credential query or a claims query. */
export function isSafeId(name: string): boolean {
  return !PROTOTYPE_MEMBERS.has(name);
}

/**
 * True if a document may have a property of this name. Only `__proto__`, and `prototype` in the object called `constructor`, reach the
 * prototype of other objects when a program copies properties one by one.
 * @param parent name of the property with this object; undefined for the document and in an array.
 */
export function isMemberName(name: string, parent?: string): boolean {
  return name !== '__proto__' && !(name === 'prototype' && parent === 'constructor');
}

/** PostgreSQL cannot store NUL, and a lone surrogate is no character (RFC 7493 section 2.1). */
export function isValidText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * True if valid JSON has the same meaning for every parser.
 * @param value parsed from the text.
 */
export function isUnambiguous(text: string, value: unknown, maxDepth: number): boolean {
  // Documents of wallets hardly ever contain escapes.
  return text.includes('\\') ? isUnambiguousScan(text, maxDepth) : isUnambiguousValue(text, value, maxDepth);
}

/** Sixteen digits and points, or an exponent of three, possibly within a text; shorter numbers are always exact. */
const LONG_NUMBER = /[0-9](?:[0-9.]{15}|[eE]\+?[0-9]{3})/;
/** Matches the complete number around such digits. */
const WHOLE_NUMBER = /-?(?=[0-9][0-9.]{15}|[0-9.]*[0-9][eE]\+?[0-9]{3})([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?/g;
/** Number of significant digits that a double always preserves. */
const KEPT_DIGITS = 15;

/** @param between a part of valid JSON without strings. @returns true if its numbers are finite, and its integers exact. */
export function keepsNumbers(between: string): boolean {
  if (!LONG_NUMBER.test(between)) return true;
  for (const [source, integerDigits = '', fraction = '', exponent] of between.matchAll(WHOLE_NUMBER)) {
    const value = Number(source);
    // A number that is too large would become Infinity: a token with such an `exp` would never expire.
    if (!Number.isFinite(value)) return false;
    if (!Number.isInteger(value) || String(value) === source) continue;
    const significant = withoutZeros(fraction);
    const isInteger = significant === '' && exponent === undefined;
    const isKept = isInteger
      ? BigInt(Math.abs(value)) === BigInt(integerDigits)
      : (integerDigits + significant).replace(/^0+/, '').length <= KEPT_DIGITS;
    if (!isKept) return false;
  }
  return true;
}

function withoutZeros(fraction: string): string {
  let end = fraction.length;
  while (fraction[end - 1] === '0') end--;
  return fraction.slice(0, end);
}

/** Only this escape can write invalid text. */
const HEX_ESCAPE = '\\u';

const COLON = ':'.charCodeAt(0);
/** Length of the shortest number that may change, such as `1e999`. */
const SHORTEST_LONG_NUMBER = 5;

/**
 * Checks valid JSON without escapes by its parsed value: a repeated name leaves fewer properties than there are colons outside of strings.
 */
function isUnambiguousValue(text: string, value: unknown, maxDepth: number): boolean {
  let colons = 0;
  for (let textStart = 0; textStart < text.length; ) {
    const quote = text.indexOf('"', textStart);
    const end = quote === -1 ? text.length : quote;
    for (let index = textStart; index < end; index++) if (text.charCodeAt(index) === COLON) colons++;
    if (end - textStart >= SHORTEST_LONG_NUMBER && !keepsNumbers(text.slice(textStart, end))) return false;
    textStart = quote === -1 ? end : text.indexOf('"', quote + 1) + 1;
  }
  return countMembers(value, maxDepth) === colons;
}

/** @returns undefined if it nests deeper, or has a property with a forbidden name. */
function countMembers(value: unknown, maxDepth: number, parent?: string): number | undefined {
  if (typeof value !== 'object' || value === null) return 0;
  if (maxDepth === 0) return undefined;
  let members = 0;
  if (Array.isArray(value)) {
    for (const member of value as readonly unknown[]) {
      const childCount = countMembers(member, maxDepth - 1);
      if (childCount === undefined) return undefined;
      members += childCount;
    }
    return members;
  }
  for (const [name, member] of Object.entries(value)) {
    if (!isMemberName(name, parent)) return undefined;
    const childCount = countMembers(member, maxDepth - 1, name);
    if (childCount === undefined) return undefined;
    members += childCount + 1;
  }
  return members;
}

/** The names of an object during the scan of a text. */
export class ObjectScope {
  readonly #parent: string | undefined;
  readonly #names = new Set<string>();
  #name: string | undefined;

  /** @param outer the object that contains it; undefined for the document and in an array. */
  constructor(outer: ObjectScope | undefined) {
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

/** Scans valid JSON and checks strings, depth and long numbers only. */
function isUnambiguousScan(text: string, maxDepth: number): boolean {
  const open: (ObjectScope | undefined)[] = [];
  const delimiter = /["[\]{}]/g;
  const mayHaveLongNumber = LONG_NUMBER.test(text);
  let textStart = 0;
  while (delimiter.test(text)) {
    const index = delimiter.lastIndex - 1;
    // Numbers are between strings; they are checked only if the document contains such digits at all.
    if (mayHaveLongNumber && !keepsNumbers(text.slice(textStart, index))) return false;
    const char = text[index];
    if (char === '{' || char === '[') {
      open.push(char === '{' ? new ObjectScope(open.at(-1)) : undefined);
      if (open.length > maxDepth) return false;
    } else if (char === '}' || char === ']') open.pop();
    else {
      const end = endOfString(text, index);
      if (!isSoundString(text, index, end, open.at(-1))) return false;
      delimiter.lastIndex = end + 1;
    }
    textStart = delimiter.lastIndex;
  }
  return !mayHaveLongNumber || keepsNumbers(text.slice(textStart));
}

/** @param members of the object that contains the string; a property name is added to them. */
function isSoundString(text: string, start: number, end: number, members: ObjectScope | undefined): boolean {
  const isName = members !== undefined && followedByColon(text, end);
  const raw = text.slice(start + 1, end);
  if (!isName && !raw.includes(HEX_ESCAPE)) return true;
  const string = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
  // Only an escape can write invalid text.
  if (string !== raw && !isValidText(string)) return false;
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

function isEscaped(text: string, index: number): boolean {
  let backslashes = 0;
  while (text[index - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

/** Each colon is searched from at most two strings, so the scan stays linear. */
export function followedByColon(text: string, end: number): boolean {
  const nextCharacter = text[end + 1] ?? '';
  if (nextCharacter.trim() !== '') return nextCharacter === ':';
  const colon = text.indexOf(':', end + 1);
  return colon !== -1 && text.slice(end + 1, colon).trim() === '';
}
