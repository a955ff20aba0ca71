import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { verifyEntries } from '../../domain/audit/verify-entries.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { AuditMacs } from '../ports/audit-macs.ts';
import { Clock } from '../ports/clock.ts';
import { Log } from '../ports/log.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { prunedUntil } from './pruned-until.ts';

/** Maximum number of entries of one chain per call. */
const BATCH = 5_000;
const DAY_MS = 86_400_000;

/**
 * Prunes tenants' audit logs after `AUDIT_KEEP_DAYS`. An entry of the service's log records up to where, and is the start of later
 * verifications; only verified entries are pruned, so that no fault is covered up.
 */
export class PruneAuditLog extends needs({ store: Store, auditMacs: AuditMacs, settings: ServiceSettings, clock: Clock, log: Log }) {
  /**
   * @param now of the database. @param limit number of chains. @param afterTenant cursor.
   * @returns the last processed chain, undefined at the end of a pass; and the number of removed entries.
   */
  async execute(
    now: Date,
    limit: number,
    afterTenant?: TenantId,
  ): Promise<{ readonly last: TenantId | undefined; readonly removed: number }> {
    const { store, settings, clock } = this.ports;
    const { auditKeepDays: days } = settings;
    if (days === undefined) return { last: undefined, removed: 0 };
    // Pruning is irreversible, so the earlier of two clocks decides.
    const time = Math.min(now.getTime(), clock.now().getTime());
    const deadline = new Date(time - days * DAY_MS);
    // At most once a day, since each pruning adds two entries.
    const due = await store.maintenance.oldAuditLogs(new Date(deadline.getTime() - DAY_MS), limit, afterTenant);
    let removed = 0;
    for (const tenantId of due) removed += await this.#prune(tenantId, deadline);
    return { last: due.length < limit ? undefined : due.at(-1), removed };
  }

  async #prune(tenantId: TenantId, deadline: Date): Promise<number> {
    const { store, auditMacs, log } = this.ports;
    const start = await prunedUntil(store, tenantId);
    const query = { ascending: true, after: start.sequence, limit: BATCH } as const;
    const entries = await store.forTenant(tenantId, ({ audit }) => audit.list(query));
    const firstKeptIndex = entries.findIndex(({ at }) => at >= deadline);
    const expiredEntries = firstKeptIndex === -1 ? entries : entries.slice(0, firstKeptIndex);
    const { progress, fault } = verifyEntries(auditMacs.macs, tenantId, start, expiredEntries);
    if (fault !== undefined) {
      const { kind, message } = fault;
      log.error('an audit log is not pruned, since it was tampered with', { tenantId, kind, message });
      return 0;
    }
    if (progress.sequence > start.sequence) await store.forService(({ audit }) => audit.prune(tenantId, progress), { by: SYSTEM });
    return store.maintenance.removeAuditEntries(tenantId, progress.sequence, deadline);
  }
}
