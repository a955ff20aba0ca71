import { RemoteError } from '../../application/ports/remote.ts';
import { FairQueue, type QueueLimits, type Slot } from '../../application/queues/fair-queue.ts';

/** Time after which a waiting call may take the slot of a larger queue key. If calls are fast, a slot is free before. */
const PREEMPTION_MS = 250;

/**
 * Fair queue of outgoing calls in which slow calls do not block other keys: a call that waits for a while takes the slot of the oldest call
 * of the key with the most slots, if that key holds at least two slots more than the key of the call.
 */
export class CallQueue {
  readonly #queue: FairQueue;
  readonly #slotsPerKey: number;
  /** Running calls, the oldest first. */
  readonly #calls = new Map<Slot, AbortController>();

  constructor(limits: Required<QueueLimits>) {
    this.#queue = new FairQueue(limits, () => new RemoteError('busy', 'Too many calls are waiting.'));
    this.#slotsPerKey = limits.slotsPerKey;
  }

  get heldCount(): number {
    return this.#queue.heldCount;
  }

  get isIdle(): boolean {
    return this.#queue.isIdle;
  }

  /**
   * Waits for a slot.
   * @param call is aborted when the call loses its slot; aborting it ends the wait.
   * @returns a function that releases the slot.
   * @throws RemoteError `busy` if too many calls wait; the reason of `call` if that is aborted first.
   */
  async enter(queueKey: string, call: AbortController): Promise<() => void> {
    call.signal.throwIfAborted();
    const slot = this.#queue.enter(queueKey) ?? (await this.#wait(queueKey, call.signal));
    this.#calls.set(slot, call);
    return () => {
      this.#calls.delete(slot);
      this.#queue.leave(slot);
    };
  }

  async #wait(queueKey: string, signal: AbortSignal): Promise<Slot> {
    const waiting = this.#queue.wait(queueKey, signal);
    const preemption = setInterval(() => this.#preemptFor(queueKey), PREEMPTION_MS);
    try {
      return await waiting;
    } finally {
      clearInterval(preemption);
    }
  }

  #preemptFor(queueKey: string): void {
    const { largestKey = queueKey } = this.#queue;
    const held = this.#queue.heldBy(queueKey);
    if (held >= this.#slotsPerKey || this.#queue.heldBy(largestKey) < held + 2) return;
    for (const [slot, call] of this.#calls) {
      if (slot.group.key !== largestKey) continue;
      this.#calls.delete(slot);
      this.#queue.transfer(slot, queueKey);
      call.abort(new RemoteError('busy', 'Too many calls are in progress; this one took longest.'));
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
