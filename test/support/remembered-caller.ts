import type { CachedCaller, TenantCaller } from '../../application/caller.ts';

/** The caller as a process remembers it; its rights are the same when they are judged anew. */
export function cachedCaller({ tenant: remembered, ...rest }: TenantCaller): CachedCaller {
  return { ...rest, cachedTenant: remembered, reauthorize: async (tenant) => ({ ...rest, tenant }) };
}
