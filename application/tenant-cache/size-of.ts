/**
 * Bytes that a value of plain data takes in memory, roughly: caches are bounded by it. What is compiled (functions, keys,
 * regular expressions) counts as a flat amount.
 */
export function sizeOf(value: unknown): number {
  return count(value, new Set());
}

/** The same for what refers to nothing twice, as documents do: in a sixth of the time. */
export function sizeOfDocument(value: unknown): number {
  return count(value, undefined);
}

function count(value: unknown, seen: Set<object> | undefined): number {
  if (typeof value === 'string') return 24 + value.length;
  if (typeof value === 'function') return sizeOfCompiled(value);
  if (typeof value !== 'object' || value === null || seen?.has(value)) return 8;
  seen?.add(value);
  // Plain data first: most of what is counted is that, and each further question takes as long as counting a member.
  const kind: object | null = Object.getPrototypeOf(value);
  if (kind === Array.prototype) return countEntries(value as readonly unknown[], seen);
  if (kind === Object.prototype || kind === null) return countMembers(value, seen);
  if (ArrayBuffer.isView(value)) return 100 + value.byteLength;
  if (value instanceof Map || value instanceof Set) return countEntries(value, seen);
  return countMembers(value, seen);
}

function countEntries(entries: Iterable<unknown>, seen: Set<object> | undefined): number {
  let bytes = 48;
  for (const entry of entries) bytes += 8 + count(entry, seen);
  return bytes;
}

function countMembers(value: object, seen: Set<object> | undefined): number {
  let bytes = 48;
  let isEmpty = true;
  // Without an array of its members, which would take as long as counting them.
  for (const name in value) {
    isEmpty = false;
    bytes += 8 + count((value as Readonly<Record<string, unknown>>)[name], seen);
  }
  return isEmpty ? 500 : bytes;
}

/** Of a function that was made of a document, where it says so. */
function sizeOfCompiled(made: object): number {
  const { bytes } = made as { readonly bytes?: unknown };
  return typeof bytes === 'number' ? bytes : 2_000;
}
