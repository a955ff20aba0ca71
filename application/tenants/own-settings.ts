import type { SessionStorageConfig, StatusListConfig, Tenant } from '../../domain/tenants/tenant.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Store } from '../ports/store.ts';
import { mergeSettings } from './merge-settings.ts';

/** Null for a whole object or for a field of it brings the global default back; absent leaves it. */
export type SettingsChange = {
  readonly sessionConfig?: SessionStorageConfig | null;
  readonly statusListConfig?: StatusListConfig | null;
};

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
    return store.forTenant(
      caller.tenantId,
      async ({ tenant }) => {
        const before = await tenant.get();
        return tenant.save({
          ...before,
          sessionConfig: mergeSettings(before.sessionConfig, wanted.sessionConfig),
          statusListConfig: mergeSettings(before.statusListConfig, wanted.statusListConfig),
          updatedAt: clock.now(),
        });
      },
      { by: caller },
    );
  }
}
