import type { LRUCache } from 'lru-cache';
import { sizeOf } from './size-of.ts';

const MEBIBYTE = 1024 * 1024;
/** What the bounds in the source come to together for caches of values; each cache has its part of `CACHE_MEMORY`. */
const ALL_BYTES = 472 * MEBIBYTE;

let memoryBytes = ALL_BYTES;

/** Once, before any cache is made. @param mebibytes for all caches of values together. */
export function setCacheMemory(mebibytes: number): void {
  memoryBytes = mebibytes * MEBIBYTE;
}

/** @returns the bytes that a cache has of `CACHE_MEMORY`, as its bound in the source is to all bounds. */
export function partOfMemory(bytes: number): number {
  return Math.ceil((bytes * memoryBytes) / ALL_BYTES);
}

type Measured = { readonly calculatedSize: number };

/** Caches by their names, for whoever measures; dry runs have their own beside those of the service. */
const watched = new Map<string, WeakRef<Measured>[]>();

/** Gives a cache a name under which its bytes are told. */
export function watchedCache<C extends Measured>(name: string, cache: C): C {
  const others = (watched.get(name) ?? []).filter((one) => one.deref() !== undefined);
  watched.set(name, [...others, new WeakRef(cache)]);
  return cache;
}

/** @returns bytes by the name of the cache. */
export function cacheBytes(): Readonly<Record<string, number>> {
  const bytes = [...watched].map(([name, caches]) => [name, caches.reduce((sum, cache) => sum + (cache.deref()?.calculatedSize ?? 0), 0)]);
  return Object.fromEntries(bytes);
}

/** What an entry costs besides its key and its value: its places in the tables of the cache. */
const ENTRY_BYTES = 200;

/**
 * Options of an `LRUCache` for its part of so many bytes, roughly, of keys and values; it takes memory as it fills. With `max` it
 * would take what a full one needs at once, and the one who writes large entries would decide how much that is.
 * @param valueBytes what a value costs, where that is known without counting.
 */
export function boundedBytes<Value extends object | string | number | boolean>(
  maxBytes: number,
  valueBytes: (value: Value) => number = sizeOf,
): { maxSize: number; sizeCalculation: LRUCache.SizeCalculator<string, Value> } {
  return {
    maxSize: partOfMemory(maxBytes),
    sizeCalculation: (value, key) => Math.ceil(ENTRY_BYTES + 2 * key.length + valueBytes(value)),
  };
}
