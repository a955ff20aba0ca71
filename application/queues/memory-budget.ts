type Limits = { readonly total: number; readonly perKey: number };
type Evict = (reason: Error) => void;
type Holder = {
  /** undefined for a holder that is only subject to the total limit. */
  readonly key: string | undefined;
  bytes: number;
  isReleased: boolean;
  evict: Evict | undefined;
};

export type MemoryShare = {
  /** @throws the full error if the limit of the key or the total limit would be exceeded; then nothing is added. */
  add(bytes: number): void;
  release(): void;
};

/**
 * Limits the bytes that calls hold in memory, per key and in total. When the total limit is exceeded, the largest share with `evict` is
 * evicted; if there is none, `add` throws.
 */
export class MemoryBudget {
  readonly #limits: Limits;
  readonly #createFullError: () => Error;
  readonly #bytesByKey = new Map<string | undefined, number>();
  readonly #evictable = new Set<Holder>();
  #bytes = 0;

  constructor(limits: Limits, createFullError: () => Error) {
    this.#limits = limits;
    this.#createFullError = createFullError;
  }

  /** @param evict ends the call that holds the share, whose bytes are released then. */
  open(key: string | undefined, evict?: Evict): MemoryShare {
    const holder: Holder = { key, bytes: 0, isReleased: false, evict };
    if (evict !== undefined) this.#evictable.add(holder);
    return { add: (bytes) => this.#add(holder, bytes), release: () => this.#release(holder) };
  }

  #add(holder: Holder, bytes: number): void {
    if (holder.isReleased) return;
    const isWithinKeyLimit = holder.key === undefined || this.#heldBy(holder.key) + bytes <= this.#limits.perKey;
    if (!isWithinKeyLimit) throw this.#createFullError();
    this.#count(holder, bytes);
    while (this.#bytes > this.#limits.total) {
      const largest = this.#largest();
      if (largest === undefined) {
        this.#count(holder, -bytes);
        throw this.#createFullError();
      }
      const { evict } = largest;
      this.#release(largest);
      evict?.(this.#createFullError());
    }
  }

  #release(holder: Holder): void {
    this.#count(holder, -holder.bytes);
    holder.isReleased = true;
    holder.evict = undefined;
    this.#evictable.delete(holder);
  }

  #count(holder: Holder, bytes: number): void {
    const bytesOfKey = this.#heldBy(holder.key) + bytes;
    if (bytesOfKey > 0) this.#bytesByKey.set(holder.key, bytesOfKey);
    else this.#bytesByKey.delete(holder.key);
    holder.bytes += bytes;
    this.#bytes += bytes;
  }

  #heldBy(key: string | undefined): number {
    return this.#bytesByKey.get(key) ?? 0;
  }

  /** @returns the largest holder of the key that holds the most, among those that can be evicted. */
  #largest(): Holder | undefined {
    let largest: Holder | undefined;
    for (const holder of this.#evictable) {
      const difference = this.#heldBy(holder.key) - this.#heldBy(largest?.key);
      if (largest === undefined || difference > 0 || (difference === 0 && holder.bytes > largest.bytes)) largest = holder;
    }
    return largest;
  }
}
