import { LRUCache } from 'lru-cache';
import type { Clock } from '../ports/clock.ts';
import type { CachedLists, EventBus } from '../ports/event-bus.ts';
import { type Remote, RemoteError, type RemoteResponse } from '../ports/remote.ts';
import { boundedBytes, shareOfCacheMemory } from '../tenant-cache/cache-memory.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';

export const LIST_TIMEOUT_MS = 5_000;
/** Limit per tenant of trust lists that are downloaded, or wait in memory to be read, at the same time. */
export const MAX_LISTS_IN_MEMORY = 4;
const MAX_CACHE_BYTES = 128 * 1024 * 1024;
const MAX_FAILURE_BYTES = 8 * 1024 * 1024;
/** Size of an error with its stack. */
const FAILURE_BYTES = 3_000;
const MAX_COUNT_BYTES = 1024 * 1024;

type FetchedList = { readonly uri: string; readonly fetchedAt: Date };

/** Cache statistics of a tenant for administrators; `hits` and `misses` since the start of the process. */
export type FetchedListStats = {
  readonly size: number;
  readonly hits: number;
  readonly misses: number;
  readonly entries: readonly { readonly uri: string; readonly fetchedAt: Date; readonly expiresAt: Date }[];
  /** Lists whose last fetch failed, until the failure expires. */
  readonly failing: readonly { readonly uri: string; readonly reason: string; readonly failedAt: Date; readonly retriedAt: Date }[];
};

type CacheOptions<L extends FetchedList> = {
  readonly clock: Clock;
  readonly eventBus: EventBus;
  /** Kind of the events that clear this cache. */
  readonly kind: CachedLists;
  sizeOf(list: L): number;
  /** Returns the time until which a list is used without fetching it again. */
  freshUntil(list: L): Date;
  /** True for an error that means that the list is unavailable, which is cached for `failureMs`. */
  isRefusal(error: unknown): error is Error;
  /** Returns the fault because of which a stored copy is used in place of the list; undefined for the list itself. */
  faultOf?(list: L): { readonly reason: string; readonly at: Date; readonly retriedAt: Date } | undefined;
  readonly failureMs: number;
};

