import { LRUCache } from 'lru-cache';
import type { Clock } from '../ports/clock.ts';
import type { CachedLists, EventBus } from '../ports/event-bus.ts';
import { type Remote, RemoteError, type RemoteResponse } from '../ports/remote.ts';
import { boundedBytes, partOfMemory } from '../tenant-cache/bounded.ts';
import { madeOnce } from '../tenant-cache/made-once.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';

/** Limits one download of a list. */
export const LIST_TIMEOUT_MS = 5_000;
/** Trust lists of one tenant that are downloaded, or wait in memory to be read, at the same time. */
export const LISTS_IN_MEMORY = 4;
const MAX_CACHE_BYTES = 128 * 1024 * 1024;
const MAX_FAILURE_BYTES = 8 * 1024 * 1024;
/** An error with where it happened. */
const FAILURE_BYTES = 3_000;
const MAX_COUNT_BYTES = 1024 * 1024;

type Fetched = { readonly uri: string; readonly fetchedAt: Date };

/** What administrators see of a tenant's copies; `hits` and `misses` since the process began. */
export type FetchedListStats = {
  readonly size: number;
  readonly hits: number;
  readonly misses: number;
  readonly entries: readonly { readonly uri: string; readonly fetchedAt: Date; readonly expiresAt: Date }[];
  /** Lists whose last fetch failed, as long as nobody asks for them again. */
  readonly failing: readonly { readonly uri: string; readonly reason: string; readonly failedAt: Date; readonly retriedAt: Date }[];
};

type Rules<L extends Fetched> = {
  readonly clock: Clock;
  readonly eventBus: EventBus;
  /** By which name administrators clear them, at whichever process they ask. */
  readonly kind: CachedLists;
  /** Bytes that a list costs. */
  sizeOf(list: L): number;
  /** Until when a list is used without asking again. */
  freshUntil(list: L): Date;
  /** Whether an error means that the list cannot be had, so that nobody asks again for `failureMs`. */
  isRefusal(error: unknown): error is Error;
  /** Why a copy stands in for its list, since when, and when that is looked for again. */
  faultOf?(list: L): { readonly reason: string; readonly at: Date; readonly retriedAt: Date } | undefined;
  readonly failureMs: number;
};

