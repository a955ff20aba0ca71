import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { Store } from '../ports/store.ts';

/** Removes tenants after their end date; another job removes the rows of large tables. */
export class RemoveEndedTenants extends needs({ store: Store, eventBus: EventBus, clock: Clock, log: Log }) {
  /** @param now the time of the database. @returns the number of removed tenants, and true in `mayBeMore` if there may be more. */
  async execute(now: Date, limit: number): Promise<{ readonly removed: number; readonly mayBeMore: boolean }> {
    const { store, eventBus, clock, log } = this.ports;
    // Removal is irreversible, so the earlier of two clocks decides.
    const time = new Date(Math.min(now.getTime(), clock.now().getTime()));
    const tenantIds = await store.maintenance.endedTenants(time, limit);
    let removed = 0;
    for (const tenantId of tenantIds) {
      try {
        const isRemoved = await store.forService(({ tenants }) => tenants.removeEnded(tenantId, time), { by: SYSTEM });
        if (!isRemoved) continue;
        removed++;
        eventBus.publish({ type: 'tenant', tenantId });
      } catch (error) {
        log.error('a tenant past its end date was not removed', { tenantId }, error);
      }
    }
    return { removed, mayBeMore: removed > 0 && tenantIds.length === limit };
  }
}
