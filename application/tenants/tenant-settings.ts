import type { SessionStorageConfig, StatusListConfig, Tenant } from '../../domain/tenants/tenant.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Store } from '../ports/store.ts';
import { changeTenant } from '../transactions/tenant-changes.ts';

/**
 * Merges a change into stored settings (RFC 7396): absent keeps a field, null resets it to the global default.
 * @returns null when only defaults remain.
 */
export function mergeSettings<T extends object>(storedSettings: T | null, change: T | null | undefined): T | null {
  if (change === undefined) return storedSettings;
  if (change === null) return null;
  const fields = Object.entries({ ...storedSettings, ...change }).filter(([, value]) => value !== null && value !== undefined);
  return fields.length === 0 ? null : (Object.fromEntries(fields) as T);
}

/** Null for an object or a field of it resets to the global default; absent keeps it. */
export type SettingsChange = { readonly sessionConfig?: SessionStorageConfig | null; readonly statusListConfig?: StatusListConfig | null };

/** The caller's tenant, as it was when the caller was authenticated. */
export class GetTenantSettings extends needs({}) {
  async execute(caller: TenantCaller): Promise<Tenant> {
    return caller.tenant.tenant();
  }
}

/** Changes a tenant's settings for new sessions and status lists. */
export class UpdateTenantSettings extends needs({ store: Store, clock: Clock }) {
  /** @throws Failure `conflict` after a concurrent change of the tenant. */
  async execute(caller: TenantCaller, change: SettingsChange): Promise<Tenant> {
    const { store, clock } = this.ports;
    return changeTenant(store, caller, async ({ tenant }) => {
      const storedTenant = await tenant.get();
      return tenant.save({
        ...storedTenant,
        sessionConfig: mergeSettings(storedTenant.sessionConfig, change.sessionConfig),
        statusListConfig: mergeSettings(storedTenant.statusListConfig, change.statusListConfig),
        updatedAt: clock.now(),
      });
    });
  }
}
