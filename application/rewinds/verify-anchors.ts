import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Anchor } from '../audit/chain-reports.ts';
import type { AuditLog } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';
import { RewindRefusedError } from './assert-not-rewound.ts';

/**
 * Checks that chains of the audit log still contain the entries that an operator recorded elsewhere.
 * @param anchors by chain. @throws RewindRefusedError when a chain ends before its anchor, or has another entry there.
 */
export async function verifyAnchors(store: Pick<Store, 'forTenant' | 'forService'>, anchors: ReadonlyMap<string, Anchor>): Promise<void> {
  for (const [scope, anchor] of anchors) {
    const holds =
      scope === SERVICE_SCOPE
        ? await store.forService(({ audit }) => containsAnchor(audit, anchor))
        : await store.forTenant(scope as TenantId, ({ audit }) => containsAnchor(audit, anchor));
    if (holds) continue;
    const name = scope === SERVICE_SCOPE ? 'of the service' : `of the tenant ${scope}`;
    throw new RewindRefusedError(
      `EXPECT_AUDIT_LOG: the audit log ${name} does not contain the expected entry ${anchor.sequence}: the database went back in ` +
        'time, or was tampered with. `npx vidimus audit verify` (in a clone `npm run audit:verify`) shows details, and ' +
        '`npx vidimus restore fence --force` (in a clone `npm run restore:fence -- --force`) invalidates earlier values; see docs/guides/backup-and-restore.md. Then set the present end of the log',
    );
  }
}

/** True for the expected entry, and for one that was pruned. */
async function containsAnchor(audit: AuditLog, { sequence, hash }: Anchor): Promise<boolean> {
  const [entry] = await audit.list({ limit: 1, ascending: true, after: sequence - 1 });
  if (entry === undefined) return false;
  return entry.sequence > sequence || entry.hash === hash;
}
