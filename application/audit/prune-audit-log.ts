import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { verifyEntries } from '../../domain/audit/verify-entries.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { AuditCodes } from '../ports/audit-codes.ts';
import { Clock } from '../ports/clock.ts';
import { Log } from '../ports/log.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { prunedUntil } from './pruned-until.ts';

/** Entries of one chain that go at a time. */
const AT_ONCE = 5_000;
const DAY_MS = 86_400_000;

/**
 * Ends what tenants' audit logs are kept for longer than `AUDIT_KEEP_DAYS`. An entry of the service's log says up to where, and is
 * what the rest is verified from; only what was found whole goes, so that no fault is covered up by it.
 */
export class PruneAuditLog extends needs({
  store: Store,
  auditCodes: AuditCodes,
  settings: ServiceSettings,
  clock: Clock,
  log: Log,
}) {
  /**
   * @param now of the database. @param limit chains that are looked at. @param after the one behind which to go on.
   * @returns the last chain that was looked at, undefined at the end of a walk over all; and how many entries went.
   */
  async execute(now: Date, limit: number, after?: TenantId): Promise<{ readonly last: TenantId | undefined; readonly gone: number }> {
    const { store, settings, clock } = this.ports;
    const { auditKeepDays: days } = settings;
    if (days === undefined) return { last: undefined, gone: 0 };
    // What went does not come back, so one clock that is ahead is not believed.
    const time = Math.min(now.getTime(), clock.now().getTime());
    const before = new Date(time - days * DAY_MS);
    // Once a day at most: each time leaves two entries.
    const due = await store.maintenance.oldAuditLogs(new Date(before.getTime() - DAY_MS), limit, after);
    let gone = 0;
    for (const tenantId of due) gone += await this.#prune(tenantId, before);
    return { last: due.length < limit ? undefined : due.at(-1), gone };
  }

  async #prune(tenantId: TenantId, before: Date): Promise<number> {
    const { store, auditCodes, log } = this.ports;
    const start = await prunedUntil(store, tenantId);
    const query = { ascending: true, after: start.sequence, limit: AT_ONCE } as const;
    const entries = await store.forTenant(tenantId, ({ audit }) => audit.list(query));
    const kept = entries.findIndex(({ at }) => at >= before);
    const old = kept === -1 ? entries : entries.slice(0, kept);
    const { progress, fault } = verifyEntries(auditCodes.macs, tenantId, start, old);
    if (fault !== undefined) {
      const { kind, message } = fault;
      log.error('an audit log is not pruned, since it is not as the service wrote it', { tenantId, kind, message });
      return 0;
    }
    if (progress.sequence > start.sequence) await store.forService(({ audit }) => audit.prune(tenantId, progress), { by: SYSTEM });
    return store.maintenance.removeAuditEntries(tenantId, progress.sequence, before);
  }
}
