import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Store, StoreUnavailable } from '../ports/store.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { SubjectRevoker } from './subject-revoker.ts';

const RETRY_MS = 300_000;

/** Revokes what was ordered and what the call that ordered it did not come to. */
export class FulfilRevocations extends needs({
  store: Store,
  tenantConfigurations: TenantConfigurations,
  subjectRevoker: SubjectRevoker,
  log: Log,
}) {
  /** @returns how many orders it looked at, at most `limit`. */
  async execute(now: Date, limit: number): Promise<number> {
    const { store, tenantConfigurations, subjectRevoker, log } = this.ports;
    const orders = await store.maintenance.dueRevocationOrders(now, limit);
    for (const order of orders) {
      try {
        const configured = await tenantConfigurations.stored(order.tenantId);
        // Its rows go with those of everything else that it had.
        if (configured === undefined) throw new Error('the tenant is gone');
        await subjectRevoker.revoke(configured, order, SYSTEM);
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        // One that cannot be done holds up nobody else's.
        log.error('credentials of a person are yet to be revoked', { tenantId: order.tenantId }, error);
        await store.maintenance.postponeOrder(order, new Date(now.getTime() + RETRY_MS));
      }
    }
    return orders.length;
  }
}
