import { cacheRoutes } from '../../adapters/http/caches/cache.routes.ts';
import { ClearCaches, GetCacheStats } from '../../application/caches/caches.ts';
import type { Feature } from './feature.ts';

/** Copies of the lists of others. */
export const caches: Feature = { classes: [GetCacheStats, ClearCaches], administered: [cacheRoutes] };
