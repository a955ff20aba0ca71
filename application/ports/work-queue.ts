import type { TenantId } from '../../domain/shared/ids.ts';

/**
 * Background work that any process can do. The database holds the work itself; a task only says where to look, so a duplicate or late
 * task finds nothing to do.
 */
export type BackgroundTask =
  | { readonly type: 'trust-list'; readonly tenantId: TenantId; readonly id: string; readonly nextUpdate: Date }
  | { readonly type: 'key-chains'; readonly tenantId: TenantId };

/** Offers a task to all processes. @returns false when the caller has to do it. */
export type OfferTask = (task: BackgroundTask) => Promise<boolean>;

export abstract class WorkQueue {
  abstract readonly offer: OfferTask;
  /** Processes tasks of all processes, one at a time. @returns a function that stops after the current task. */
  abstract serve(work: (task: BackgroundTask) => Promise<void>): () => Promise<void>;
}
