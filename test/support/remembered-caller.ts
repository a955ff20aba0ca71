import type { RememberedCaller, TenantCaller } from '../../application/caller.ts';

/** The caller as a process remembers it; its rights are the same when they are judged anew. */
export function rememberedCaller({ configured: remembered, ...rest }: TenantCaller): RememberedCaller {
  return { ...rest, remembered, again: async (configured) => ({ ...rest, configured }) };
}
