/**
 * Options of an `LRUCache` for at most so many entries that takes memory as it fills. With `max` it would take what a
 * full one needs at once, which for a cache of thousands is most of an idle process' share.
 */
export function bounded(entries: number) {
  return { maxSize: entries, sizeCalculation: () => 1 };
}
