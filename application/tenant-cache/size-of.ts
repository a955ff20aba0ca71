/**
 * Estimates the memory that a plain value takes, in bytes, for the limits of caches. Compiled values (functions, keys, regular
 * expressions) count as a flat amount.
 */
export function sizeOf(value: unknown): number {
  return countBytes(value, new Set());
}

/** Like `sizeOf` and six times faster, for values without shared or circular references, such as documents. */
export function sizeOfDocument(value: unknown): number {
  return countBytes(value, undefined);
}

function countBytes(value: unknown, visited: Set<object> | undefined): number {
  if (typeof value === 'string') return 24 + value.length;
  if (typeof value === 'function') return sizeOfCompiled(value);
  if (typeof value !== 'object' || value === null || visited?.has(value)) return 8;
  visited?.add(value);
  // Plain data first: it is the most frequent case, and each further check costs as much as counting a property.
  const kind: object | null = Object.getPrototypeOf(value);
  if (kind === Array.prototype) return countEntries(value as readonly unknown[], visited);
  if (kind === Object.prototype || kind === null) return countProperties(value, visited);
  if (ArrayBuffer.isView(value)) return 100 + value.byteLength;
  if (value instanceof Map || value instanceof Set) return countEntries(value, visited);
  return countProperties(value, visited);
}

function countEntries(entries: Iterable<unknown>, visited: Set<object> | undefined): number {
  let bytes = 48;
  for (const entry of entries) bytes += 8 + countBytes(entry, visited);
  return bytes;
}

function countProperties(value: object, visited: Set<object> | undefined): number {
  let bytes = 48;
  let isEmpty = true;
  // `for in` avoids an array of the properties, which would take as long as counting them.
  for (const name in value) {
    isEmpty = false;
    bytes += 8 + countBytes((value as Readonly<Record<string, unknown>>)[name], visited);
  }
  // An object without enumerable properties is a compiled value, such as a key.
  return isEmpty ? 500 : bytes;
}

/** Returns the size that a compiled function reports in its property `bytes`, otherwise a flat amount. */
function sizeOfCompiled(compiled: object): number {
  const { bytes } = compiled as { readonly bytes?: unknown };
  return typeof bytes === 'number' ? bytes : 2_000;
}
