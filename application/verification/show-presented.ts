import type { TenantId } from '../../domain/shared/ids.ts';
import type { TenantLook } from '../../domain/tenants/look.ts';
import { needs } from '../needs.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { tenantLook } from '../tenants/tenant-look.ts';

/** How the page looks of somebody whose wallets are sent to the page after a presentation. */
export class ShowPresented extends needs({ tenantConfigurations: TenantConfigurations }) {
  /** @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId): Promise<TenantLook> {
    return tenantLook(await this.ports.tenantConfigurations.serving(tenantId));
  }
}
