import { type CallerRules, callerRules } from '../../domain/oauth/profile.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';

/** What the profile of the tenant demands of wallets; a tenant that names none follows none. */
export async function callerRulesOf(configured: TenantConfiguration): Promise<CallerRules> {
  const tenant: object = await configured.tenant();
  return callerRules('profile' in tenant && tenant.profile === 'haip' ? tenant.profile : undefined);
}
