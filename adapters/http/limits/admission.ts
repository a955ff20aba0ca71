import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import type { Response } from 'express';
import { WorkPlaces } from '../../../application/ports/work-places.ts';
import { FairQueue, type Slot } from '../../../application/queues/fair-queue.ts';
import { Failure } from '../../../domain/shared/failure.ts';

/** Each waiting request has its connection and its head in memory; bodies are bounded by bytes. */
const WAITING_OF_PARTY = 2_000;
/** Slots that no party has all to itself, so that a newcomer of another party finds one. */
const KEPT_FOR_OTHERS = 2;
/** Enough for a busy thread: while some requests wait for the database, others are worked on. */
const MIN_SLOTS = 8;
const PATIENCE_MS = 10_000;
/** While the thread is idle, a request that holds its slot for longer waits for something outside this process. */
const LONG_MS = 250;
const SWEEP_MS = 50;
/** Part of the time in which the thread works; above it, more slots would only make requests wait for each other. */
const BUSY = 0.8;

/** A request from its admission until its answer. */
type Visit = { slot: Slot | undefined; readonly party: string; elsewhere: number; isOver: boolean };

/** A waiting request drops its controller when its waiting ends, for the same reason as the waiters of `FairQueue`. */
type WaitingRequest = { readonly since: number; ending: AbortController | undefined };

/**
 * Admits requests before they cost anything but their head: a limited number is worked on at once, and tenants share
 * those slots (`FairQueue`). While slots are free, admission is a count; else requests wait in queues of their tenants.
 */
export class Admission extends WorkPlaces {
  readonly #queue: FairQueue;
  readonly #now: () => number;
  readonly #minSlots: number;
  readonly #maxSlots: number;
  #slots: number;
  readonly #visits = new AsyncLocalStorage<Visit>();
  /** The longest waiting is first. */
  readonly #waiting = new Set<WaitingRequest>();
  #leaving: Slot[] = [];
  #sweeping: NodeJS.Timeout | undefined;

  /** @param maxSlots requests that are worked on at the same time, at least 4. */
  constructor(maxSlots: number, now: () => number = () => performance.now()) {
    super();
    this.#minSlots = Math.min(MIN_SLOTS, maxSlots);
    this.#maxSlots = maxSlots;
    this.#slots = this.#minSlots;
    this.#now = now;
    const limits = { slots: this.#slots, slotsOfParty: this.#slots - KEPT_FOR_OTHERS, waitingOfParty: WAITING_OF_PARTY };
    this.#queue = new FairQueue(limits, tooManyError, now);
  }

  /**
   * Gives the request a slot, unless it has one.
   * @param party undefined for a request that never waits.
   * @returns undefined if the request may go on; else a promise, which rejects with `unavailable` if that takes too long.
   */
  enter(party: string | undefined, response: Response): Promise<void> | undefined {
    if (party === undefined || response.locals['visit'] !== undefined) return undefined;
    const slot = this.#queue.enter(party);
    if (slot === undefined) return this.#wait(party, response);
    begin(party, slot, response);
    return undefined;
  }

  get waitingCount(): number {
    return this.#queue.waitingCount;
  }

  /** The request is answered, or waits for its caller. */
  leave(response: Response): void {
    const visit = response.locals['visit'] as Visit | undefined;
    if (visit === undefined) return;
    response.locals['visit'] = undefined;
    visit.isOver = true;
    this.#leaveSlot(visit);
  }

  /** Runs the work of a request, so that `elsewhere` finds the request. */
  within<T>(response: Response, work: () => T): T {
    const visit = response.locals['visit'] as Visit | undefined;
    return visit === undefined ? work() : this.#visits.run(visit, work);
  }

  override async elsewhere<T>(work: () => Promise<T>): Promise<T> {
    const visit = this.#visits.getStore();
    if (visit === undefined || visit.isOver) return work();
    if (++visit.elsewhere === 1) this.#leaveSlot(visit);
    try {
      return await work();
    } finally {
      // Concurrent calls of one request are over with the last of them.
      if (--visit.elsewhere === 0) await this.#comeBack(visit);
    }
  }

  /**
   * Runs regularly while requests wait.
   * @param isIdle whether the thread had nothing to do for a good part of the time: then there are more slots, and
   *   requests that held theirs for long lose them.
   */
  sweep(isIdle: boolean): void {
    const now = this.#now();
    for (const { since, ending } of this.#waiting) {
      if (now - since < PATIENCE_MS) break;
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
    this.#queue.resize(this.#slots, this.#slots - KEPT_FOR_OTHERS);
  }

  async #wait(party: string, response: Response): Promise<void> {
    const ending = new AbortController();
    const waiting: WaitingRequest = { since: this.#now(), ending };
    const close = () => ending.abort(new Failure('unavailable', 'the caller went away'));
    response.once('close', close);
    this.#waiting.add(waiting);
    this.#startSweeping();
    try {
      begin(party, await this.#queue.wait(party, ending.signal), response);
    } finally {
      response.off('close', close);
      this.#waiting.delete(waiting);
      waiting.ending = undefined;
    }
  }

  async #comeBack(visit: Visit): Promise<void> {
    if (visit.isOver || visit.slot !== undefined) return;
    const admission = this.#queue.enterAgain(visit.party);
    if (!(admission instanceof Promise)) {
      visit.slot = admission;
      return;
    }
    this.#startSweeping();
    const slot = await admission;
    // The request was answered meanwhile, has a slot, or works elsewhere again.
    if (visit.isOver || visit.slot !== undefined || visit.elsewhere > 0) this.#giveBack(slot);
    else visit.slot = slot;
  }

  #leaveSlot(visit: Visit): void {
    const { slot } = visit;
    visit.slot = undefined;
    if (slot !== undefined) this.#giveBack(slot);
  }

  /**
   * Slots are free at the end of a turn of the event loop, when all requests that came in it are in the queue. Where
   * work never waits for anything, requests would otherwise be answered in the order in which sockets were read.
   */
  #giveBack(slot: Slot): void {
    if (this.#leaving.push(slot) > 1) return;
    setImmediate(() => {
      const leaving = this.#leaving;
      this.#leaving = [];
      this.#queue.leave(...leaving);
    });
  }

  /** One timer serves all requests; there is none while no request waits. */
  #startSweeping(): void {
    if (this.#sweeping !== undefined) return;
    let last = performance.eventLoopUtilization();
    this.#sweeping = setInterval(() => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      this.sweep(utilization < BUSY);
      if (this.#queue.waitingCount > 0) return;
      clearInterval(this.#sweeping);
      this.#sweeping = undefined;
    }, SWEEP_MS);
    this.#sweeping.unref();
  }
}

function begin(party: string, slot: Slot, response: Response): void {
  const visit: Visit = { slot, party, elsewhere: 0, isOver: false };
  response.locals['visit'] = visit;
}

function tooManyError(): Failure {
  return new Failure('unavailable', { message: 'too many requests are waiting; try again', retryAfterSeconds: 5 });
}
