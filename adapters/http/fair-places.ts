type Limits = {
  /** Places that there are at least: more only make each other wait where the thread has no time left. */
  readonly least: number;
  /** Places that there are at most, where the thread has time and others, such as the database, have not. */
  readonly most: number;
  /** Of these no party has all to itself: whoever comes next finds one. */
  readonly keptForOthers: number;
  /** Of one party, waiting for a place. */
  readonly waitingOfOne: number;
  /** Who waited so long is refused. */
  readonly patienceMs: number;
  /** Who has a place for longer, while there is nothing to do, waits for something that is not here. */
  readonly longMs: number;
};

/** What one request has while it is worked on. */
export type Place = { readonly party: string; readonly since: number };

/** What hears how its waiting ended. */
type Newcomer = { readonly admit: (place: Place) => void; readonly refuse: () => void };

/**
 * Lets go of whom it stands for when its waiting ends. A set leaves what it held in old tables behind, which live until old
 * objects are collected, and with it every request that ever waited.
 */
export class Waiter {
  readonly party: string;
  readonly since: number;
  #newcomer: Newcomer | undefined;

  constructor(party: string, since: number, newcomer: Newcomer) {
    this.party = party;
    this.since = since;
    this.#newcomer = newcomer;
  }

  admit(place: Place): void {
    this.end()?.admit(place);
  }

  refuse(): void {
    this.end()?.refuse();
  }

  /** @returns whom it stood for; undefined when its waiting is over. */
  end(): Newcomer | undefined {
    const newcomer = this.#newcomer;
    this.#newcomer = undefined;
    return newcomer;
  }
}

type Party = {
  held: number;
  /** The number of its last admission; 0 for none since somebody began to wait. */
  lastAdmission: number;
  /** Those that had a place before, and went elsewhere. */
  readonly returning: Set<Waiter>;
  readonly waiting: Set<Waiter>;
};

/**
 * So many places, shared out between parties. A place that becomes free goes to the party that has fewest; between those
 * that have equally many, to the one that was not let in for longest. How many of a party wait makes no difference, so the
 * party that comes late does not stand behind all of the one that came most. Knows neither timers nor requests.
 */
export class FairPlaces {
  readonly #limits: Limits;
  readonly #now: () => number;
  /** The oldest first. */
  readonly #held = new Set<Place>();
  /** Those that have a place or wait; and while anybody waits, all that had a place meanwhile. */
  readonly #parties = new Map<string, Party>();
  /** Places at present. */
  #atOnce: number;
  #waitingCount = 0;
  #admissions = 0;

  constructor(limits: Limits, now: () => number) {
    this.#limits = limits;
    this.#atOnce = limits.least;
    this.#now = now;
  }

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** @returns a place; undefined when the party has to `wait`. */
  enter(name: string): Place | undefined {
    const party = this.#party(name);
    const isFree = this.#held.size < this.#atOnce && this.#isWithinShare(party);
    if (isFree && party.waiting.size + party.returning.size === 0) return this.#take(name, party);
    this.#forgetIdle(name, party);
    return undefined;
  }

