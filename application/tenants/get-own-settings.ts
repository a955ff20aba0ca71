import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { TenantCaller } from '../caller.ts';

/** The caller's own tenant, as it was when the caller was authenticated. */
export class GetOwnSettings {
  async execute(caller: TenantCaller): Promise<Tenant> {
    return caller.configured.tenant();
  }
}
