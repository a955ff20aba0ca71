import type { SessionStorageConfig, StatusListConfig, Tenant } from '../../domain/tenants/tenant.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Store } from '../ports/store.ts';
import { changeOwn } from '../transactions/own-changes.ts';

/**
 * Writes a wish over stored settings (RFC 7396): absent leaves a field, null brings the global default back.
 * @returns null when nothing but defaults remains.
 */
export function mergeSettings<T extends object>(stored: T | null, wish: T | null | undefined): T | null {
  if (wish === undefined) return stored;
  if (wish === null) return null;
  const fields = Object.entries({ ...stored, ...wish }).filter(([, value]) => value !== null && value !== undefined);
  return fields.length === 0 ? null : (Object.fromEntries(fields) as T);
}

/** Null for a whole object or for a field of it brings the global default back; absent leaves it. */
export type SettingsChange = { readonly sessionConfig?: SessionStorageConfig | null; readonly statusListConfig?: StatusListConfig | null };

/** The caller's own tenant, as it was when the caller was authenticated. */
export class GetOwnSettings extends needs({}) {
  async execute(caller: TenantCaller): Promise<Tenant> {
    return caller.configured.tenant();
  }
}

/** A tenant changes its own settings for sessions and for status lists made from now on. */
export class UpdateOwnSettings extends needs({ store: Store, clock: Clock }) {
  /** @throws Failure `conflict` when somebody else changed the tenant at the same time. */
  async execute(caller: TenantCaller, wanted: SettingsChange): Promise<Tenant> {
    const { store, clock } = this.ports;
    return changeOwn(store, caller, async ({ tenant }) => {
      const before = await tenant.get();
      return tenant.save({
        ...before,
        sessionConfig: mergeSettings(before.sessionConfig, wanted.sessionConfig),
        statusListConfig: mergeSettings(before.statusListConfig, wanted.statusListConfig),
        updatedAt: clock.now(),
      });
    });
  }
}
