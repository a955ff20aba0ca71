type Limits = { readonly all: number; readonly ofParty: number };
type Evict = (reason: Error) => void;
type Holder = {
  /** undefined for a holder that only the limit of all bounds. */
  readonly party: string | undefined;
  bytes: number;
  isReleased: boolean;
  evict: Evict | undefined;
};

/** The bytes that one call holds. */
export type MemoryShare = {
  /** @throws the full error if the party, or all together, would hold too much; then nothing is added. */
  add(bytes: number): void;
  release(): void;
};

/**
 * Counts bytes that are held in memory, by party. What happens when all parties together hold too much is the choice of
 * the caller: a share with `evict` is opened in a budget whose largest share gives way; without it, `add` throws.
 */
export class MemoryBudget {
  readonly #limits: Limits;
  readonly #createFullError: () => Error;
  readonly #bytesByParty = new Map<string | undefined, number>();
  readonly #evictable = new Set<Holder>();
  #bytes = 0;

  constructor(limits: Limits, createFullError: () => Error) {
    this.#limits = limits;
    this.#createFullError = createFullError;
  }

  /** @param evict ends the call that holds the share, whose bytes no longer count then. */
  open(party: string | undefined, evict?: Evict): MemoryShare {
    const holder: Holder = { party, bytes: 0, isReleased: false, evict };
    if (evict !== undefined) this.#evictable.add(holder);
    return { add: (bytes) => this.#add(holder, bytes), release: () => this.#release(holder) };
  }

  #add(holder: Holder, bytes: number): void {
    if (holder.isReleased) return;
    const isWithinParty = holder.party === undefined || this.#heldBy(holder.party) + bytes <= this.#limits.ofParty;
    if (!isWithinParty) throw this.#createFullError();
    this.#count(holder, bytes);
    while (this.#bytes > this.#limits.all) {
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
    const ofParty = this.#heldBy(holder.party) + bytes;
    if (ofParty > 0) this.#bytesByParty.set(holder.party, ofParty);
    else this.#bytesByParty.delete(holder.party);
    holder.bytes += bytes;
    this.#bytes += bytes;
  }

  #heldBy(party: string | undefined): number {
    return this.#bytesByParty.get(party) ?? 0;
  }

  /** @returns the largest holder of the party that holds the most, among those that can be evicted. */
  #largest(): Holder | undefined {
    let largest: Holder | undefined;
    for (const holder of this.#evictable) {
      const difference = this.#heldBy(holder.party) - this.#heldBy(largest?.party);
      if (largest === undefined || difference > 0 || (difference === 0 && holder.bytes > largest.bytes)) largest = holder;
    }
    return largest;
  }
}
