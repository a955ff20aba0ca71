import { object, z } from 'zod';
import { ClearCaches, GetCacheStats } from '../../../application/caches/caches.ts';
import type { CachedLists } from '../../../application/ports/event-bus.ts';
import type { FetchedListStats } from '../../../application/trust-lists/fetched-lists.ts';
import { withoutQuery } from '../../../domain/shared/without-query.ts';
import type { FollowedList } from '../../../domain/status-lists/wallet-status.ts';
import { family, type Route, reply, route } from '../route.ts';

const common = { tag: 'Caches', surface: 'admin', access: { anyOf: ['issuance:manage', 'presentation:manage'] } } as const;

const ListCacheView = object({
  size: z.number().int().describe('Cached lists'),
  hits: z.number().int().describe('Checks that used a cached list, since the start of the process'),
  misses: z.number().int().describe('Checks that fetched a list'),
  entries: z.array(object({ uri: z.string(), fetchedAt: z.iso.datetime(), expiresAt: z.iso.datetime() })),
  failing: z
    .array(
      object({
        uri: z.string(),
        reason: z.string().describe('Reason why it could not be fetched or was rejected'),
        failedAt: z.iso.datetime(),
        retriedAt: z.iso.datetime().describe('From then on the next check fetches it'),
      }),
    )
    .describe('Lists whose last fetch failed; older copies of them may be in use'),
});

const FollowedListView = object({
  uri: z.string(),
  checkedAt: z.iso.datetime().nullable().describe('Time of the last comparison with credentials'),
  failure: object({ since: z.iso.datetime(), count: z.number().int().describe('Attempts since then'), reason: z.string() })
    .nullable()
    .describe('Reason why it cannot be fetched at present; until then nothing is revoked'),
});

const CacheStatsView = object({
  trustListCache: ListCacheView,
  statusListCache: ListCacheView,
  revocationListCache: ListCacheView.describe('Revocation lists of issuers of certificates'),
  followedStatusLists: z
    .array(FollowedListView)
    .describe('Followed status lists of wallet providers, in all processes; failing lists first'),
}).meta({ id: 'CacheStats' });

type ClearQuery = z.ZodType<{ releases?: 'true' | 'false' | undefined }>;
const TrustListQuery: ClearQuery = object({
  releases: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      'True deletes the newest sequence numbers, too, for a list whose operator restarted its numbers. Otherwise they are ' +
        'kept, so that an older list is rejected.',
    ),
});
const NoQuery: ClearQuery = object({});

const CLEARS: readonly (Pick<Route, 'path' | 'operationId' | 'exampleParameters' | 'summary'> & {
  readonly lists: readonly CachedLists[];
})[] = [
  {
    path: '/cache',
    operationId: 'clearCaches',
    exampleParameters: { releases: 'true' },
    summary: 'Clear the cache of external lists',
    lists: ['trust-lists', 'status-lists', 'revocation-lists'],
  },
  {
    path: '/cache/trust-list',
    operationId: 'clearTrustListCache',
    exampleParameters: { releases: 'true' },
    summary: 'Clear the cache of external trust lists',
    lists: ['trust-lists'],
  },
  {
    path: '/cache/status-list',
    operationId: 'clearStatusListCache',
    summary: 'Clear the cache of external status lists',
    lists: ['status-lists'],
  },
];

/** Cached copies of external lists, as far as they were fetched for the caller's tenant. */
export const cacheRoutes = family({ getCacheStats: GetCacheStats, clearCaches: ClearCaches }, ({ getCacheStats, clearCaches }) => [
  route({
    ...common,
    method: 'get',
    path: '/cache/stats',
    operationId: 'getCacheStatistics',
    summary: 'Read statistics of the cache of external lists',
    description: 'Copies of the process that answers; each process has its own.',
    responses: { 200: CacheStatsView },
    async handle({ caller }) {
      const stats = await getCacheStats.execute(caller);
      const { trustLists, statusLists, revocationLists, followedLists } = stats;
      return reply(200, {
        trustListCache: toListCacheView(trustLists),
        statusListCache: toListCacheView(statusLists),
        revocationListCache: toListCacheView(revocationLists),
        followedStatusLists: followedLists.map(toFollowedListView),
      });
    },
  }),
  ...CLEARS.map(({ lists, ...documentation }) =>
    route({
      ...common,
      access: { ...common.access, unrestricted: true },
      method: 'delete',
      ...documentation,
      description: 'The next check fetches them.',
      query: lists.includes('trust-lists') ? TrustListQuery : NoQuery,
      responses: { 204: 'Done' },
      async handle({ caller, query }) {
        await clearCaches.execute(caller, lists, { releases: query.releases === 'true' });
        return { status: 204, empty: true };
      },
    }),
  ),
]);

function toListCacheView({ entries, failing, ...counts }: FetchedListStats) {
  return {
    ...counts,
    failing: failing.map(({ uri, failedAt, retriedAt, ...list }) => ({
      uri: withoutQuery(uri),
      ...list,
      failedAt: failedAt.toISOString(),
      retriedAt: retriedAt.toISOString(),
    })),
    entries: entries.map(({ uri, fetchedAt, expiresAt }) => ({
      uri: withoutQuery(uri),
      fetchedAt: fetchedAt.toISOString(),
      expiresAt: expiresAt.toISOString(),
    })),
  };
}

function toFollowedListView({ uri, checkedAt, failure }: FollowedList) {
  return {
    uri: withoutQuery(uri),
    checkedAt: checkedAt?.toISOString() ?? null,
    failure: failure && { ...failure, since: failure.since.toISOString() },
  };
}
