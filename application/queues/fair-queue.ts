export type QueueLimits = {
  /** Slots that are held at the same time. */
  readonly slots: number;
  /** Slots that one party holds at the same time, at least 1; unlimited by default. */
  readonly slotsOfParty?: number;
  /** Calls of one party that wait; unlimited by default. */
  readonly waitingOfParty?: number;
  /** Calls of all parties that wait; unlimited by default. */
  readonly waiting?: number;
};

/** The right of one call to run; `since` is the time at which the call got it. */
export type Slot = { readonly party: { readonly name: string }; readonly since: number };

/**
 * A waiter drops its callback when its waiting ends. A set keeps removed elements in its old tables until the old
 * generation is collected, and with them everything that they refer to.
 */
type Waiter = { admit: ((slot: Slot) => void) | undefined };

type Party = {
  readonly name: string;
  held: number;
  /** The number of its last admission; for a new party, as if it had been admitted some time before it came. */
  lastAdmission: number;
  /** Calls that gave their slot back to work elsewhere and need one again. */
  returning: Set<Waiter>;
  waiting: Set<Waiter>;
};

/**
 * A new party counts as last admitted so many admissions ago. It goes before a party of the same size that was admitted
 * since, but parties that never stop coming anew, each under another name, do not keep that one out for ever.
 */
const HEAD_START = 1_000;

/** Stands for the waiters of a party that never had any, so that a party without waiters costs no set. */
const NO_WAITERS: Set<Waiter> = new Set();

/**
 * Shares slots out between parties. A free slot goes to the party that holds the fewest; among equals, to the one that
 * was admitted least recently. The number of waiting calls of a party makes no difference, so a party that comes late
 * does not wait behind all calls of the party that sent most. Calls of one party are admitted in their order.
 */
export class FairQueue {
  readonly #waitingOfParty: number;
  readonly #waitingOfAll: number;
  readonly #createFullError: () => Error;
  readonly #now: () => number;
  #slots: number;
  #slotsOfParty: number;
  /** The oldest slot is first. */
  readonly #held = new Set<Slot>();
  readonly #parties = new Map<string, Party>();
  #waitingCount = 0;
  #admissions = 0;

