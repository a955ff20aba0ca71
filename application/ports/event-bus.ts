import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** Copies of the lists of others. */
export type CachedLists = 'trust-lists' | 'status-lists' | 'revocation-lists';

/** A hint that a row changed. The row is the truth: a lost or doubled hint costs latency, never correctness. */
export type WakeUp =
  | { readonly type: 'tenant'; readonly tenantId: TenantId }
  | { readonly type: 'session'; readonly tenantId: TenantId; readonly sessionId: SessionId }
  | { readonly type: 'status-list'; readonly tenantId: TenantId; readonly listId: string }
  /** Nobody's row: copies are dropped sooner than they would end by themselves. */
  | { readonly type: 'cache'; readonly tenantId: TenantId; readonly lists: CachedLists }
  /** Others may have been lost. What nothing else would put right is dropped or read again. */
  | { readonly type: 'missed' };

export abstract class EventBus {
  abstract publish(wakeUp: WakeUp): void;
  /** @returns how to stop listening. */
  abstract subscribe(listener: (wakeUp: WakeUp) => void): () => void;
}
