import { brandingOf, type TenantBranding } from '../../domain/tenants/branding.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** @param certificates see `brandingOf`. */
export async function tenantBranding(tenant: TenantConfiguration, certificates: readonly unknown[] = []): Promise<TenantBranding> {
  const issuance = await tenant.issuance();
  const name = issuance.display[0]?.name ?? (await tenant.tenant()).name;
  return brandingOf(name, issuance, certificates);
}
