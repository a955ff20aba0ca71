import { isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { isJsonObject, isMemberName, isText, type Json, type JsonObject, parseJson } from '../../domain/shared/json.ts';
import { describeJsonProblem } from '../../domain/shared/json-fault.ts';
import { valueOrUndefined } from '../../domain/shared/value-or-undefined.ts';

const MAX_DEPTH = 32;
/** Values in one document; aliases of YAML multiply what a file holds. */
const MAX_VALUES = 200_000;

export type Parsed = { readonly value: JsonObject } | { readonly fault: string };

/**
 * Reads one object out of a file. Two readers see the same in it: members have one value each, and text is text.
 * @returns a fault that says where, and never quotes the file: secrets may stand in it.
 */
export function parseDocumentText(bytes: Uint8Array, format: 'json' | 'yaml'): Parsed {
  const text = decode(bytes);
  if (text === undefined) return { fault: 'is no UTF-8 text' };
  const parsed = format === 'json' ? parseJsonText(text) : parseYaml(text);
  if ('fault' in parsed) return parsed;
  if (!isJsonObject(parsed.value)) return { fault: 'has to be one object' };
  return { value: parsed.value };
}

function decode(bytes: Uint8Array): string | undefined {
  return valueOrUndefined(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes));
}

function parseJsonText(text: string): { value: Json } | { fault: string } {
  const value = parseJson(text, MAX_DEPTH);
  return value === undefined ? { fault: describeJsonProblem(text, undefined, MAX_DEPTH) } : { value };
}

function parseYaml(text: string): { value: Json } | { fault: string } {
  const lines = new LineCounter();
  const document = parseDocument(text, { version: '1.2', schema: 'core', uniqueKeys: true, prettyErrors: false, lineCounter: lines });
  const [first] = [...document.errors, ...document.warnings];
  if (first !== undefined) {
    const what = first.code.toLowerCase().replaceAll('_', ' ');
    return { fault: `is not YAML as it is taken here: ${what} (line ${lines.linePos(first.pos[0]).line})` };
  }
  let oddKey = false;
  visit(document, {
    Pair(_index, { key }) {
      oddKey ||= !isScalar(key) || !['string', 'number'].includes(typeof key.value);
    },
  });
  if (oddKey) return { fault: 'has a member whose name is neither text nor a number' };
  try {
    const value: unknown = document.toJS();
    return isJson(value) ? { value } : { fault: 'has a value that JSON does not have, or too many; integers go up to 2^53 - 1' };
  } catch {
    return { fault: 'has aliases that multiply too much' };
  }
}

/** What YAML has beyond JSON is no value here; nor is what `parseJson` refuses. */
function isJson(value: unknown): value is Json {
  let left = MAX_VALUES;
  const walk = (entry: unknown, depth: number, parent?: string): boolean => {
    if (--left < 0 || depth > MAX_DEPTH) return false;
    if (typeof entry === 'string') return isText(entry);
    if (typeof entry === 'number') return isKept(entry);
    if (typeof entry === 'boolean' || entry === null) return true;
    if (Array.isArray(entry)) return entry.every((item) => walk(item, depth + 1));
    if (typeof entry !== 'object' || Object.getPrototypeOf(entry) !== Object.prototype) return false;
    return Object.entries(entry).every(([name, member]) => isText(name) && isMemberName(name, parent) && walk(member, depth + 1, name));
  };
  return walk(value, 0);
}

/** 2^53 and 2^53 + 1 are read alike, so neither is taken. */
function isKept(number: number): boolean {
  return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number));
}
