import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { TenantConfigurations } from '../tenant-configurations.ts';

/** Whether there is somebody whose wallets are sent to the page after a presentation. */
export class ShowPresented extends needs({ tenantConfigurations: TenantConfigurations }) {
  /** @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId): Promise<void> {
    await this.ports.tenantConfigurations.serving(tenantId);
  }
}
