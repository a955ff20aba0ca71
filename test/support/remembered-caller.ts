import type { CachedCaller, TenantCaller } from '../../application/caller.ts';

/** The caller as a process caches it, with unchanged rights. */
export function cachedCaller({ tenant: remembered, ...rest }: TenantCaller): CachedCaller {
  return { ...rest, cachedTenant: remembered, reauthorize: async (tenant) => ({ ...rest, tenant }) };
}
