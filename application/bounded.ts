import type { LRUCache } from 'lru-cache';
import { sizeOf } from './size-of.ts';

/** What an entry costs besides its key and its value: its places in the tables of the cache. */
const ENTRY_BYTES = 200;

/**
 * Options of an `LRUCache` for so many bytes, roughly, of keys and values; it takes memory as it fills. With `max` it
 * would take what a full one needs at once, and the one who writes large entries would decide how much that is.
 * @param valueBytes what a value costs, where that is known without counting.
 */
export function boundedBytes<Value extends object | string | number | boolean>(
  maxBytes: number,
  valueBytes: (value: Value) => number = sizeOf,
): { maxSize: number; sizeCalculation: LRUCache.SizeCalculator<string, Value> } {
  return {
    maxSize: maxBytes,
    sizeCalculation: (value, key) => Math.ceil(ENTRY_BYTES + 2 * key.length + valueBytes(value)),
  };
}
