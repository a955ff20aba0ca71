import type { TenantCaller } from '../caller.ts';
import type { CachedLists, EventBus } from '../ports/event-bus.ts';
import type { Store } from '../ports/store.ts';
import type { RemoteStatusLists } from '../status-lists/remote-status-lists.ts';
import type { FetchedListStats } from '../trust-lists/fetched-lists.ts';
import type { TrustLists } from '../trust-lists/remote-trust-lists.ts';

export type CacheStats = { readonly trustLists: FetchedListStats; readonly statusLists: FetchedListStats };

/** What this process keeps of the lists that the tenant relies on. */
export class ReadCacheStats {
  readonly #ports: { readonly trustLists: TrustLists; readonly remoteStatusLists: RemoteStatusLists };

  constructor(ports: { readonly trustLists: TrustLists; readonly remoteStatusLists: RemoteStatusLists }) {
    this.#ports = ports;
  }

  execute({ tenantId }: TenantCaller): CacheStats {
    const { trustLists, remoteStatusLists } = this.#ports;
    return { trustLists: trustLists.stats(tenantId), statusLists: remoteStatusLists.stats(tenantId) };
  }
}

/** Drops copies of lists, so that the next check fetches them anew: for when somebody was taken off one just now. */
export class ClearCaches {
  readonly #ports: { readonly store: Store; readonly eventBus: EventBus };

  constructor(ports: { readonly store: Store; readonly eventBus: EventBus }) {
    this.#ports = ports;
  }

  /**
   * Whoever keeps copies listens, in every process that the event bus reaches.
   * @param releases also forgets how new the trust lists were: after an operator began its numbers anew.
   */
  async execute(
    caller: TenantCaller,
    lists: readonly CachedLists[],
    { releases = false }: { readonly releases?: boolean } = {},
  ): Promise<void> {
    const { store, eventBus } = this.#ports;
    const { tenantId } = caller;
    const change = { action: 'cleared', kind: 'cache', target: lists.join(' '), changes: [] } as const;
    await store.forTenant(
      tenantId,
      async ({ audit, seenReleases }) => {
        audit.note(change);
        if (releases) await seenReleases.removeAll();
      },
      { by: caller },
    );
    for (const list of lists) eventBus.publish({ type: 'cache', tenantId, lists: list });
  }
}
