import type { FollowedList } from '../../domain/status-lists/wallet-status.ts';
import type { TenantCaller } from '../caller.ts';
import { RevocationLists } from '../certificate-status/revocation-lists.ts';
import { needs } from '../needs.ts';
import { type CachedLists, EventBus } from '../ports/event-bus.ts';
import { Store } from '../ports/store.ts';
import { RemoteStatusLists } from '../status-lists/remote-status-lists.ts';
import { changeTenant } from '../transactions/tenant-changes.ts';
import type { FetchedListStats } from '../trust-lists/fetched-lists.ts';
import { TrustLists } from '../trust-lists/remote-trust-lists.ts';

export type CacheStats = Readonly<Record<'trustLists' | 'statusLists' | 'revocationLists', FetchedListStats>> & {
  /** Status lists that issued credentials follow, failing ones first. */
  readonly followedLists: readonly FollowedList[];
};

const MAX_FOLLOWED = 200;

/** Statistics of the lists that this process caches for the tenant. */
export class GetCacheStats extends needs({
  trustLists: TrustLists,
  remoteStatusLists: RemoteStatusLists,
  revocationLists: RevocationLists,
  store: Store,
}) {
  async execute({ tenantId }: TenantCaller): Promise<CacheStats> {
    const { trustLists, remoteStatusLists, revocationLists } = this.ports;
    return {
      trustLists: trustLists.stats(tenantId),
      statusLists: remoteStatusLists.stats(tenantId),
      revocationLists: revocationLists.stats(tenantId),
      followedLists: await this.ports.store.maintenance.followedLists(tenantId, MAX_FOLLOWED),
    };
  }
}

/** Drops cached lists, so that the next check fetches them: used after an entry was removed from a list. */
export class ClearCaches extends needs({ store: Store, eventBus: EventBus }) {
  /**
   * All caches in every process that the event bus reaches are notified.
   * @param releases also forgets the highest list version: used after an operator restarted the numbering.
   */
  async execute(
    caller: TenantCaller,
    lists: readonly CachedLists[],
    { releases = false }: { readonly releases?: boolean } = {},
  ): Promise<void> {
    const { store, eventBus } = this.ports;
    const { tenantId } = caller;
    const change = { action: 'cleared', kind: 'cache', target: lists.join(' '), changes: [] } as const;
    await changeTenant(store, caller, async ({ audit, seenReleases }) => {
      audit.note(change);
      if (releases) await seenReleases.removeAll();
    });
    if (lists.includes('trust-lists')) {
      const tenantLists = store.lists(tenantId);
      await (releases ? tenantLists.dropCopies() : tenantLists.distrustCopies());
    }
    for (const list of lists) eventBus.publish({ type: 'cache', tenantId, lists: list });
  }
}
