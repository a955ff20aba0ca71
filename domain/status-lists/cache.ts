/** Where a token sets no limit of its own. */
const DEFAULT_TTL_SECONDS = 300;
/** Against lists that would be fetched for every credential, and lists that would never be fetched again. */
const MIN_TTL_SECONDS = 10;
const MAX_TTL_SECONDS = 24 * 60 * 60;
/** The last instant a `Date` holds, in milliseconds. */
const LAST_INSTANT = 8_640_000_000_000_000;

export type FetchedToken = {
  /** NumericDate. */
  readonly exp?: number;
  /** Seconds. */
  readonly ttl?: number;
  readonly fetchedAt: Date;
};

export type CacheLifetime = {
  /** From then on a new copy is fetched. */
  readonly freshUntil: Date;
  /** Until then the old copy may stand in when fetching fails; never after it. */
  readonly usableUntil: Date;
};

/**
 * How long a fetched token may be used (Token Status List sections 8.2 and 13.7). The token's own claims decide
 * and caching headers of HTTP do not. `ttl` counts from the fetch; `exp` ends any use.
 */
export function cacheUntil({ exp, ttl, fetchedAt }: FetchedToken): CacheLifetime {
  const wanted = ttl ?? (exp === undefined ? DEFAULT_TTL_SECONDS : MAX_TTL_SECONDS);
  const kept = Math.min(Math.max(wanted, MIN_TTL_SECONDS), MAX_TTL_SECONDS);
  const refreshAt = fetchedAt.getTime() + kept * 1000;
  const end = exp === undefined ? refreshAt : exp * 1000;
  return {
    freshUntil: new Date(Math.min(refreshAt, end)),
    // Without `exp` nobody vouches for an old copy.
    usableUntil: new Date(Math.min(end, LAST_INSTANT)),
  };
}

/** `stale`: fetch again, and only if that fails use the copy. */
export function cacheState(lifetime: CacheLifetime, now: Date): 'fresh' | 'stale' | 'expired' {
  if (now < lifetime.freshUntil) return 'fresh';
  return now < lifetime.usableUntil ? 'stale' : 'expired';
}
