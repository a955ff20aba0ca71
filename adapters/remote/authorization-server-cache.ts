import { LRUCache } from 'lru-cache';
import type { Clock } from '../../application/ports/clock.ts';
import { SingleFlight } from '../../application/single-flight.ts';

type Outcome<T> = { readonly at: number } & (
  | { readonly value: T; readonly failure?: undefined }
  | { readonly value?: undefined; readonly failure: unknown }
);

type Settings<T> = {
  readonly capacity: number;
  /** A value is used for so long and not a moment longer, whether a newer one can be had or not. */
  readonly freshMs: number;
  /** A failure is remembered for so long. */
  readonly failureMs: number;
  /** Least time between two calls of `refresh` that reach the network. */
  readonly refreshMs: number;
  readonly load: (name: string) => Promise<T>;
};

/** What other servers publish: loaded once for all who wait, kept for a while, failures for a shorter one. */
export class AuthorizationServerCache<T extends object> {
  readonly #clock: Clock;
  readonly #settings: Settings<T>;
  readonly #outcomes: LRUCache<string, Outcome<T>>;
  readonly #refreshedAt: LRUCache<string, number>;
  readonly #flights = new SingleFlight<T>();

  constructor(clock: Clock, settings: Settings<T>) {
    this.#clock = clock;
    this.#settings = settings;
    this.#outcomes = new LRUCache({ max: settings.capacity });
    this.#refreshedAt = new LRUCache({ max: settings.capacity });
  }

  /** @throws whatever `load` throws, for `failureMs` without asking again. */
  async get(name: string): Promise<T> {
    const known = this.#outcomes.get(name);
    if (known?.failure !== undefined && this.#isWithin(known.at, this.#settings.failureMs))
      throw known.failure;
    return this.#fresh(known) ?? (await this.#loadOnce(name));
  }

  /**
   * Loads although the known value is fresh; when that fails, the known value stays.
   * @returns undefined when the last refresh is too recent.
   */
  async refresh(name: string): Promise<T | undefined> {
    if (!this.#flights.isUnderWay(name)) {
      const last = this.#refreshedAt.get(name);
      if (last !== undefined && this.#isWithin(last, this.#settings.refreshMs)) return undefined;
      this.#refreshedAt.set(name, this.#now());
    }
    return this.#loadOnce(name);
  }

  #loadOnce(name: string): Promise<T> {
    return this.#flights.run(name, async () => {
      try {
        const value = await this.#settings.load(name);
        this.#outcomes.set(name, { at: this.#now(), value });
        return value;
      } catch (failure) {
        if (this.#fresh(this.#outcomes.get(name)) === undefined) {
          this.#outcomes.set(name, { at: this.#now(), failure });
        }
        throw failure;
      }
    });
  }

  #fresh(known: Outcome<T> | undefined): T | undefined {
    return known !== undefined && this.#isWithin(known.at, this.#settings.freshMs) ? known.value : undefined;
  }

  /** A clock that was set back makes nothing live longer. */
  #isWithin(since: number, milliseconds: number): boolean {
    const age = this.#now() - since;
    return age >= 0 && age < milliseconds;
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}
