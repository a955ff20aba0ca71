import { RemoteError } from '../../application/ports/remote.ts';

type Limits = {
  /** Inside at once. */
  readonly atOnce: number;
  /** The same of one party. */
  readonly ofOne: number;
  /** Of one party, waiting for a place. */
  readonly waitingOfOne: number;
  /** Of all together. */
  readonly waiting: number;
};

/** Something that takes a place: `call` ends it when it has to give way, and ends its waiting. */
type Waiter = { readonly call: AbortController; readonly admit: () => void };

/** Who waited so long takes a place; where calls are quick, one became free before. */
const PATIENCE_MS = 250;

/**
 * Lets so many in at once, and shares the places out between parties: the one who has fewest inside is next. Who waits for
 * a while where another party has more by two takes the place of that party's oldest, so that nobody keeps others out by
 * being slow.
 */
export class FairGate {
  readonly #limits: Limits;
  /** The oldest first. */
  readonly #inside = new Map<string, Set<AbortController>>();
  readonly #waiting = new Map<string, Set<Waiter>>();
  #insideCount = 0;
  #waitingCount = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get inside(): number {
    return this.#insideCount;
  }

  get isIdle(): boolean {
    return this.#insideCount + this.#waitingCount === 0;
  }

  /**
   * Comes back with a place, and what gives it back.
   * @throws RemoteError `busy` when too many wait; the reason of `call` when that ends first.
   */
  async enter(party: string, call: AbortController): Promise<() => void> {
    call.signal.throwIfAborted();
    if (!this.#hasPlaceFor(party)) await this.#wait(party, call);
    else this.#admit(party, call);
    return () => this.#leave(party, call);
  }

  #hasPlaceFor(party: string): boolean {
    const { atOnce, ofOne } = this.#limits;
    const own = this.#inside.get(party)?.size ?? 0;
    if (own >= ofOne || (this.#waiting.get(party)?.size ?? 0) > 0) return false;
    return this.#insideCount < atOnce;
  }

  /** @returns whether there is a place now, if need be of somebody of a party that has more by two. */
  #makeRoom(party: string): boolean {
    const own = this.#inside.get(party)?.size ?? 0;
    if (own >= this.#limits.ofOne) return false;
    if (this.#insideCount < this.#limits.atOnce) return true;
    let largest: Set<AbortController> | undefined;
    let most = own + 1;
    let from = '';
    for (const [other, calls] of this.#inside) {
      if (calls.size <= most) continue;
      largest = calls;
      most = calls.size;
      from = other;
    }
    const [oldest] = largest ?? [];
    if (oldest === undefined) return false;
    this.#remove(from, oldest);
    oldest.abort(new RemoteError('busy', 'Too many calls are under way; this one took longest.'));
    return true;
  }

  #admit(party: string, call: AbortController): void {
    const inside = this.#inside.get(party) ?? new Set();
    this.#inside.set(party, inside.add(call));
    this.#insideCount++;
  }

  #leave(party: string, call: AbortController): void {
    if (this.#remove(party, call)) this.#next();
  }

  #remove(party: string, call: AbortController): boolean {
    const inside = this.#inside.get(party);
    if (inside?.delete(call) !== true) return false;
    if (inside.size === 0) this.#inside.delete(party);
    this.#insideCount--;
    return true;
  }

  #wait(party: string, call: AbortController): Promise<void> {
    const { waiting, waitingOfOne } = this.#limits;
    const own = this.#waiting.get(party) ?? new Set<Waiter>();
    if (own.size >= waitingOfOne || this.#waitingCount >= waiting) {
      throw new RemoteError('busy', 'Too many calls are waiting.');
    }
    return new Promise((resolve, reject) => {
      const patience = setInterval(() => {
        if (this.#makeRoom(party)) waiter.admit();
      }, PATIENCE_MS);
      const end = () => {
        clearInterval(patience);
        this.#forget(party, waiter);
        reject(call.signal.reason);
      };
      const waiter = {
        call,
        admit: () => {
          clearInterval(patience);
          call.signal.removeEventListener('abort', end);
          this.#forget(party, waiter);
          this.#admit(party, call);
          resolve();
        },
      };
      call.signal.addEventListener('abort', end, { once: true });
      this.#waiting.set(party, own.add(waiter));
      this.#waitingCount++;
    });
  }

  #forget(party: string, waiter: Waiter): void {
    const own = this.#waiting.get(party);
    if (own?.delete(waiter) !== true) return;
    if (own.size === 0) this.#waiting.delete(party);
    this.#waitingCount--;
  }

  /** A place became free. */
  #next(): void {
    if (this.#insideCount >= this.#limits.atOnce) return;
    let chosen: Waiter | undefined;
    let fewest = this.#limits.ofOne;
    for (const [party, waiters] of this.#waiting) {
      const own = this.#inside.get(party)?.size ?? 0;
      if (own >= fewest) continue;
      fewest = own;
      [chosen] = waiters;
    }
    chosen?.admit();
  }
}

/** Fails with the reason of the signal once that is given; never comes back otherwise. */
export function endOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
