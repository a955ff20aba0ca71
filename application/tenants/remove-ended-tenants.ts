import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { Store } from '../ports/store.ts';

/** Removes tenants whose time is over, as somebody would who deletes them; what there may be much of goes by another job. */
export class RemoveEndedTenants extends needs({ store: Store, eventBus: EventBus, clock: Clock, log: Log }) {
  /** @param now of the database. @returns how many went, and whether there may be more. */
  async execute(now: Date, limit: number): Promise<{ readonly removed: number; readonly mayBeMore: boolean }> {
    const { store, eventBus, clock, log } = this.ports;
    // What went does not come back, so one clock that is ahead is not believed.
    const time = new Date(Math.min(now.getTime(), clock.now().getTime()));
    const due = await store.maintenance.endedTenants(time, limit);
    let removed = 0;
    for (const tenantId of due) {
      try {
        const isGone = await store.forService(({ tenants }) => tenants.removeEnded(tenantId, time), { by: SYSTEM });
        if (!isGone) continue;
        removed++;
        eventBus.publish({ type: 'tenant', tenantId });
      } catch (error) {
        log.error('a tenant whose time is over cannot be removed', { tenantId }, error);
      }
    }
    return { removed, mayBeMore: removed > 0 && due.length === limit };
  }
}