/** Lists of others, in bounded memory and per tenant: fetched once for all who wait; failures are kept for a while. */
export class FetchedLists<L extends Fetched> {
  readonly #rules: Rules<L>;
  readonly #lists: SharedLists<L>;
  readonly #failures = new LRUCache<string, { readonly refusal: Error; readonly at: number; readonly until: number }>(
    boundedBytes(MAX_FAILURE_BYTES, () => FAILURE_BYTES),
  );
  readonly #fetching = new SingleFlight<L>();
  readonly #counts = new LRUCache<string, { hits: number; misses: number }>(boundedBytes(MAX_COUNT_BYTES));

  constructor(rules: Rules<L>) {
    this.#rules = rules;
    this.#lists = new SharedLists({ maxBytes: partOfMemory(MAX_CACHE_BYTES), sizeOf: (list) => rules.sizeOf(list) });
    rules.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'missed') this.clearAll();
      else if (wakeUp.type === 'cache' && wakeUp.lists === rules.kind) this.clear(wakeUp.tenantId);
    });
  }

  /** The copy of a list, however old. @param key of `keyOf`. */
  peek(key: string): L | undefined {
    return this.#lists.get(tenantOf(key), key);
  }

  count(tenantId: string, kind: 'hits' | 'misses'): void {
    madeOnce(this.#counts, tenantId, () => ({ hits: 0, misses: 0 }))[kind]++;
  }

  /** @throws what `fetch` throws, for all who wait for it, and again for a while when it is a refusal. */
  fetch(key: string, fetch: () => Promise<L>): Promise<L> {
    const { clock, isRefusal, failureMs } = this.#rules;
    const failed = this.#failures.get(key);
    if (failed !== undefined && clock.now().getTime() < failed.until) return Promise.reject(failed.refusal);
    return this.#fetching.run(key, async (isWanted) => {
      try {
        const list = await fetch();
        if (isWanted()) this.#lists.set(tenantOf(key), key, list);
        return list;
      } catch (error) {
        if (isWanted() && isRefusal(error)) {
          const at = clock.now().getTime();
          this.#failures.set(key, { refusal: error, at, until: at + failureMs });
        }
        throw error;
      }
    });
  }

  stats(tenantId: string): FetchedListStats {
    const entries = this.#lists
      .entries(tenantId)
      .map((list) => ({ uri: list.uri, fetchedAt: list.fetchedAt, expiresAt: this.#rules.freshUntil(list) }));
    const { hits, misses } = this.#counts.get(tenantId) ?? { hits: 0, misses: 0 };
    return { size: entries.length, hits, misses, entries, failing: this.#failing(tenantId) };
  }

  #failing(tenantId: string): FetchedListStats['failing'] {
    const now = this.#rules.clock.now().getTime();
    const standingIn = this.#lists.entries(tenantId).flatMap((list) => {
      const fault = this.#rules.faultOf?.(list);
      if (fault === undefined) return [];
      return [{ uri: list.uri, reason: fault.reason, failedAt: fault.at, retriedAt: fault.retriedAt }];
    });
    const refused = [...this.#failures.entries()].flatMap(([key, { refusal, at, until }]) =>
      tenantOf(key) === tenantId && now < until
        ? [{ uri: key.slice(key.lastIndexOf(' ') + 1), reason: refusal.message, failedAt: new Date(at), retriedAt: new Date(until) }]
        : [],
    );
    return [...refused, ...standingIn];
  }

  /** The next look fetches, also while a fetch that began before is under way. */
  clear(tenantId: string): void {
    this.#lists.clear(tenantId);
    const isOwn = (key: string) => key.startsWith(`${tenantId} `);
    for (const key of [...this.#failures.keys()]) if (isOwn(key)) this.#failures.delete(key);
    this.#fetching.forget(isOwn);
  }

  /** The same for every tenant. */
  clearAll(): void {
    this.#lists.clearAll();
    this.#failures.clear();
    this.#fetching.forget(() => true);
  }
}

type Wanted = {
  readonly tenantId: string;
  readonly accept: string;
  readonly maxBytes: number;
  readonly isSigned?: boolean;
  /** Yes, unless stated: readers follow a list that has moved (Token Status List section 8.2). */
  readonly followsRedirects?: boolean;
};

/** One attempt. @param refusal what it means that the list cannot be had, and why. */
export async function download(
  remote: Remote,
  uri: string,
  { accept, isSigned = false, followsRedirects = true, ...wanted }: Wanted,
  refusal: (why: string) => Error,
): Promise<RemoteResponse> {
  const sent = { method: 'GET', headers: { accept }, timeoutMs: LIST_TIMEOUT_MS } as const;
  const options = { ...wanted, ...sent, isSigned, followsRedirects };
  const answer = await remote.request(uri, options).catch((error: unknown) => {
    throw error instanceof RemoteError ? refusal(error.reason) : error;
  });
  // Token Status List section 8.2: any status of success, as long as there is something with it
  if (answer.status < 200 || answer.status > 299) throw refusal(`HTTP status ${answer.status}`);
  if (answer.body.length === 0) throw refusal(`HTTP status ${answer.status} without a body`);
  return answer;
}

/** Names a list of a tenant. @param parts without spaces. */
export function keyOf(tenantId: string, ...parts: readonly string[]): string {
  return [tenantId, ...parts].join(' ');
}

function tenantOf(key: string): string {
  return key.slice(0, key.indexOf(' '));
}

type Sizes<L> = { readonly maxBytes: number; readonly sizeOf: (list: L) => number };

/**
 * Lists of all tenants within one bound of memory. When there is no more room, the tenant that takes most of it gives
 * way, its least recently used list first, so that nobody pushes out what others need.
 */
export class SharedLists<L extends object> {
  readonly #sizes: Sizes<L>;
  readonly #tenants = new Map<string, LRUCache<string, L>>();
  #bytes = 0;

  constructor(sizes: Sizes<L>) {
    this.#sizes = sizes;
  }

  get(tenantId: string, key: string): L | undefined {
    return this.#tenants.get(tenantId)?.get(key);
  }

  set(tenantId: string, key: string, list: L): void {
    const { maxBytes, sizeOf } = this.#sizes;
    const begin = () => new LRUCache<string, L>({ maxSize: maxBytes, sizeCalculation: sizeOf });
    const own = madeOnce(this.#tenants, tenantId, begin);
    this.#bytes -= own.calculatedSize;
    own.set(key, list);
    this.#bytes += own.calculatedSize;
    while (this.#bytes > maxBytes) this.#giveWay();
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

  #giveWay(): void {
    let largest: [string, LRUCache<string, L>] | undefined;
    for (const entry of this.#tenants) {
      if (largest === undefined || entry[1].calculatedSize > largest[1].calculatedSize) largest = entry;
    }
    if (largest === undefined) return;
    const [tenantId, lists] = largest;
    const before = lists.calculatedSize;
    lists.pop();
    this.#bytes -= before - lists.calculatedSize;
    if (lists.size === 0) this.#tenants.delete(tenantId);
  }
}
