import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** Kinds of cached third-party lists. */
export type CachedLists = 'trust-lists' | 'status-lists' | 'revocation-lists';

/** A hint that a row changed. The row is the truth: a lost or duplicate hint costs latency, never correctness. */
export type WakeUp =
  | { readonly type: 'tenant'; readonly tenantId: TenantId }
  | { readonly type: 'session'; readonly tenantId: TenantId; readonly sessionId: SessionId }
  | { readonly type: 'status-list'; readonly tenantId: TenantId; readonly listId: string }
  /** Copies of third-party lists are dropped before they expire. There is no row for this hint. */
  | { readonly type: 'cache'; readonly tenantId: TenantId; readonly lists: CachedLists }
  /** Hints may have been lost. Subscribers drop or re-read everything that nothing else would correct. */
  | { readonly type: 'missed' };

export abstract class EventBus {
  abstract publish(wakeUp: WakeUp): void;
  /** @returns a function that ends the subscription. */
  abstract subscribe(listener: (wakeUp: WakeUp) => void): () => void;
}
