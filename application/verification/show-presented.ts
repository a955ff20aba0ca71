import type { TenantId } from '../../domain/shared/ids.ts';
import type { TenantBranding } from '../../domain/tenants/branding.ts';
import { needs } from '../needs.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { tenantBranding } from '../tenants/tenant-branding.ts';

/** The branding of the tenant for the page that is shown after a presentation. */
export class ShowPresented extends needs({ tenantConfigurations: TenantConfigurations }) {
  /** @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId): Promise<TenantBranding> {
    return tenantBranding(await this.ports.tenantConfigurations.readServing(tenantId));
  }
}
