import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import type { Response } from 'express';
import { RequestSlots } from '../../../application/ports/request-slots.ts';
import { FairQueue, type Slot } from '../../../application/queues/fair-queue.ts';
import { Failure } from '../../../domain/shared/failure.ts';

/** Each waiting request has its connection and its head in memory; bodies are limited by their bytes. */
const MAX_WAITING_PER_TENANT = 2_000;
/** Slots that a single tenant cannot take, so that a request of another tenant finds one. */
const RESERVED_SLOTS = 2;
/** Enough for a busy thread: while some requests wait for the database, others run. */
const MIN_SLOTS = 8;
const MAX_WAIT_MS = 10_000;
/** While the thread is idle, a request that holds its slot for longer waits for something outside of this process. */
const LONG_MS = 250;
const SWEEP_MS = 50;
/** Utilization of the thread above which more slots would only make requests wait for each other. */
const BUSY = 0.8;

/** Request from its admission to its response. */
type Visit = { slot: Slot | undefined; readonly queueKey: string; slotReleases: number; isOver: boolean };

/** A waiting request drops its controller when its waiting ends, for the same reason as the waiters of `FairQueue`. */
type WaitingRequest = { readonly since: number; ending: AbortController | undefined };

/**
 * Admits requests before they cost anything but their head: a limited number runs at once, and tenants share those slots (`FairQueue`).
 * While slots are free, admission is only a count; otherwise requests wait in queues of their tenants.
 */
export class Admission extends RequestSlots {
  readonly #queue: FairQueue;
  readonly #now: () => number;
  readonly #minSlots: number;
  readonly #maxSlots: number;
  #slots: number;
  readonly #visits = new AsyncLocalStorage<Visit>();
  /** Waiting requests, the longest waiting first. */
  readonly #waiting = new Set<WaitingRequest>();
  #leaving: Slot[] = [];
  #sweeping: NodeJS.Timeout | undefined;

  /** @param maxSlots requests that run at the same time, at least 4. */
  constructor(maxSlots: number, now: () => number = () => performance.now()) {
    super();
    this.#minSlots = Math.min(MIN_SLOTS, maxSlots);
    this.#maxSlots = maxSlots;
    this.#slots = this.#minSlots;
    this.#now = now;
    const limits = { slots: this.#slots, slotsPerKey: this.#slots - RESERVED_SLOTS, waitingPerKey: MAX_WAITING_PER_TENANT };
    this.#queue = new FairQueue(limits, tooManyError, now);
  }

  /**
   * Gives the request a slot, unless it has one.
   * @param queueKey undefined for a request that never waits.
   * @returns undefined if the request may continue; otherwise a promise, which rejects with `unavailable` if the wait takes too long.
   */
  enter(queueKey: string | undefined, response: Response): Promise<void> | undefined {
    if (queueKey === undefined || response.locals['visit'] !== undefined) return undefined;
    const slot = this.#queue.enter(queueKey);
    if (slot === undefined) return this.#wait(queueKey, response);
    begin(queueKey, slot, response);
    return undefined;
  }

  get waitingCount(): number {
    return this.#queue.waitingCount;
  }

  /** Called when the request is answered, or waits for its caller. */
  leave(response: Response): void {
    const visit = response.locals['visit'] as Visit | undefined;
    if (visit === undefined) return;
    response.locals['visit'] = undefined;
    visit.isOver = true;
    this.#leaveSlot(visit);
  }

  /** Runs the work of a request, so that `releaseSlotWhile` finds the request. */
  within<T>(response: Response, work: () => T): T {
    const visit = response.locals['visit'] as Visit | undefined;
    return visit === undefined ? work() : this.#visits.run(visit, work);
  }

  override async releaseSlotWhile<T>(work: () => Promise<T>): Promise<T> {
    const visit = this.#visits.getStore();
    if (visit === undefined || visit.isOver) return work();
    if (++visit.slotReleases === 1) this.#leaveSlot(visit);
    try {
      return await work();
    } finally {
      // Concurrent calls of one request end with the last of them.
      if (--visit.slotReleases === 0) await this.#comeBack(visit);
    }
  }

  /**
   * Runs regularly while requests wait.
   * @param isIdle true if the thread had nothing to do for a good part of the time: then there are more slots, and requests that held
   * theirs for long lose them.
   */
  sweep(isIdle: boolean): void {
    const now = this.#now();
    for (const { since: startedAt, ending } of this.#waiting) {
      if (now - startedAt < MAX_WAIT_MS) break;
      ending?.abort(tooManyError());
    }
    if (isIdle) {
      const long: Slot[] = [];
      for (const slot of this.#queue.heldSlots) {
        if (now - slot.since < LONG_MS) break;
        long.push(slot);
      }
      this.#queue.leave(...long);
    }
    this.#slots = isIdle ? Math.min(this.#slots + 1, this.#maxSlots) : Math.max(this.#slots - 1, this.#minSlots);
    this.#queue.resize(this.#slots, this.#slots - RESERVED_SLOTS);
  }

  async #wait(queueKey: string, response: Response): Promise<void> {
    const ending = new AbortController();
    const waiting: WaitingRequest = { since: this.#now(), ending };
    const close = () => ending.abort(new Failure('unavailable', 'the caller disconnected'));
    response.once('close', close);
    this.#waiting.add(waiting);
    this.#startSweeping();
    try {
      begin(queueKey, await this.#queue.wait(queueKey, ending.signal), response);
    } finally {
      response.off('close', close);
      this.#waiting.delete(waiting);
      waiting.ending = undefined;
    }
  }

  async #comeBack(visit: Visit): Promise<void> {
    if (visit.isOver || visit.slot !== undefined) return;
    const admission = this.#queue.reenter(visit.queueKey);
    if (!(admission instanceof Promise)) {
      visit.slot = admission;
      return;
    }
    this.#startSweeping();
    const slot = await admission;
    // The request was answered meanwhile, has a slot, or left its slot again.
    if (visit.isOver || visit.slot !== undefined || visit.slotReleases > 0) this.#giveBack(slot);
    else visit.slot = slot;
  }

  #leaveSlot(visit: Visit): void {
    const { slot } = visit;
    visit.slot = undefined;
    if (slot !== undefined) this.#giveBack(slot);
  }

  /**
   * Slots become free at the end of a turn of the event loop, when all requests that arrived in it are in the queue. If no request ever
   * waited, requests would otherwise be answered in the order in which sockets were read.
   */
  #giveBack(slot: Slot): void {
    if (this.#leaving.push(slot) > 1) return;
    setImmediate(() => {
      const leaving = this.#leaving;
      this.#leaving = [];
      this.#queue.leave(...leaving);
    });
  }

  /** One timer serves all requests; it runs only while requests wait. */
  #startSweeping(): void {
    if (this.#sweeping !== undefined) return;
    let previous = performance.eventLoopUtilization();
    this.#sweeping = setInterval(() => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, previous);
      previous = now;
      this.sweep(utilization < BUSY);
      if (this.#queue.waitingCount > 0) return;
      clearInterval(this.#sweeping);
      this.#sweeping = undefined;
    }, SWEEP_MS);
    this.#sweeping.unref();
  }
}

function begin(queueKey: string, slot: Slot, response: Response): void {
  const visit: Visit = { slot, queueKey, slotReleases: 0, isOver: false };
  response.locals['visit'] = visit;
}

function tooManyError(): Failure {
  return new Failure('unavailable', { message: 'too many requests are waiting; try again', retryAfterSeconds: 5 });
}
