import { LRUCache } from 'lru-cache';
import { AuthorizationServerError } from '../../application/ports/authorization-servers.ts';
import type { Clock } from '../../application/ports/clock.ts';
import { boundedBytes } from '../../application/tenant-cache/bounded.ts';
import { SingleFlight } from '../../application/tenant-cache/single-flight.ts';

const MAX_TIMES_BYTES = 2 * 1024 * 1024;

type Outcome<T> = { readonly at: number } & (
  | { readonly value: T; readonly failure?: undefined }
  | { readonly value?: undefined; readonly failure: unknown }
);

/** A server, and for which tenant it is asked; what one may call another may not. */
export type Asked = { readonly issuer: string; readonly tenantId: string | undefined };

type Settings<T> = {
  /** That values may take in memory. */
  readonly maxBytes: number;
  /** A value is used for so long and not a moment longer, whether a newer one can be had or not. */
  readonly freshMs: number;
  /** A failure is remembered for so long. */
  readonly failureMs: number;
  /** Least time between two calls of `refresh` that reach the network. */
  readonly refreshMs: number;
  readonly load: (asked: Asked) => Promise<T>;
};

/** What other servers publish: loaded once for all who wait, kept for a while, failures for a shorter one. */
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
    this.#refreshedAt = new LRUCache(boundedBytes<{ readonly at: number }>(MAX_TIMES_BYTES));
  }

  /** @throws whatever `load` throws, for `failureMs` without asking again. */
  async get(asked: Asked): Promise<T> {
    const known = this.#outcomes.get(keyOf(asked));
    if (known?.failure !== undefined && this.#isWithin(known.at, this.#settings.failureMs)) throw known.failure;
    return this.#fresh(known) ?? (await this.#loadOnce(asked));
  }

  /**
   * Loads although the known value is fresh; when that fails, the known value stays.
   * @returns undefined when the last refresh is too recent.
   */
  async refresh(asked: Asked): Promise<T | undefined> {
    const name = keyOf(asked);
    if (!this.#flights.isUnderWay(name)) {
      const last = this.#refreshedAt.get(name);
      if (last !== undefined && this.#isWithin(last.at, this.#settings.refreshMs)) return undefined;
      this.#refreshedAt.set(name, { at: this.#now() });
    }
    return this.#loadOnce(asked);
  }

  #loadOnce(asked: Asked): Promise<T> {
    const name = keyOf(asked);
    return this.#flights.run(name, async () => {
      try {
        const value = await this.#settings.load(asked);
        this.#outcomes.set(name, { at: this.#now(), value });
        return value;
      } catch (failure) {
        // That this service has too much to do says nothing of the server.
        const isBusy = failure instanceof AuthorizationServerError && failure.fault === 'busy';
        if (!isBusy && this.#fresh(this.#outcomes.get(name)) === undefined) this.#outcomes.set(name, { at: this.#now(), failure });
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

function keyOf({ issuer, tenantId }: Asked): string {
  return `${tenantId ?? ''} ${issuer}`;
}
