/** The entry widths of Token Status List section 4.1. */
export const ENTRY_BITS = [1, 2, 4, 8] as const;
export type EntryBits = (typeof ENTRY_BITS)[number];

export type StatusEntry = { readonly index: number; readonly status: number };

export type EntryFault = 'index_out_of_range' | 'value_too_large';

export function isEntryBits(value: unknown): value is EntryBits {
  return ENTRY_BITS.some((bits) => bits === value);
}

/** The next capacity whose array has no unused bits (Token Status List section 13.4). */
export function roundCapacity(bits: EntryBits, capacity: number): number {
  const perByte = 8 / bits;
  return Math.ceil(capacity / perByte) * perByte;
}

/** The reason why a list of this shape cannot store `status` at `index`; for example, a 1-bit list has no suspension. */
export function findEntryProblem(bits: EntryBits, capacity: number, entry: StatusEntry): EntryFault | undefined {
  const { index, status } = entry;
  if (!Number.isSafeInteger(index) || index < 0 || index >= capacity) return 'index_out_of_range';
  if (!Number.isSafeInteger(status) || status < 0 || status >= 1 << bits) return 'value_too_large';
  return undefined;
}

/**
 * The byte array of a list in which only `entries` are not 0 (Token Status List section 4.1). The last entry of an index wins.
 * @throws RangeError
 */
export function packEntries(bits: EntryBits, capacity: number, entries: Iterable<StatusEntry>): Buffer {
  const bytes = Buffer.alloc(Math.ceil((capacity * bits) / 8));
  for (const entry of entries) {
    // The array may end with padding, so the capacity decides, not the length.
    const fault = findEntryProblem(bits, capacity, entry);
    if (fault !== undefined) throw new RangeError(fault);
    writeStatus(bytes, bits, entry.index, entry.status);
  }
  return bytes;
}

export function capacityOf(bytes: Uint8Array, bits: EntryBits): number {
  return bytes.length * (8 / bits);
}

/** @throws RangeError `index_out_of_range` */
export function readStatus(bytes: Uint8Array, bits: EntryBits, index: number): number {
  const fault = findEntryProblem(bits, capacityOf(bytes, bits), { index, status: 0 });
  if (fault !== undefined) throw new RangeError(fault);
  const { at: byteIndex, shift } = bitPosition(bits, index);
  return ((bytes[byteIndex] ?? 0) >> shift) & mask(bits);
}

/** Replaces an entry in place. @throws RangeError */
export function writeStatus(bytes: Uint8Array, bits: EntryBits, index: number, status: number): void {
  const fault = findEntryProblem(bits, capacityOf(bytes, bits), { index, status });
  if (fault !== undefined) throw new RangeError(fault);
  const { at: byteIndex, shift } = bitPosition(bits, index);
  bytes[byteIndex] = ((bytes[byteIndex] ?? 0) & ~(mask(bits) << shift)) | (status << shift);
}

/** Token Status List section 4.1: the first entry is in the least significant bits of its byte. */
function bitPosition(bits: EntryBits, index: number): { at: number; shift: number } {
  const perByte = 8 / bits;
  return { at: Math.floor(index / perByte), shift: (index % perByte) * bits };
}

function mask(bits: EntryBits): number {
  return (1 << bits) - 1;
}
