import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** A delivery whose process did not say what came of it. */
export type PendingDelivery = {
  readonly tenantId: TenantId;
  readonly sessionId: SessionId;
  readonly id: string;
  /** Since when somebody else may make it. */
  readonly dueAt: Date;
};

/** What jobs do about deliveries that nobody finished. Each finds the delivery as it was read, or does nothing. */
export type PendingDeliveries = {
  /** Those that wait longest first. @param ofEach tenant at most. */
  dueDeliveries(now: Date, limit: number, ofEach: number): Promise<readonly PendingDelivery[]>;
  /** There is nothing to be made of it any more. */
  forgetDelivery(delivery: PendingDelivery): Promise<void>;
  postponeDelivery(delivery: PendingDelivery, until: Date): Promise<void>;
};
