import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import type { Response } from 'express';
import { WorkPlaces } from '../../application/ports/work-places.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { FairPlaces, type Place } from './fair-places.ts';

/** Each has its connection and its head in memory; bodies are bounded by bytes. */
const WAITING_OF_ONE = 2_000;
const KEPT_FOR_OTHERS = 2;
/** Enough for a thread that has no time left: while some wait for the database, others are worked on. */
const LEAST = 8;
const PATIENCE_MS = 10_000;
const LONG_MS = 250;
const SWEEP_MS = 50;
/** Part of the time in which the thread works: above, it is what everybody waits for. */
const BUSY = 0.8;

/** One request, from the place that it gets until its answer. */
type Visit = { place: Place | undefined; readonly party: string; elsewhere: number; isOver: boolean };

/**
 * Lets requests in before they cost anything but their head: at most so many are worked on at once, and tenants share those
 * places (`FairPlaces`). While there is room that is a count; the others wait in queues of their tenants.
 */
export class Admission extends WorkPlaces {
  readonly #places: FairPlaces;
  readonly #visits = new AsyncLocalStorage<Visit>();
  #leaving: Place[] = [];
  #sweeping: NodeJS.Timeout | undefined;

  /** @param most requests that are worked on at the same time, at least 4. */
  constructor(most: number) {
    super();
    const limits = {
      least: Math.min(LEAST, most),
      most,
      keptForOthers: KEPT_FOR_OTHERS,
      waitingOfOne: WAITING_OF_ONE,
      patienceMs: PATIENCE_MS,
      longMs: LONG_MS,
    };
    this.#places = new FairPlaces(limits, () => performance.now());
  }

  /**
   * Gives the request a place, unless it has one. @param party undefined for what never waits.
   * @returns undefined when it has one now; else a promise of one, which fails with `unavailable` where that takes too long.
   */
  enter(party: string | undefined, response: Response): Promise<void> | undefined {
    if (party === undefined || response.locals['visit'] !== undefined) return undefined;
    const place = this.#places.enter(party);
    if (place === undefined) return this.#wait(party, response);
    begin(place, response);
    return undefined;
  }

  get waitingCount(): number {
    return this.#places.waitingCount;
  }

  /** The request is answered, or waits for its caller. */
  leave(response: Response): void {
    const visit = response.locals['visit'] as Visit | undefined;
    if (visit === undefined) return;
    response.locals['visit'] = undefined;
    visit.isOver = true;
    this.#leavePlace(visit);
  }

  /** Runs the work of a request, which then is known to `elsewhere`. */
  within<T>(response: Response, work: () => T): T {
    const visit = response.locals['visit'] as Visit | undefined;
    return visit === undefined ? work() : this.#visits.run(visit, work);
  }

  override async elsewhere<T>(work: () => Promise<T>): Promise<T> {
    const visit = this.#visits.getStore();
    if (visit === undefined || visit.isOver) return work();
    if (++visit.elsewhere === 1) this.#leavePlace(visit);
    try {
      return await work();
    } finally {
      // What it does at several places at once is over with the last of them.
      if (--visit.elsewhere === 0) await this.#comeBack(visit);
    }
  }

  #wait(party: string, response: Response): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = () => {
        response.off('close', leave);
        reject(tooMuch());
      };
      const admit = (place: Place) => {
        response.off('close', leave);
        begin(place, response);
        resolve();
      };
      const waiter = this.#places.wait(party, { admit, refuse });
      const leave = () => {
        if (waiter !== undefined) this.#places.forget(waiter);
        reject(new Failure('unavailable', 'the caller went away'));
      };
      if (waiter === undefined) {
        reject(tooMuch());
        return;
      }
      response.once('close', leave);
      this.#startSweeping();
    });
  }

  #comeBack(visit: Visit): Promise<void> | undefined {
    if (visit.isOver || visit.place !== undefined) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    visit.place = this.#places.enterAgain(visit.party, (place) => {
      // It was answered meanwhile, has a place, or went elsewhere again.
      if (visit.isOver || visit.place !== undefined || visit.elsewhere > 0) this.#giveBack(place);
      else visit.place = place;
      resolve();
    });
    if (visit.place !== undefined) return undefined;
    this.#startSweeping();
    return promise;
  }

  #leavePlace(visit: Visit): void {
    const { place } = visit;
    visit.place = undefined;
    if (place !== undefined) this.#giveBack(place);
  }

  /**
   * Places are free at the end of a turn of the event loop, when all that came in it has been heard: where work never waits
   * for anything, it would be done in the order in which sockets were read, and nobody would ever see who waits.
   */
  #giveBack(place: Place): void {
    if (this.#leaving.push(place) > 1) return;
    setImmediate(() => {
      const leaving = this.#leaving;
      this.#leaving = [];
      this.#places.leave(leaving);
    });
  }

  /** One timer for all, and none while nobody waits. */
  #startSweeping(): void {
    if (this.#sweeping !== undefined) return;
    let last = performance.eventLoopUtilization();
    this.#sweeping = setInterval(() => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      this.#places.sweep(utilization < BUSY);
      if (this.#places.waitingCount > 0) return;
      clearInterval(this.#sweeping);
      this.#sweeping = undefined;
    }, SWEEP_MS);
    this.#sweeping.unref();
  }
}

function begin(place: Place, response: Response): void {
  const visit: Visit = { place, party: place.party, elsewhere: 0, isOver: false };
  response.locals['visit'] = visit;
}

function tooMuch(): Failure {
  return new Failure('unavailable', {
    message: 'too many requests are waiting; try again',
    retryAfterSeconds: 5,
  });
}
