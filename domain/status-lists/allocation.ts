import { createHash } from 'node:crypto';

/** The number of rounds of FF1 (NIST SP 800-38G section 5.1); lists may have as few as a hundred entries. */
const FEISTEL_ROUNDS = 10;
const MIN_SECRET_BYTES = 32;
/** Sixteen mebibytes of 1-bit entries, the limit for inflating a list. */
const MAX_CAPACITY = 2 ** 27;

/**
 * A keyed permutation of `0 … capacity - 1`. It is cached per list: creating it takes microseconds to two milliseconds, by the square root
 * of the capacity; using it takes nanoseconds.
 */
export type Allocation = {
  readonly capacity: number;
  readonly rows: number;
  readonly columns: number;
  /** Round functions as tables; even rounds map a column to a row offset, odd ones a row to a column offset. */
  readonly rounds: readonly Uint32Array[];
};

/**
 * Derives the permutation of one list. The result for given arguments must never change: indices in use would be issued again.
 * @param secret at least 32 random bytes, one secret per list.
 */
export function prepareAllocation(secret: Uint8Array, capacity: number): Allocation {
  if (secret.length < MIN_SECRET_BYTES) throw new RangeError('The secret must have at least 32 bytes.');
  if (!Number.isSafeInteger(capacity) || capacity < 1 || capacity > MAX_CAPACITY) {
    throw new RangeError('The capacity is not allowed for a status list.');
  }
  // The rectangle is barely larger than the capacity, so that a cycle rarely needs a second step.
  const rows = Math.ceil(Math.sqrt(capacity));
  const columns = Math.ceil(capacity / rows);
  return { capacity, rows, columns, rounds: roundTables(secret, capacity, rows, columns) };
}

/** SHAKE256 keyed by prefix is a pseudo-random function, so every table entry is independent of the others. */
function roundTables(secret: Uint8Array, capacity: number, rows: number, columns: number): Uint32Array[] {
  const entries = (FEISTEL_ROUNDS / 2) * (rows + columns);
  const stream = createHash('shake256', { outputLength: entries * 4 })
    .update(`status-list-allocation/1/${capacity}/`)
    .update(secret)
    .digest();
  let offset = 0;
  return Array.from({ length: FEISTEL_ROUNDS }, (_, round) => {
    const [inputs, outputs] = round % 2 === 0 ? [columns, rows] : [rows, columns];
    const table = new Uint32Array(inputs);
    for (let input = 0; input < inputs; input++, offset += 4) table[input] = stream.readUInt32LE(offset) % outputs;
    return table;
  });
}

/** The index of the `counter`-th issued entry. @throws RangeError when the list is full. */
export function indexAt(allocation: Allocation, counter: number): number {
  if (!Number.isSafeInteger(counter) || counter < 0 || counter >= allocation.capacity) {
    throw new RangeError('The counter is outside the list.');
  }
  // Cycle walking: the cycle of a counter leads back below the capacity, and no two counters share an index.
  let index = permute(allocation, counter);
  while (index >= allocation.capacity) index = permute(allocation, index);
  return index;
}

/** One pass of an alternating Feistel network over row and column; each round is invertible. */
function permute({ rows, columns, rounds }: Allocation, value: number): number {
  let row = Math.floor(value / columns);
  let column = value % columns;
  for (let round = 0; round < FEISTEL_ROUNDS; round++) {
    const table = rounds[round];
    if (round % 2 === 0) row = (row + (table?.[column] ?? 0)) % rows;
    else column = (column + (table?.[row] ?? 0)) % columns;
  }
  return row * columns + column;
}

/** The indices of `count` consecutive counters. @throws RangeError when the list is too short. */
export function allocateFrom(allocation: Allocation, firstCounter: number, count: number): number[] {
  if (!Number.isSafeInteger(count) || count < 0 || firstCounter + count > allocation.capacity) {
    throw new RangeError('The list has not enough free entries for the range.');
  }
  return Array.from({ length: count }, (_, i) => indexAt(allocation, firstCounter + i));
}
