import { RemoteError } from '../../application/ports/remote.ts';
import { FairQueue, type QueueLimits, type Slot } from '../../application/queues/fair-queue.ts';

/** After this time a waiting call may take the slot of a larger party. Where calls are quick, a slot is free before. */
const PATIENCE_MS = 250;

/**
 * A fair queue of outgoing calls in which slow calls keep no other party out: a call that waits for a while takes the
 * slot of the oldest call of the largest party, if that holds at least two slots more than the party of the call.
 */
export class CallQueue {
  readonly #queue: FairQueue;
  readonly #slotsOfParty: number;
  /** The oldest call is first. */
  readonly #calls = new Map<Slot, AbortController>();

  constructor(limits: Required<QueueLimits>) {
    this.#queue = new FairQueue(limits, () => new RemoteError('busy', 'Too many calls are waiting.'));
    this.#slotsOfParty = limits.slotsOfParty;
  }

  get heldCount(): number {
    return this.#queue.heldCount;
  }

  get isIdle(): boolean {
    return this.#queue.isIdle;
  }

  /**
   * Waits for a slot.
   * @param call is aborted when the call loses its slot; aborting it ends the waiting.
   * @returns the function that gives the slot back.
   * @throws RemoteError `busy` when too many calls wait; the reason of `call` when that is aborted first.
   */
  async enter(party: string, call: AbortController): Promise<() => void> {
    call.signal.throwIfAborted();
    const slot = this.#queue.enter(party) ?? (await this.#wait(party, call.signal));
    this.#calls.set(slot, call);
    return () => {
      this.#calls.delete(slot);
      this.#queue.leave(slot);
    };
  }

  async #wait(party: string, signal: AbortSignal): Promise<Slot> {
    const waiting = this.#queue.wait(party, signal);
    const patience = setInterval(() => this.#preemptFor(party), PATIENCE_MS);
    try {
      return await waiting;
    } finally {
      clearInterval(patience);
    }
  }

  #preemptFor(party: string): void {
    const { largestParty = party } = this.#queue;
    const held = this.#queue.heldBy(party);
    if (held >= this.#slotsOfParty || this.#queue.heldBy(largestParty) < held + 2) return;
    for (const [slot, call] of this.#calls) {
      if (slot.party.name !== largestParty) continue;
      this.#calls.delete(slot);
      this.#queue.transfer(slot, party);
      call.abort(new RemoteError('busy', 'Too many calls are under way; this one took longest.'));
      return;
    }
  }
}

/** Rejects with the reason of the signal when that is aborted; stays pending otherwise. */
export function endOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
