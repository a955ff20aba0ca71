import type { SessionStorageConfig, StatusListConfig, Tenant } from '../../domain/tenants/tenant.ts';
import type { TenantCaller } from '../caller.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import { mergeSettings } from './merge-settings.ts';

type Ports = { readonly store: Store; readonly clock: Clock };

/** Null for a whole object or for a field of it brings the global default back; absent leaves it. */
export type SettingsChange = {
  readonly sessionConfig?: SessionStorageConfig | null;
  readonly statusListConfig?: StatusListConfig | null;
};

/** A tenant changes its own settings for sessions and for status lists made from now on. */
export class ChangeOwnSettings {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `conflict` when somebody else changed the tenant at the same time. */
  async execute(caller: TenantCaller, wanted: SettingsChange): Promise<Tenant> {
    const { store, clock } = this.#ports;
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
