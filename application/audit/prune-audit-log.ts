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

/** Limit of entries that one call reads, and therefore prunes, of the log of one tenant. */
const MAX_PRUNED_ENTRIES = 5_000;
const DAY_MS = 86_400_000;

/**
 * Prunes the audit logs of tenants: removes entries older than `AUDIT_KEEP_DAYS`. An entry in the log of the service records the last
 * pruned entry, after which later verifications start. Only verified entries are pruned, so that pruning never hides that a log was
 * tampered with.
 */
export class PruneAuditLog extends needs({ store: Store, auditMacs: AuditMacs, settings: ServiceSettings, clock: Clock, log: Log }) {
  /**
   * @param now the time of the database.
   * @param limit the maximum number of tenants.
   * @param afterTenant `last` of the previous call.
   * @returns `last`, the last processed tenant, undefined if there are no more; and `removed`, the number of removed entries.
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
    const cutoff = new Date(time - days * DAY_MS);
    // A log is pruned at most once a day, since each pruning adds two entries.
    const tenantIds = await store.maintenance.oldAuditLogs(new Date(cutoff.getTime() - DAY_MS), limit, afterTenant);
    let removed = 0;
    for (const tenantId of tenantIds) removed += await this.#prune(tenantId, cutoff);
    return { last: tenantIds.length < limit ? undefined : tenantIds.at(-1), removed };
  }

  async #prune(tenantId: TenantId, cutoff: Date): Promise<number> {
    const { store, auditMacs, log } = this.ports;
    const start = await prunedUntil(store, tenantId);
    const query = { ascending: true, after: start.sequence, limit: MAX_PRUNED_ENTRIES } as const;
    const entries = await store.forTenant(tenantId, ({ audit }) => audit.list(query));
    const firstKeptIndex = entries.findIndex(({ at }) => at >= cutoff);
    const expiredEntries = firstKeptIndex === -1 ? entries : entries.slice(0, firstKeptIndex);
    const { progress, fault } = verifyEntries(auditMacs.macs, tenantId, start, expiredEntries);
    if (fault !== undefined) {
      const { kind, message } = fault;
      log.error('an audit log is not pruned, since it was tampered with', { tenantId, kind, message });
      return 0;
    }
    if (progress.sequence > start.sequence) await store.forService(({ audit }) => audit.prune(tenantId, progress), { by: SYSTEM });
    return store.maintenance.removeAuditEntries(tenantId, progress.sequence, cutoff);
  }
}
