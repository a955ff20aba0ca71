import { LRUCache } from 'lru-cache';
import { AuthorizationServerError } from '../../application/ports/authorization-servers.ts';
import type { Clock } from '../../application/ports/clock.ts';
import { boundedBytes } from '../../application/tenant-cache/cache-memory.ts';
import { SingleFlight } from '../../application/tenant-cache/single-flight.ts';

const MAX_REFRESH_TIMES_BYTES = 2 * 1024 * 1024;

type Outcome<T> = { readonly at: number } & (
  | { readonly value: T; readonly failure?: undefined }
  | { readonly value?: undefined; readonly failure: unknown }
);

/** A server, and the tenant that calls it: the addresses that may be called differ between tenants. */
export type ServerQuery = { readonly issuer: string; readonly tenantId: string | undefined };

type Settings<T> = {
  /** Memory limit of the values. */
  readonly maxBytes: number;
  /** Lifetime of a value, after which it is not used even if a new one cannot be loaded. */
  readonly freshMs: number;
  readonly failureMs: number;
  /** Minimum time between two refreshes that use the network. */
  readonly refreshMs: number;
  readonly load: (query: ServerQuery) => Promise<T>;
};

/** Cache for documents of authorization servers. Concurrent callers share one load; failures are cached for a shorter time. */
export class AuthorizationServerCache<T extends object> {
  readonly #clock: Clock;
  readonly #settings: Settings<T>;
  readonly #outcomes: LRUCache<string, Outcome<T>>;
  readonly #refreshedAt: LRUCache<string, { readonly at: number }>;
  readonly #flights = new SingleFlight<T>();

  constructor(clock: Clock, settings: Settings<T>) {
    this.#clock = clock;
    this.#settings = settings;
    this.#outcomes = new LRUCache(boundedBytes<Outcome<T>>(settings.maxBytes));
    this.#refreshedAt = new LRUCache(boundedBytes<{ readonly at: number }>(MAX_REFRESH_TIMES_BYTES));
  }

  /** @throws the error of `load`, which is cached for `failureMs`. */
  async get(query: ServerQuery): Promise<T> {
    const cached = this.#outcomes.get(keyOf(query));
    if (cached?.failure !== undefined && this.#isWithin(cached.at, this.#settings.failureMs)) throw cached.failure;
    return this.#freshValue(cached) ?? (await this.#loadOnce(query));
  }

  /**
   * Loads although the cached value is fresh; if that fails, the cached value stays.
   * @returns undefined if the last refresh is too recent.
   */
  async refresh(query: ServerQuery): Promise<T | undefined> {
    const key = keyOf(query);
    if (!this.#flights.isRunning(key)) {
      const lastRefresh = this.#refreshedAt.get(key);
      if (lastRefresh !== undefined && this.#isWithin(lastRefresh.at, this.#settings.refreshMs)) return undefined;
      this.#refreshedAt.set(key, { at: this.#now() });
    }
    return this.#loadOnce(query);
  }

  #loadOnce(query: ServerQuery): Promise<T> {
    const key = keyOf(query);
    return this.#flights.run(key, async () => {
      try {
        const value = await this.#settings.load(query);
        this.#outcomes.set(key, { at: this.#now(), value });
        return value;
      } catch (failure) {
        // An overload of this service says nothing about the server.
        const isBusy = failure instanceof AuthorizationServerError && failure.fault === 'busy';
        if (!isBusy && this.#freshValue(this.#outcomes.get(key)) === undefined) this.#outcomes.set(key, { at: this.#now(), failure });
        throw failure;
      }
    });
  }

  #freshValue(outcome: Outcome<T> | undefined): T | undefined {
    return outcome !== undefined && this.#isWithin(outcome.at, this.#settings.freshMs) ? outcome.value : undefined;
  }

  /** Returns false for a start in the future, so that a clock that was set back extends no lifetime. */
  #isWithin(startedAt: number, milliseconds: number): boolean {
    const age = this.#now() - startedAt;
    return age >= 0 && age < milliseconds;
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}

function keyOf({ issuer, tenantId }: ServerQuery): string {
  return `${tenantId ?? ''} ${issuer}`;
}
