import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfigurations } from '../tenant-configuration.ts';
import { statusListUri } from './status-allocator.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly settings: ServiceSettings;
};

/** The public addresses of a tenant's status lists (Token Status List section 9). */
export class AggregateStatusLists {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found` for an unknown tenant, and for one whose lists take no part in aggregation. */
  async execute(tenantId: TenantId): Promise<readonly string[]> {
    const { store, tenantConfigurations, settings } = this.#ports;
    const head = await store.read(tenantId).state();
    if (head === undefined) throw new Failure('not_found', 'unknown address');
    const configured = tenantConfigurations.of(head);
    const lists = (await configured.statusLists()).filter((list) => list.enableAggregation);
    const wanted = (await configured.tenant()).statusListConfig?.enableAggregation ?? true;
    if (lists.length === 0 && !wanted) throw new Failure('not_found', 'unknown address');
    return lists.map((list) => statusListUri(settings, tenantId, list.id));
  }
}
