import { describeRevocation } from '../../domain/audit/describe-change.ts';
import type { Change } from '../../domain/changes/change.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { IssuedBatch, StatusChange } from '../../domain/status-lists/status-list.ts';
import type { StatusAllocator } from '../status-lists/status-allocator.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

const REVOKED = 1;

/**
 * Where a holder has one active set of credentials, a new one takes the place of those before.
 * @param before what the session issued of the configuration.
 * @returns what the change that records the new set does to the others.
 */
export async function revoking(
  statusAllocator: StatusAllocator,
  configured: TenantConfiguration,
  { id, oneActiveSet }: Pick<CredentialConfiguration, 'id' | 'oneActiveSet'>,
  sessionId: SessionId,
  before: readonly IssuedBatch[],
): Promise<Pick<Change, 'statuses' | 'audit'>> {
  if (!oneActiveSet || before.length === 0) return {};
  const lists = new Map((await configured.statusLists()).map((list) => [list.id, list]));
  const statuses = before.flatMap(({ statusListId, firstCounter, count }): StatusChange[] => {
    const list = lists.get(statusListId ?? '');
    if (list === undefined || firstCounter === null) return [];
    const indices = statusAllocator.indicesOf(configured.tenantId, list, firstCounter, count);
    return indices.map((index) => ({ listId: list.id, index, status: REVOKED }));
  });
  if (statuses.length === 0) return {};
  const told = describeRevocation({ sessionId, credentialConfigurationId: id }, statuses);
  return { statuses, audit: { by: 'system', change: told } };
}
