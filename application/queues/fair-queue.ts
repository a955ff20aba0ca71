export type QueueLimits = {
  readonly slots: number;
  /** Slots that one key holds at the same time, at least 1; unlimited by default. */
  readonly slotsPerKey?: number;
  /** Waiting calls of one key; unlimited by default. */
  readonly waitingPerKey?: number;
  /** Waiting calls of all keys; unlimited by default. */
  readonly waiting?: number;
};

/** The right of one call to run; `since` is the time at which the call got it. */
export type Slot = { readonly group: { readonly key: string }; readonly since: number };

/**
 * A waiter drops its callback when its waiting ends. A set keeps removed elements in its old tables until the old
 * generation is collected, and with them everything that they refer to.
 */
type Waiter = { admit: ((slot: Slot) => void) | undefined };

type KeyGroup = {
  readonly key: string;
  held: number;
  /** The number of its last admission; for a new key, as if it had been admitted some time ago. */
  lastAdmission: number;
  /** Calls that released their slot for work outside of this thread and need one again. */
  returning: Set<Waiter>;
  waiting: Set<Waiter>;
};

/**
 * A new key counts as last admitted so many admissions ago. It goes before a key with as many slots that was admitted since, but
 * a stream of ever new keys does not starve that one.
 */
const HEAD_START = 1_000;

/** Shared empty set of keys without waiters, which saves memory. */
const NO_WAITERS: Set<Waiter> = new Set();

/**
 * Shares slots between keys, such as tenants. A free slot goes to the key that holds the fewest; among equals, to the one that was
 * admitted least recently. The number of waiting calls of a key makes no difference, so a late key does not wait behind all calls of the
 * busiest one. Calls of one key are admitted in order.
 */
export class FairQueue {
  readonly #waitingPerKey: number;
  readonly #maxWaiting: number;
  readonly #createFullError: () => Error;
  readonly #now: () => number;
  #slots: number;
  #slotsPerKey: number;
  /** Held slots in the order of acquisition, the oldest first. */
  readonly #held = new Set<Slot>();
  readonly #groups = new Map<string, KeyGroup>();
  #waitingCount = 0;
  #admissions = 0;

  /** @param createFullError creates the error for a call that exceeds the limit of waiting calls. */
  constructor(limits: QueueLimits, createFullError: () => Error, now: () => number = () => performance.now()) {
    this.#slots = limits.slots;
    this.#slotsPerKey = limits.slotsPerKey ?? Number.POSITIVE_INFINITY;
    this.#waitingPerKey = limits.waitingPerKey ?? Number.POSITIVE_INFINITY;
    this.#maxWaiting = limits.waiting ?? Number.POSITIVE_INFINITY;
    this.#createFullError = createFullError;
    this.#now = now;
  }

  get heldCount(): number {
    return this.#held.size;
  }

  get waitingCount(): number {
    return this.#waitingCount;
  }

  get isIdle(): boolean {
    return this.#held.size + this.#waitingCount === 0;
  }

  /** The held slots, oldest first. */
  get heldSlots(): Iterable<Slot> {
    return this.#held;
  }

  heldBy(key: string): number {
    return this.#groups.get(key)?.held ?? 0;
  }

  /** The key that holds the most slots. */
  get largestKey(): string | undefined {
    let largest: KeyGroup | undefined;
    for (const group of this.#groups.values()) {
      if (group.held > (largest?.held ?? 0)) largest = group;
    }
    return largest?.key;
  }

