import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Anchor } from '../audit/chain-reports.ts';
import type { AuditLog } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';
import { RewindRefused } from './assert-not-rewound.ts';

/**
 * Looks whether chains of the audit log still have the entries that somebody kept elsewhere.
 * @param anchors by chain. @throws RewindRefused when one ends before its anchor, or has another entry there.
 */
export async function verifyAnchors(store: Pick<Store, 'forTenant' | 'forService'>, anchors: ReadonlyMap<string, Anchor>): Promise<void> {
  for (const [scope, anchor] of anchors) {
    const holds =
      scope === SERVICE_SCOPE
        ? await store.forService(({ audit }) => isThere(audit, anchor))
        : await store.forTenant(scope as TenantId, ({ audit }) => isThere(audit, anchor));
    if (holds) continue;
    const name = scope === SERVICE_SCOPE ? 'of the service' : `of the tenant ${scope}`;
    throw new RewindRefused(
      `EXPECT_AUDIT_LOG: the audit log ${name} does not have its entry ${anchor.sequence} as it was: the database has gone back in ` +
        'time, or somebody changed it. `npx vidimus audit verify` (in a clone `npm run audit:verify`) looks closer, and ' +
        '`npx vidimus restore fence --force` (in a clone `npm run restore:fence -- --force`) sees to it that nothing from before counts; see docs/backup-and-restore.md. Then state what the log ends with now',
    );
  }
}

/** What was pruned before its time is not held against the database. */
async function isThere(audit: AuditLog, { sequence, hash }: Anchor): Promise<boolean> {
  const [entry] = await audit.list({ limit: 1, ascending: true, after: sequence - 1 });
  if (entry === undefined) return false;
  return entry.sequence > sequence || entry.hash === hash;
}
