import type { TenantId } from '../../domain/shared/ids.ts';

/**
 * Background work that any process can do. What there is to do stands in the database; a task says where to look. So a
 * task that comes twice, or late, finds nothing to do.
 */
export type Task =
  | { readonly type: 'trust-list'; readonly tenantId: TenantId; readonly id: string; readonly nextUpdate: Date }
  | { readonly type: 'key-chains'; readonly tenantId: TenantId };

/** Hands a task to any process. @returns false when the caller has to do it. */
export type HandOver = (task: Task) => Promise<boolean>;

export abstract class WorkQueue {
  abstract readonly offer: HandOver;
  /** Does tasks of all processes from now on, one at a time. @returns what stops that, after the task under way. */
  abstract serve(work: (task: Task) => Promise<void>): () => Promise<void>;
}
