import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { TenantConfigurations } from '../tenant-configurations.ts';
import { statusListUri } from './status-allocator.ts';

/** The public addresses of a tenant's status lists (Token Status List section 9). */
export class AggregateStatusLists extends needs({
  tenantConfigurations: TenantConfigurations,
  settings: ServiceSettings,
}) {
  /** @throws Failure `not_found` for an unknown tenant, and for one whose lists take no part in aggregation. */
  async execute(tenantId: TenantId): Promise<readonly string[]> {
    const { tenantConfigurations, settings } = this.ports;
    const configured = await tenantConfigurations.stored(tenantId);
    if (configured === undefined) throw new Failure('not_found', 'unknown address');
    const lists = (await configured.statusLists()).filter((list) => list.enableAggregation);
    const wanted = (await configured.tenant()).statusListConfig?.enableAggregation ?? true;
    if (lists.length === 0 && !wanted) throw new Failure('not_found', 'unknown address');
    return lists.map((list) => statusListUri(settings, tenantId, list.id));
  }
}
