/**
 * Documents are stored as JSON; a `Date` becomes an object with one reserved property. Claims may have any name: a name that begins with
 * the control character is escaped when it is written.
 */
const MARK = '\u0001';
const DATE = `${MARK}date`;
/** The marker as JSON writes it. */
const WRITTEN_MARK = '\\u0001';

/** @throws Error for an invalid date, which could not be read again. */
export function encodeDocument(document: unknown): string {
  let isMarked = false;
  const text = JSON.stringify(document, function (this: object, key: string, value: unknown) {
    isMarked ||= key.startsWith(MARK) && !(this instanceof StoredDate);
    return withDate(this, key, value);
  });
  if (!isMarked) return text;
  return JSON.stringify(document, function (this: object, key: string, value: unknown) {
    return renamed(withDate(this, key, value), MARK, (name) => `${MARK}${name}`);
  });
}

export function decodeDocument<T>(text: string): T {
  const isMarked = text.includes(`"${WRITTEN_MARK}${WRITTEN_MARK}`);
  return revived(JSON.parse(text), isMarked) as T;
}

/** Revives in place, in a tenth of the time that a reviver of `JSON.parse` takes. */
function revived(value: unknown, isMarked: boolean): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const properties = value as Record<string, unknown>;
  const milliseconds = properties[DATE];
  // Null was written for the end of a certificate that was no valid date. Nothing is valid until then, so it has ended.
  if (milliseconds === null) return new Date(0);
  if (typeof milliseconds === 'number') return new Date(milliseconds);
  for (const name in properties) {
    const property = properties[name];
    if (typeof property === 'object' && property !== null) properties[name] = revived(property, isMarked);
  }
  return isMarked ? renamed(value, `${MARK}${MARK}`, (name) => name.slice(MARK.length)) : value;
}

/** The only object whose property of that name is not a claim. */
class StoredDate {
  readonly [DATE]: number;
  constructor(milliseconds: number) {
    this[DATE] = milliseconds;
  }
}

function withDate(holder: object, key: string, value: unknown): unknown {
  const original = (holder as Record<string, unknown>)[key];
  if (!(original instanceof Date)) return value;
  if (Number.isNaN(original.getTime())) throw new Error(`"${key}" is not a valid time and cannot be stored.`);
  return new StoredDate(original.getTime());
}

/** @returns `value` with its properties of this prefix renamed. */
function renamed(value: unknown, beginning: string, rename: (name: string) => string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (value instanceof StoredDate || value instanceof Date) return value;
  const entries = Object.entries(value);
  if (!entries.some(([name]) => name.startsWith(beginning))) return value;
  return Object.fromEntries(entries.map(([name, property]) => [name.startsWith(beginning) ? rename(name) : name, property]));
}