  /** @returns a slot; undefined if the call has to `wait`. */
  enter(key: string): Slot | undefined {
    if (this.#held.size >= this.#slots) return undefined;
    const group = this.#groups.get(key);
    if (group === undefined) return this.#occupy(this.#addGroup(key));
    if (group.held >= this.#slotsPerKey || countWaiters(group) > 0) return undefined;
    return this.#occupy(group);
  }

  /** Rejects with the full error if too many calls wait, and with the reason of `signal` if that aborts first. */
  wait(key: string, signal?: AbortSignal): Promise<Slot> {
    const waitingOfKey = this.#groups.get(key)?.waiting.size ?? 0;
    if (waitingOfKey < this.#waitingPerKey && this.#waitingCount < this.#maxWaiting) {
      return this.#enqueue(this.#groupOf(key), 'waiting', signal);
    }
    return Promise.reject(this.#createFullError());
  }

  /**
   * Returns a slot to a call that released its slot for work outside of this thread: its work is half done, so it goes before all others
   * of its key and is never rejected. If only its own key has waiting calls it does not wait, even if all slots are held, as they may be
   * waiting for it.
   */
  reenter(key: string): Slot | Promise<Slot> {
    const group = this.#groupOf(key);
    const isCrowded = this.#held.size >= 2 * this.#slots;
    if (!isCrowded && countWaiters(group) === this.#waitingCount) return this.#occupy(group);
    const admission = this.#enqueue(group, 'returning');
    this.#fill();
    return admission;
  }

  /** Releases slots. A slot that was released before is ignored. */
  leave(...slots: readonly Slot[]): void {
    for (const slot of slots) this.#release(slot);
    this.#fill();
  }

  /** Passes a slot to the first waiting call of a key, even if another key would be next. */
  transfer(slot: Slot, key: string): void {
    const group = this.#groups.get(key);
    if (group === undefined || group.waiting.size === 0 || !this.#held.has(slot)) return;
    this.#release(slot);
    this.#admitFirst(group);
    this.#removeIdleGroups();
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const slot = this.enter(key) ?? (await this.wait(key));
    try {
      return await work();
    } finally {
      this.leave(slot);
    }
  }

  /** Changes the number of slots. Calls beyond the new number keep their slots. */
  resize(slots: number, slotsPerKey: number): void {
    this.#slots = slots;
    this.#slotsPerKey = slotsPerKey;
    this.#fill();
  }

  #groupOf(key: string): KeyGroup {
    return this.#groups.get(key) ?? this.#addGroup(key);
  }

  #addGroup(key: string): KeyGroup {
    const lastAdmission = this.#admissions - HEAD_START;
    const group: KeyGroup = { key, held: 0, lastAdmission, returning: NO_WAITERS, waiting: NO_WAITERS };
    this.#groups.set(key, group);
    return group;
  }

  #occupy(group: KeyGroup): Slot {
    const slot = { group, since: this.#now() };
    this.#held.add(slot);
    group.held++;
    group.lastAdmission = ++this.#admissions;
    return slot;
  }

  #release(slot: Slot): void {
    if (!this.#held.delete(slot)) return;
    const group = slot.group as KeyGroup;
    group.held--;
    if (this.#waitingCount === 0 && group.held === 0) this.#groups.delete(group.key);
  }

  #enqueue(group: KeyGroup, kind: 'returning' | 'waiting', signal?: AbortSignal): Promise<Slot> {
    if (group[kind] === NO_WAITERS) group[kind] = new Set();
    const waiters = group[kind];
    return new Promise((resolve, reject) => {
      const abort = () => {
        waiter.admit = undefined;
        waiters.delete(waiter);
        this.#waitingCount--;
        this.#removeIdleGroups();
        reject(signal?.reason);
      };
      const waiter: Waiter = {
        admit: (slot) => {
          signal?.removeEventListener('abort', abort);
          resolve(slot);
        },
      };
      waiters.add(waiter);
      this.#waitingCount++;
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  }

  #fill(): void {
    if (this.#waitingCount === 0) return;
    while (this.#held.size < this.#slots) {
      const nextGroup = this.#findNextGroup();
      if (nextGroup === undefined) break;
      this.#admitFirst(nextGroup);
    }
    this.#removeIdleGroups();
  }

  #findNextGroup(): KeyGroup | undefined {
    let nextGroup: KeyGroup | undefined;
    for (const group of this.#groups.values()) {
      const isEligible = group.returning.size > 0 || (group.waiting.size > 0 && group.held < this.#slotsPerKey);
      if (isEligible && (nextGroup === undefined || goesBefore(group, nextGroup))) nextGroup = group;
    }
    return nextGroup;
  }

  #admitFirst(group: KeyGroup): void {
    const waiters = group.returning.size > 0 ? group.returning : group.waiting;
    const [waiter] = waiters;
    if (waiter === undefined) return;
    waiters.delete(waiter);
    this.#waitingCount--;
    const { admit } = waiter;
    waiter.admit = undefined;
    admit?.(this.#occupy(group));
  }

  /** While calls wait for a free slot, the queue keeps the last admissions of recently active keys. */
  #removeIdleGroups(): void {
    const isFull = this.#waitingCount > 0 && this.#held.size >= this.#slots;
    if (isFull && this.#groups.size <= HEAD_START) return;
    for (const group of this.#groups.values()) {
      if (group.held + countWaiters(group) === 0) this.#groups.delete(group.key);
    }
  }
}

function countWaiters({ returning, waiting }: KeyGroup): number {
  return returning.size + waiting.size;
}

function goesBefore(group: KeyGroup, otherGroup: KeyGroup): boolean {
  return group.held === otherGroup.held ? group.lastAdmission < otherGroup.lastAdmission : group.held < otherGroup.held;
}
