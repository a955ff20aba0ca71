import { describeRevocation } from '../../domain/audit/describe-change.ts';
import type { Change } from '../../domain/changes/change.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { IssuedBatch, StatusChange } from '../../domain/status-lists/status-list.ts';
import type { StatusAllocator } from '../status-lists/status-allocator.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

const REVOKED = 1;

/**
 * Revokes earlier credentials of a configuration with `oneActiveSet`.
 * @param earlierBatches batches that the session issued of the configuration.
 * @returns the additional parts of the change that records the new batch.
 */
export async function revocationOfEarlier(
  statusAllocator: StatusAllocator,
  tenant: TenantConfiguration,
  { id, oneActiveSet }: Pick<CredentialConfiguration, 'id' | 'oneActiveSet'>,
  sessionId: SessionId,
  earlierBatches: readonly IssuedBatch[],
): Promise<Pick<Change, 'statuses' | 'audit'>> {
  if (!oneActiveSet || earlierBatches.length === 0) return {};
  const lists = new Map((await tenant.statusLists()).map((list) => [list.id, list]));
  const statuses = earlierBatches.flatMap(({ statusListId, firstCounter, count }): StatusChange[] => {
    const list = lists.get(statusListId ?? '');
    if (list === undefined || firstCounter === null) return [];
    const indices = statusAllocator.indicesOf(tenant.tenantId, list, firstCounter, count);
    return indices.map((index) => ({ listId: list.id, index, status: REVOKED }));
  });
  if (statuses.length === 0) return {};
  const auditChange = describeRevocation({ sessionId, credentialConfigurationId: id }, statuses);
  return { statuses, audit: { by: 'system', change: auditChange } };
}