  /** @returns undefined when too many of the party wait. */
  wait(name: string, newcomer: Newcomer): Waiter | undefined {
    const party = this.#party(name);
    if (party.waiting.size < this.#limits.waitingOfOne) return this.#queue(name, party.waiting, newcomer);
    return undefined;
  }

  /**
   * For the one who gave a place back to go elsewhere: its work is half done, so it goes before all of its party and is
   * never refused. Its own party does not keep it waiting where nobody else does: they may be waiting for what it brings.
   * @returns a place, or undefined: then `admit` is called with one.
   */
  enterAgain(name: string, admit: (place: Place) => void): Place | undefined {
    const party = this.#party(name);
    const isCrowded = this.#held.size >= 2 * this.#atOnce;
    if (!isCrowded && party.waiting.size + party.returning.size === this.#waitingCount) {
      return this.#take(name, party);
    }
    this.#queue(name, party.returning, { admit, refuse: nothing });
    this.#fill();
    return undefined;
  }

  /** Gives places back, which are given to those that wait. */
  leave(places: Iterable<Place>): void {
    for (const place of places) this.#release(place);
    this.#fill();
  }

  /** Ends the waiting of one who went away. */
  forget(waiter: Waiter): void {
    const party = this.#parties.get(waiter.party);
    if (party?.waiting.delete(waiter) !== true) return;
    waiter.end();
    this.#waitingCount--;
    this.#forgetAllIdle();
  }

  /**
   * To be called from time to time while somebody waits.
   * @param isIdle whether the thread had nothing to do for a good part of the time: then there are more places, and those
   *   that have had theirs for long wait for something, which others need not.
   */
  sweep(isIdle: boolean): void {
    const now = this.#now();
    const { patienceMs, longMs } = this.#limits;
    for (const { waiting } of this.#parties.values()) {
      for (const waiter of waiting) {
        if (now - waiter.since < patienceMs) break;
        waiting.delete(waiter);
        this.#waitingCount--;
        waiter.refuse();
      }
    }
    const { least, most } = this.#limits;
    this.#atOnce = isIdle ? Math.min(this.#atOnce + 1, most) : Math.max(this.#atOnce - 1, least);
    if (isIdle) {
      for (const place of this.#held) {
        if (now - place.since < longMs) break;
        this.#release(place);
      }
    }
    this.#fill();
    this.#forgetAllIdle();
  }

  #queue(name: string, queue: Set<Waiter>, newcomer: Newcomer): Waiter {
    const waiter = new Waiter(name, this.#now(), newcomer);
    queue.add(waiter);
    this.#waitingCount++;
    return waiter;
  }

  #party(name: string): Party {
    let party = this.#parties.get(name);
    if (party === undefined) {
      party = { held: 0, lastAdmission: 0, returning: new Set(), waiting: new Set() };
      this.#parties.set(name, party);
    }
    return party;
  }

  #take(name: string, party: Party): Place {
    const place = { party: name, since: this.#now() };
    this.#held.add(place);
    party.held++;
    party.lastAdmission = ++this.#admissions;
    return place;
  }

  #release(place: Place): void {
    const party = this.#parties.get(place.party);
    // One that was held for too long is free already.
    if (party === undefined || !this.#held.delete(place)) return;
    party.held--;
    this.#forgetIdle(place.party, party);
  }

  #fill(): void {
    if (this.#waitingCount === 0) return;
    while (this.#held.size < this.#atOnce && this.#admitNext());
    this.#forgetAllIdle();
  }

  /** @returns whether there was somebody. */
  #admitNext(): boolean {
    let next: Party | undefined;
    for (const party of this.#parties.values()) {
      if (this.#mayBeNext(party) && (next === undefined || goesBefore(party, next))) next = party;
    }
    if (next === undefined) return false;
    const queue = next.returning.size > 0 ? next.returning : next.waiting;
    const [waiter] = queue;
    if (waiter === undefined) return false;
    queue.delete(waiter);
    this.#waitingCount--;
    waiter.admit(this.#take(waiter.party, next));
    return true;
  }

  #mayBeNext(party: Party): boolean {
    return party.returning.size > 0 || (party.waiting.size > 0 && this.#isWithinShare(party));
  }

  #isWithinShare({ held }: Party): boolean {
    return held < this.#atOnce - this.#limits.keptForOthers;
  }

  /** While others wait, it is remembered when a party had its turn. */
  #forgetIdle(name: string, { held, returning, waiting }: Party): void {
    if (this.#waitingCount === 0 && held + returning.size + waiting.size === 0) this.#parties.delete(name);
  }

  #forgetAllIdle(): void {
    if (this.#waitingCount > 0) return;
    for (const [name, party] of this.#parties) this.#forgetIdle(name, party);
  }
}

const nothing = () => {};

function goesBefore(one: Party, other: Party): boolean {
  if (one.held !== other.held) return one.held < other.held;
  return one.lastAdmission < other.lastAdmission;
}
