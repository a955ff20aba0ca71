/**
 * Bytes that a value of plain data takes in memory, roughly: caches are bounded by it. What is compiled (functions, keys,
 * regular expressions) counts as a flat amount.
 */
export function sizeOf(value: unknown): number {
  return count(value, new Set());
}

function count(value: unknown, seen: Set<object>): number {
  if (typeof value === 'string') return 24 + value.length;
  if (typeof value === 'function') return 2_000;
  if (typeof value !== 'object' || value === null || seen.has(value)) return 8;
  seen.add(value);
  if (ArrayBuffer.isView(value)) return 100 + value.byteLength;
  let bytes = 48;
  if (value instanceof Map || value instanceof Set) {
    for (const entry of value) bytes += count(entry, seen);
    return bytes;
  }
  const members = Array.isArray(value) ? value : Object.values(value);
  for (const member of members) bytes += 8 + count(member, seen);
  return members.length === 0 ? 500 : bytes;
}
