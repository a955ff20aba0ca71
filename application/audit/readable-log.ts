import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import { isRestricted } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Caller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

/**
 * Determines the chain of the audit log that a caller reads: its tenant's, or that of the service, or with `tenant` that of one.
 * @returns the tenant, or `SERVICE_SCOPE`.
 * @throws Failure `not_found` for another tenant, existing or not; `forbidden` for a client
 *   that is restricted to some configurations, since the log covers all.
 */
export async function readableLog(store: Store, caller: Caller, tenant: string | undefined): Promise<TenantId | typeof SERVICE_SCOPE> {
  if (caller.tenantId === null) {
    if (tenant === undefined) return SERVICE_SCOPE;
    return (await store.forTenant(tenant as TenantId, (repositories) => repositories.tenant.get())).id;
  }
  if (tenant !== undefined && tenant !== caller.tenantId) throw new Failure('not_found', 'there is no such tenant');
  if (isRestricted(caller)) throw new Failure('forbidden', 'this client is restricted to some configurations, but the log covers all');
  return caller.tenantId;
}
