import { makeChallenge } from '../../domain/oauth/challenge.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { SERVING } from '../../domain/tenants/tenant.ts';
import type { World } from '../known.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';

/** A challenge that says itself what it is for and when it was made: nothing is stored. */
export function freshChallenge(
  { random, settings }: { readonly random: Random; readonly settings: ServiceSettings },
  tenantId: TenantId,
  purpose: string,
  now: Date,
): string {
  const [key] = settings.nonceKeys;
  if (key === undefined) throw new Error('no key for challenges');
  return makeChallenge(key, tenantId, purpose, now, random.bytes(10));
}

/**
 * The tenant for whose wallets a challenge is made. That it serves may be a second old: the request that brings the
 * challenge back is judged anew.
 * @throws Failure `not_found` for an unknown or suspended tenant.
 */
export async function challengingTenant(
  { store, tenantConfigurations }: Pick<World, 'store' | 'tenantConfigurations'>,
  tenantId: TenantId,
): Promise<TenantConfiguration> {
  const recent = tenantConfigurations.recent(tenantId);
  if (recent?.state.status === SERVING) return recent;
  return tenantConfigurations.ofWallet(await store.read(tenantId).state());
}
