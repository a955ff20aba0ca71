import { detailOf } from '../../domain/audit/audit-entry.ts';
import { type Progress, START } from '../../domain/audit/verify-entries.ts';
import type { AuditQuery } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';

/** @returns the last entry of a tenant's chain that is kept no longer, as the chain of the service says: the rest follows it. */
export async function prunedUntil(store: Store, tenantId: string): Promise<Progress> {
  const newest = async (query: Pick<AuditQuery, 'kind' | 'action'>) => {
    const wanted = { ...query, target: tenantId, limit: 1 } as const;
    return (await store.forService(({ audit }) => audit.list(wanted)))[0];
  };
  const pruned = await newest({ kind: 'audit-log', action: 'pruned' });
  if (pruned === undefined) return START;
  // A tenant of the same id that was made later has a chain of its own.
  const creation = await newest({ kind: 'tenant', action: 'created' });
  if (creation !== undefined && creation.sequence > pruned.sequence) return START;
  const { sequence, hash } = detailOf(pruned).of ?? START;
  return { sequence, hash };
}
