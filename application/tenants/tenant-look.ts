import { lookOf, type TenantLook } from '../../domain/tenants/look.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** @param certificates see `lookOf`. */
export async function tenantLook(configured: TenantConfiguration, certificates: readonly unknown[] = []): Promise<TenantLook> {
  const issuance = await configured.issuance();
  const name = issuance.display[0]?.name ?? (await configured.tenant()).name;
  return lookOf(name, issuance, certificates);
}
