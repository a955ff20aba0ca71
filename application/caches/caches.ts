import type { FollowedList } from '../../domain/status-lists/wallet-status.ts';
import type { TenantCaller } from '../caller.ts';
import { RevocationLists } from '../certificate-status/revocation-lists.ts';
import { needs } from '../needs.ts';
import { type CachedLists, EventBus } from '../ports/event-bus.ts';
import { Store } from '../ports/store.ts';
import { RemoteStatusLists } from '../status-lists/remote-status-lists.ts';
import { changeOwn } from '../transactions/own-changes.ts';
import type { FetchedListStats } from '../trust-lists/fetched-lists.ts';
import { TrustLists } from '../trust-lists/remote-trust-lists.ts';

export type CacheStats = Readonly<Record<'trustLists' | 'statusLists' | 'revocationLists', FetchedListStats>> & {
  /** Status lists that issued credentials follow, those that fail first. */
  readonly followedLists: readonly FollowedList[];
};

/** Lists that are shown of those that credentials follow. */
const MAX_FOLLOWED = 200;

/** What this process keeps of the lists that the tenant relies on. */
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

/** Drops copies of lists, so that the next check fetches them anew: for when somebody was taken off one just now. */
export class ClearCaches extends needs({ store: Store, eventBus: EventBus }) {
  /**
   * Everything that keeps copies listens, in every process that the event bus reaches.
   * @param releases also forgets how new the trust lists were: after an operator began its numbers anew.
   */
  async execute(
    caller: TenantCaller,
    lists: readonly CachedLists[],
    { releases = false }: { readonly releases?: boolean } = {},
  ): Promise<void> {
    const { store, eventBus } = this.ports;
    const { tenantId } = caller;
    const change = { action: 'cleared', kind: 'cache', target: lists.join(' '), changes: [] } as const;
    await changeOwn(store, caller, async ({ audit, seenReleases }) => {
      audit.note(change);
      if (releases) await seenReleases.removeAll();
    });
    if (lists.includes('trust-lists')) {
      const kept = store.lists(tenantId);
      await (releases ? kept.dropCopies() : kept.distrustCopies());
    }
    for (const list of lists) eventBus.publish({ type: 'cache', tenantId, lists: list });
  }
}
