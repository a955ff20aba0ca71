import { LRUCache } from 'lru-cache';
import { madeOnce } from '../made-once.ts';

type Sizes<L> = { readonly maxBytes: number; readonly sizeOf: (list: L) => number };

/**
 * Lists of all tenants within one bound of memory. When there is no more room, the tenant that takes most of it gives
 * way, its least recently used list first, so that nobody pushes out what others need.
 */
export class SharedLists<L extends object> {
  readonly #sizes: Sizes<L>;
  readonly #tenants = new Map<string, LRUCache<string, L>>();
  #bytes = 0;

  constructor(sizes: Sizes<L>) {
    this.#sizes = sizes;
  }

  get(tenantId: string, key: string): L | undefined {
    return this.#tenants.get(tenantId)?.get(key);
  }

  set(tenantId: string, key: string, list: L): void {
    const { maxBytes, sizeOf } = this.#sizes;
    const begin = () => new LRUCache<string, L>({ maxSize: maxBytes, sizeCalculation: sizeOf });
    const own = madeOnce(this.#tenants, tenantId, begin);
    this.#bytes -= own.calculatedSize;
    own.set(key, list);
    this.#bytes += own.calculatedSize;
    while (this.#bytes > maxBytes) this.#giveWay();
  }

  entries(tenantId: string): readonly L[] {
    return [...(this.#tenants.get(tenantId)?.values() ?? [])];
  }

  clear(tenantId: string): void {
    this.#bytes -= this.#tenants.get(tenantId)?.calculatedSize ?? 0;
    this.#tenants.delete(tenantId);
  }

  clearAll(): void {
    this.#tenants.clear();
    this.#bytes = 0;
  }

  #giveWay(): void {
    let largest: [string, LRUCache<string, L>] | undefined;
    for (const entry of this.#tenants) {
      if (largest === undefined || entry[1].calculatedSize > largest[1].calculatedSize) largest = entry;
    }
    if (largest === undefined) return;
    const [tenantId, lists] = largest;
    const before = lists.calculatedSize;
    lists.pop();
    this.#bytes -= before - lists.calculatedSize;
    if (lists.size === 0) this.#tenants.delete(tenantId);
  }
}
