import type { LRUCache } from 'lru-cache';
import { sizeOf } from './size-of.ts';

const MEBIBYTE = 1024 * 1024;
/** Sum of the bounds in the source of all value caches; each cache gets its share of `CACHE_MEMORY`. */
const TOTAL_BYTES = 472 * MEBIBYTE;

let memoryBytes = TOTAL_BYTES;

/** Must be called once, before any cache is created. @param mebibytes for all value caches together. */
export function setCacheMemory(mebibytes: number): void {
  memoryBytes = mebibytes * MEBIBYTE;
}

/** @returns the share of a cache in `CACHE_MEMORY`, in proportion to its bound in the source. */
export function shareOfCacheMemory(bytes: number): number {
  return Math.ceil((bytes * memoryBytes) / TOTAL_BYTES);
}

type SizedCache = { readonly calculatedSize: number };

/** Caches by name; dry runs register theirs beside those of the service. */
const registeredCaches = new Map<string, WeakRef<SizedCache>[]>();

/** Registers a cache under a name for the report of its size. */
export function registerCache<C extends SizedCache>(name: string, cache: C): C {
  const liveCaches = (registeredCaches.get(name) ?? []).filter((cacheRef) => cacheRef.deref() !== undefined);
  registeredCaches.set(name, [...liveCaches, new WeakRef(cache)]);
  return cache;
}

/** @returns bytes by the name of the cache. */
export function cacheBytes(): Readonly<Record<string, number>> {
  const bytes = [...registeredCaches].map(([name, caches]) => [
    name,
    caches.reduce((sum, cache) => sum + (cache.deref()?.calculatedSize ?? 0), 0),
  ]);
  return Object.fromEntries(bytes);
}

/** Cost of an entry in addition to its key and value: its slots in the tables of the cache. */
const ENTRY_BYTES = 200;

/**
 * Options of an `LRUCache` that bound the approximate size of keys and values; memory is allocated as the cache fills. The option `max`
 * would allocate the tables of a full cache at once, and an attacker with large entries would determine how many fit.
 * @param valueBytes cost of a value, if it is known without counting.
 */
export function boundedBytes<Value extends object | string | number | boolean>(
  maxBytes: number,
  valueBytes: (value: Value) => number = sizeOf,
): { maxSize: number; sizeCalculation: LRUCache.SizeCalculator<string, Value> } {
  return {
    maxSize: shareOfCacheMemory(maxBytes),
    sizeCalculation: (value, key) => Math.ceil(ENTRY_BYTES + 2 * key.length + valueBytes(value)),
  };
}