  /** @param createFullError creates the error for a call that finds too many waiting. */
  constructor(limits: QueueLimits, createFullError: () => Error, now: () => number = () => performance.now()) {
    this.#slots = limits.slots;
    this.#slotsOfParty = limits.slotsOfParty ?? Number.POSITIVE_INFINITY;
    this.#waitingOfParty = limits.waitingOfParty ?? Number.POSITIVE_INFINITY;
    this.#waitingOfAll = limits.waiting ?? Number.POSITIVE_INFINITY;
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

  /** The held slots, the oldest first. */
  get heldSlots(): Iterable<Slot> {
    return this.#held;
  }

  heldBy(name: string): number {
    return this.#parties.get(name)?.held ?? 0;
  }

  /** The party that holds the most slots. */
  get largestParty(): string | undefined {
    let largest: Party | undefined;
    for (const party of this.#parties.values()) {
      if (party.held > (largest?.held ?? 0)) largest = party;
    }
    return largest?.name;
  }

  /** @returns a slot; undefined if the call has to `wait`. */
  enter(name: string): Slot | undefined {
    if (this.#held.size >= this.#slots) return undefined;
    const party = this.#parties.get(name);
    if (party === undefined) return this.#occupy(this.#addParty(name));
    if (party.held >= this.#slotsOfParty || countWaiters(party) > 0) return undefined;
    return this.#occupy(party);
  }

  /** Rejects with the full error if too many calls wait, and with the reason of `signal` if that aborts first. */
  wait(name: string, signal?: AbortSignal): Promise<Slot> {
    const ofParty = this.#parties.get(name)?.waiting.size ?? 0;
    if (ofParty < this.#waitingOfParty && this.#waitingCount < this.#waitingOfAll) {
      return this.#enqueue(this.#partyOf(name), 'waiting', signal);
    }
    return Promise.reject(this.#createFullError());
  }

  /**
   * A slot for a call that gave its slot back to work elsewhere: its work is half done, so it goes before all of its party and is never
   * refused. Where only its own party waits it does not wait, even if all slots are held, because they may be waiting for its result.
   */
  enterAgain(name: string): Slot | Promise<Slot> {
    const party = this.#partyOf(name);
    const isCrowded = this.#held.size >= 2 * this.#slots;
    if (!isCrowded && countWaiters(party) === this.#waitingCount) return this.#occupy(party);
    const admission = this.#enqueue(party, 'returning');
    this.#fill();
    return admission;
  }

  /** Gives slots back. A slot that was given back before is ignored. */
  leave(...slots: readonly Slot[]): void {
    for (const slot of slots) this.#release(slot);
    this.#fill();
  }

  /** Hands a slot to the first waiting call of a party, even if another party would be next. */
  transfer(slot: Slot, name: string): void {
    const party = this.#parties.get(name);
    if (party === undefined || party.waiting.size === 0 || !this.#held.has(slot)) return;
    this.#release(slot);
    this.#admitFirst(party);
    this.#forgetIdleParties();
  }

  /** Runs `work` in a slot of the party. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const slot = this.enter(name) ?? (await this.wait(name));
    try {
      return await work();
    } finally {
      this.leave(slot);
    }
  }

  /** Changes the number of slots. Calls that hold more than the new number keep their slots. */
  resize(slots: number, slotsOfParty: number): void {
    this.#slots = slots;
    this.#slotsOfParty = slotsOfParty;
    this.#fill();
  }

  #partyOf(name: string): Party {
    return this.#parties.get(name) ?? this.#addParty(name);
  }

  #addParty(name: string): Party {
    const lastAdmission = this.#admissions - HEAD_START;
    const party: Party = { name, held: 0, lastAdmission, returning: NO_WAITERS, waiting: NO_WAITERS };
    this.#parties.set(name, party);
    return party;
  }

  #occupy(party: Party): Slot {
    const slot = { party, since: this.#now() };
    this.#held.add(slot);
    party.held++;
    party.lastAdmission = ++this.#admissions;
    return slot;
  }

  #release(slot: Slot): void {
    if (!this.#held.delete(slot)) return;
    const party = slot.party as Party;
    party.held--;
    if (this.#waitingCount === 0 && party.held === 0) this.#parties.delete(party.name);
  }

  #enqueue(party: Party, kind: 'returning' | 'waiting', signal?: AbortSignal): Promise<Slot> {
    if (party[kind] === NO_WAITERS) party[kind] = new Set();
    const waiters = party[kind];
    return new Promise((resolve, reject) => {
      const abort = () => {
        waiter.admit = undefined;
        waiters.delete(waiter);
        this.#waitingCount--;
        this.#forgetIdleParties();
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
      const next = this.#nextParty();
      if (next === undefined) break;
      this.#admitFirst(next);
    }
    this.#forgetIdleParties();
  }

  #nextParty(): Party | undefined {
    let next: Party | undefined;
    for (const party of this.#parties.values()) {
      const isEligible = party.returning.size > 0 || (party.waiting.size > 0 && party.held < this.#slotsOfParty);
      if (isEligible && (next === undefined || goesBefore(party, next))) next = party;
    }
    return next;
  }

  #admitFirst(party: Party): void {
    const waiters = party.returning.size > 0 ? party.returning : party.waiting;
    const [waiter] = waiters;
    if (waiter === undefined) return;
    waiters.delete(waiter);
    this.#waitingCount--;
    const { admit } = waiter;
    waiter.admit = undefined;
    admit?.(this.#occupy(party));
  }

  /** While calls wait for a free slot, the queue remembers when each of the last parties was admitted. */
  #forgetIdleParties(): void {
    const isFull = this.#waitingCount > 0 && this.#held.size >= this.#slots;
    if (isFull && this.#parties.size <= HEAD_START) return;
    for (const party of this.#parties.values()) {
      if (party.held + countWaiters(party) === 0) this.#parties.delete(party.name);
    }
  }
}

function countWaiters({ returning, waiting }: Party): number {
  return returning.size + waiting.size;
}

function goesBefore(one: Party, other: Party): boolean {
  return one.held === other.held ? one.lastAdmission < other.lastAdmission : one.held < other.held;
}
