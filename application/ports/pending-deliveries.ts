import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** A delivery whose process did not report an outcome. */
export type PendingDelivery = {
  readonly tenantId: TenantId;
  readonly sessionId: SessionId;
  readonly id: string;
  /** Time from which another process may retry it. */
  readonly dueAt: Date;
};

/** Jobs for unfinished deliveries. Each call applies only if the delivery is as it was read. */
export type PendingDeliveries = {
  /** Those that wait longest first. @param perTenant maximum per tenant. */
  dueDeliveries(now: Date, limit: number, perTenant: number): Promise<readonly PendingDelivery[]>;
  /** Removes a delivery that needs no further attempt. */
  forgetDelivery(delivery: PendingDelivery): Promise<void>;
  postponeDelivery(delivery: PendingDelivery, dueAt: Date): Promise<void>;
};
