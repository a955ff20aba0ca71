import { detailOf } from '../../domain/audit/audit-entry.ts';
import { CHAIN_START, type Progress } from '../../domain/audit/verify-entries.ts';
import type { AuditQuery } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';

/** @returns the last pruned entry of a tenant's chain according to the service's chain; the remaining entries follow it. */
export async function prunedUntil(store: Store, tenantId: string): Promise<Progress> {
  const newest = async (query: Pick<AuditQuery, 'kind' | 'action'>) => {
    const entryQuery = { ...query, target: tenantId, limit: 1 } as const;
    return (await store.forService(({ audit }) => audit.list(entryQuery)))[0];
  };
  const pruned = await newest({ kind: 'audit-log', action: 'pruned' });
  if (pruned === undefined) return CHAIN_START;
  // A tenant of the same id that was created later has its own chain.
  const creation = await newest({ kind: 'tenant', action: 'created' });
  if (creation !== undefined && creation.sequence > pruned.sequence) return CHAIN_START;
  const { sequence, hash } = detailOf(pruned).of ?? CHAIN_START;
  return { sequence, hash };
}
