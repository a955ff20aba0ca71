import type { TenantCaller } from '../caller.ts';
import type { TenantRepositories } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';

type Work<T> = (own: TenantRepositories) => Promise<T>;

/** What a caller changes in its own tenant: in one transaction, and on record under its name. */
export function changeOwn<T>(store: Store, caller: TenantCaller, work: Work<T>): Promise<T> {
  return store.forTenant(caller.tenantId, work, { by: caller });
}

/** The same, while nobody else writes to what the tenant is configured with. */
export function changeOwnAlone<T>(store: Store, caller: TenantCaller, work: Work<T>): Promise<T> {
  return store.forTenant(caller.tenantId, work, { by: caller, alone: true });
}
