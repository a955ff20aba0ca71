/** Default for tokens without `ttl` and `exp`. */
const DEFAULT_TTL_SECONDS = 300;
/** Limits prevent requests for every credential, and lists that are never fetched again. */
const MIN_TTL_SECONDS = 10;
const MAX_TTL_SECONDS = 24 * 60 * 60;
/** The maximum of `Date` in milliseconds. */
const LAST_INSTANT = 8_640_000_000_000_000;

export type FetchedToken = {
  /** NumericDate. */
  readonly exp?: number;
  /** Seconds. */
  readonly ttl?: number;
  readonly fetchedAt: Date;
};

export type CacheLifetime = {
  /** Time from which a new copy is fetched. */
  readonly freshUntil: Date;
  /** Limit for the use of an old copy when fetching fails. */
  readonly usableUntil: Date;
};

/**
 * Cache lifetime of a fetched token (Token Status List sections 8.2 and 13.7). It is determined by the token's claims, not by HTTP caching
 * headers. `ttl` counts from the fetch; `exp` ends any use.
 */
export function cacheLifetime({ exp, ttl, fetchedAt }: FetchedToken): CacheLifetime {
  const requestedTtl = ttl ?? (exp === undefined ? DEFAULT_TTL_SECONDS : MAX_TTL_SECONDS);
  const ttlSeconds = Math.min(Math.max(requestedTtl, MIN_TTL_SECONDS), MAX_TTL_SECONDS);
  const refreshAt = fetchedAt.getTime() + ttlSeconds * 1000;
  const end = exp === undefined ? refreshAt : exp * 1000;
  return {
    freshUntil: new Date(Math.min(refreshAt, end)),
    // Without `exp` an old copy may be outdated and is not used.
    usableUntil: new Date(Math.min(end, LAST_INSTANT)),
  };
}

/** `stale`: the copy is used only if a new request fails. */
export function cacheState(lifetime: CacheLifetime, now: Date): 'fresh' | 'stale' | 'expired' {
  if (now < lifetime.freshUntil) return 'fresh';
  return now < lifetime.usableUntil ? 'stale' : 'expired';
}
