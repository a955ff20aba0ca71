import type { IssuedBatch, StatusList } from '../../domain/status-lists/status-list.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/**
 * The lists of these batches by id. A list that another process created a moment ago may be missing in the cache; one that is missing in
 * the result was removed.
 * @param batches must have been read before the call.
 */
export async function listsOfBatches(
  store: Store,
  tenant: TenantConfiguration,
  batches: readonly Pick<IssuedBatch, 'statusListId'>[],
): Promise<ReadonlyMap<string, StatusList>> {
  const cachedLists = byId(await tenant.statusLists());
  const isComplete = batches.every(({ statusListId: id }) => id === null || cachedLists.has(id));
  if (isComplete) return cachedLists;
  return byId(await store.forTenant(tenant.tenantId, ({ statusLists }) => statusLists.list()));
}

function byId(lists: readonly StatusList[]): ReadonlyMap<string, StatusList> {
  return new Map(lists.map((list) => [list.id, list]));
}
