import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Store, StoreUnavailableError } from '../ports/store.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { SubjectRevoker } from './subject-revoker.ts';

const RETRY_MS = 300_000;

/** Completes revocation orders that the ordering call did not complete itself. */
export class FulfilRevocations extends needs({
  store: Store,
  tenantConfigurations: TenantConfigurations,
  subjectRevoker: SubjectRevoker,
  log: Log,
}) {
  /** @returns the number of processed orders, at most `limit`. */
  async execute(now: Date, limit: number): Promise<number> {
    const { store, tenantConfigurations, subjectRevoker, log } = this.ports;
    const orders = await store.maintenance.dueRevocationOrders(now, limit);
    for (const order of orders) {
      try {
        const tenant = await tenantConfigurations.readStored(order.tenantId);
        // The rows of the order are removed with all others of the tenant.
        if (tenant === undefined) throw new Error('the tenant was removed');
        await subjectRevoker.revoke(tenant, order, SYSTEM);
      } catch (error) {
        if (error instanceof StoreUnavailableError) throw error;
        // A failed order does not delay the others.
        log.error('credentials of a subject are not yet revoked', { tenantId: order.tenantId }, error);
        await store.maintenance.postponeOrder(order, new Date(now.getTime() + RETRY_MS));
      }
    }
    return orders.length;
  }
}
