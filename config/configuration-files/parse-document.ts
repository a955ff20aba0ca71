import { isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { isJsonObject, isMemberName, isText, type Json, type JsonObject, parseJson } from '../../domain/shared/json.ts';
import { describeJsonProblem } from '../../domain/shared/json-fault.ts';
import { valueOrUndefined } from '../../domain/shared/value-or-undefined.ts';

const MAX_DEPTH = 32;
/** Limit of values in one document, since aliases of YAML can multiply the content of a file. */
const MAX_VALUES = 200_000;

export type Parsed = { readonly value: JsonObject } | { readonly fault: string };

/**
 * Parses one object. The result is unambiguous: properties are unique, and text is valid Unicode.
 * @returns a fault with its location; the file is never quoted, since it may contain secrets.
 */
export function parseDocumentText(bytes: Uint8Array, format: 'json' | 'yaml'): Parsed {
  const text = decode(bytes);
  if (text === undefined) return { fault: 'is not UTF-8 text' };
  const parsed = format === 'json' ? parseJsonText(text) : parseYaml(text);
  if ('fault' in parsed) return parsed;
  if (!isJsonObject(parsed.value)) return { fault: 'must be one object' };
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
  const [firstProblem] = [...document.errors, ...document.warnings];
  if (firstProblem !== undefined) {
    const problem = firstProblem.code.toLowerCase().replaceAll('_', ' ');
    return { fault: `is not supported YAML: ${problem} (line ${lines.linePos(firstProblem.pos[0]).line})` };
  }
  let oddKey = false;
  visit(document, {
    Pair(_index, { key }) {
      oddKey ||= !isScalar(key) || !['string', 'number'].includes(typeof key.value);
    },
  });
  if (oddKey) return { fault: 'has a property name that is neither a string nor a number' };
  try {
    const value: unknown = document.toJS();
    return isJson(value) ? { value } : { fault: 'has a value without a JSON equivalent, or too many values; integers go up to 2^53 - 1' };
  } catch {
    return { fault: 'has aliases that expand too much' };
  }
}

/** Rejects values that JSON does not have, or that `parseJson` rejects. */
function isJson(value: unknown): value is Json {
  let remainingValues = MAX_VALUES;
  const walk = (entry: unknown, depth: number, parent?: string): boolean => {
    if (--remainingValues < 0 || depth > MAX_DEPTH) return false;
    if (typeof entry === 'string') return isText(entry);
    if (typeof entry === 'number') return isExact(entry);
    if (typeof entry === 'boolean' || entry === null) return true;
    if (Array.isArray(entry)) return entry.every((item) => walk(item, depth + 1));
    if (typeof entry !== 'object' || Object.getPrototypeOf(entry) !== Object.prototype) return false;
    return Object.entries(entry).every(([name, member]) => isText(name) && isMemberName(name, parent) && walk(member, depth + 1, name));
  };
  return walk(value, 0);
}

/** 2^53 and 2^53 + 1 have the same representation, so larger integers are rejected. */
function isExact(number: number): boolean {
  return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number));
}
