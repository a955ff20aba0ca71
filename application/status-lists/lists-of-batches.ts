import type { IssuedBatch, StatusList } from '../../domain/status-lists/status-list.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/**
 * The lists that these batches have their entries in, by their ids. A list that another process made a moment ago may not be
 * among those that are at hand; one that is missing here is gone.
 * @param batches as they were read before.
 */
export async function listsOfBatches(
  store: Store,
  configured: TenantConfiguration,
  batches: readonly Pick<IssuedBatch, 'statusListId'>[],
): Promise<ReadonlyMap<string, StatusList>> {
  const known = byId(await configured.statusLists());
  const isAtHand = batches.every(({ statusListId: id }) => id === null || known.has(id));
  if (isAtHand) return known;
  return byId(await store.forTenant(configured.tenantId, ({ statusLists }) => statusLists.list()));
}

function byId(lists: readonly StatusList[]): ReadonlyMap<string, StatusList> {
  return new Map(lists.map((list) => [list.id, list]));
}
