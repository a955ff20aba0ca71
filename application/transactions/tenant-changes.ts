import type { TenantCaller } from '../caller.ts';
import type { TenantRepositories } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';

type TransactionWork<T> = (repositories: TenantRepositories) => Promise<T>;

/** Writes to the caller's tenant in one transaction, recorded in the audit log under its name. */
export function changeTenant<T>(store: Store, caller: TenantCaller, work: TransactionWork<T>): Promise<T> {
  return store.forTenant(caller.tenantId, work, { by: caller });
}

/** Like `changeTenant`, serialized with other changes that depend on several documents of the tenant. */
export function changeTenantExclusively<T>(store: Store, caller: TenantCaller, work: TransactionWork<T>): Promise<T> {
  return store.forTenant(caller.tenantId, work, { by: caller, exclusive: true });
}