/** Third-party lists, cached per tenant in bounded memory: concurrent callers share a fetch, and failures are cached for a while. */
export class FetchedLists<L extends FetchedList> {
  readonly #options: CacheOptions<L>;
  readonly #lists: SharedLists<L>;
  readonly #failures = new LRUCache<string, { readonly refusal: Error; readonly failedAt: number; readonly expiresAt: number }>(
    boundedBytes(MAX_FAILURE_BYTES, () => FAILURE_BYTES),
  );
  readonly #flights = new SingleFlight<L>();
  readonly #counts = new LRUCache<string, { hits: number; misses: number }>(boundedBytes(MAX_COUNT_BYTES));

  constructor(options: CacheOptions<L>) {
    this.#options = options;
    this.#lists = new SharedLists({ maxBytes: shareOfCacheMemory(MAX_CACHE_BYTES), sizeOf: (list) => options.sizeOf(list) });
    options.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'missed') this.clearAll();
      else if (wakeUp.type === 'cache' && wakeUp.lists === options.kind) this.clear(wakeUp.tenantId);
    });
  }

  /** The cached list, however old. @param key of `keyOf`. */
  peek(key: string): L | undefined {
    return this.#lists.get(tenantOf(key), key);
  }

  count(tenantId: string, kind: 'hits' | 'misses'): void {
    getOrCreate(this.#counts, tenantId, () => ({ hits: 0, misses: 0 }))[kind]++;
  }

  /** @throws the error of `fetch`, for all concurrent callers; a refusal is thrown again until it expires. */
  fetch(key: string, fetch: () => Promise<L>): Promise<L> {
    const { clock, isRefusal, failureMs } = this.#options;
    const failed = this.#failures.get(key);
    if (failed !== undefined && clock.now().getTime() < failed.expiresAt) return Promise.reject(failed.refusal);
    return this.#flights.run(key, async (isCurrent) => {
      try {
        const list = await fetch();
        if (isCurrent()) this.#lists.set(tenantOf(key), key, list);
        return list;
      } catch (error) {
        if (isCurrent() && isRefusal(error)) {
          const failedAt = clock.now().getTime();
          this.#failures.set(key, { refusal: error, failedAt, expiresAt: failedAt + failureMs });
        }
        throw error;
      }
    });
  }

  stats(tenantId: string): FetchedListStats {
    const entries = this.#lists
      .entries(tenantId)
      .map((list) => ({ uri: list.uri, fetchedAt: list.fetchedAt, expiresAt: this.#options.freshUntil(list) }));
    const { hits, misses } = this.#counts.get(tenantId) ?? { hits: 0, misses: 0 };
    return { size: entries.length, hits, misses, entries, failing: this.#failingLists(tenantId) };
  }

  #failingLists(tenantId: string): FetchedListStats['failing'] {
    const now = this.#options.clock.now().getTime();
    const listsWithCopy = this.#lists.entries(tenantId).flatMap((list) => {
      const fault = this.#options.faultOf?.(list);
      if (fault === undefined) return [];
      return [{ uri: list.uri, reason: fault.reason, failedAt: fault.at, retriedAt: fault.retriedAt }];
    });
    const failedLists = [...this.#failures.entries()].flatMap(([key, { refusal, failedAt, expiresAt }]) =>
      tenantOf(key) === tenantId && now < expiresAt
        ? [
            {
              uri: key.slice(key.lastIndexOf(' ') + 1),
              reason: refusal.message,
              failedAt: new Date(failedAt),
              retriedAt: new Date(expiresAt),
            },
          ]
        : [],
    );
    return [...failedLists, ...listsWithCopy];
  }

  /** The next read fetches the list, even if an earlier fetch is in progress. */
  clear(tenantId: string): void {
    this.#lists.clear(tenantId);
    const isOfTenant = (key: string) => key.startsWith(`${tenantId} `);
    for (const key of [...this.#failures.keys()]) if (isOfTenant(key)) this.#failures.delete(key);
    this.#flights.forget(isOfTenant);
  }

  clearAll(): void {
    this.#lists.clearAll();
    this.#failures.clear();
    this.#flights.forget(() => true);
  }
}

type DownloadOptions = {
  readonly tenantId: string;
  readonly accept: string;
  readonly maxBytes: number;
  readonly isSigned?: boolean;
  /** Default true: redirects of lists are followed (Token Status List section 8.2). */
  readonly followsRedirects?: boolean;
};

/** Downloads a list without retries. @param refusal creates the error for an unavailable list. */
export async function download(
  remote: Remote,
  uri: string,
  { accept, isSigned = false, followsRedirects = true, ...limits }: DownloadOptions,
  refusal: (reason: string) => Error,
): Promise<RemoteResponse> {
  const requestOptions = { method: 'GET', headers: { accept }, timeoutMs: LIST_TIMEOUT_MS } as const;
  const options = { ...limits, ...requestOptions, isSigned, followsRedirects };
  const response = await remote.request(uri, options).catch((error: unknown) => {
    throw error instanceof RemoteError ? refusal(error.reason) : error;
  });
  // Token Status List section 8.2: any success status with a body
  if (response.status < 200 || response.status > 299) throw refusal(`HTTP status ${response.status}`);
  if (response.body.length === 0) throw refusal(`HTTP status ${response.status} without a body`);
  return response;
}

/** Cache key of a tenant's list. @param parts without spaces. */
export function keyOf(tenantId: string, ...parts: readonly string[]): string {
  return [tenantId, ...parts].join(' ');
}

function tenantOf(key: string): string {
  return key.slice(0, key.indexOf(' '));
}

type CacheLimits<L> = { readonly maxBytes: number; readonly sizeOf: (list: L) => number };

/**
 * Cache for the lists of all tenants with one memory limit. When it is exceeded, the tenant with the largest share loses its least recently
 * used list, so that tenants do not evict each other's lists.
 */
export class SharedLists<L extends object> {
  readonly #limits: CacheLimits<L>;
  readonly #tenants = new Map<string, LRUCache<string, L>>();
  #bytes = 0;

  constructor(limits: CacheLimits<L>) {
    this.#limits = limits;
  }

  get(tenantId: string, key: string): L | undefined {
    return this.#tenants.get(tenantId)?.get(key);
  }

  set(tenantId: string, key: string, list: L): void {
    const { maxBytes, sizeOf } = this.#limits;
    const createCache = () => new LRUCache<string, L>({ maxSize: maxBytes, sizeCalculation: sizeOf });
    const tenantCache = getOrCreate(this.#tenants, tenantId, createCache);
    this.#bytes -= tenantCache.calculatedSize;
    tenantCache.set(key, list);
    this.#bytes += tenantCache.calculatedSize;
    while (this.#bytes > maxBytes) this.#evict();
  }

  entries(tenantId: string): readonly L[] {
    return [...(this.#tenants.get(tenantId)?.values() ?? [])];
  }

  clear(tenantId: string): void {
    this.#bytes -= this.#tenants.get(tenantId)?.calculatedSize ?? 0;
    this.#tenants.delete(tenantId);
  }

  clearAll(): void {
    this.#tenants.clear();
    this.#bytes = 0;
  }

  #evict(): void {
    let largest: [string, LRUCache<string, L>] | undefined;
    for (const entry of this.#tenants) {
      if (largest === undefined || entry[1].calculatedSize > largest[1].calculatedSize) largest = entry;
    }
    if (largest === undefined) return;
    const [tenantId, lists] = largest;
    const sizeBefore = lists.calculatedSize;
    lists.pop();
    this.#bytes -= sizeBefore - lists.calculatedSize;
    if (lists.size === 0) this.#tenants.delete(tenantId);
  }
}
