import { type EntityManager, LockMode, raw } from '@mikro-orm/core';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { ConfiguredKind, StoredRevisions } from '../../../domain/tenants/revisions.ts';
import { TenantRow } from '../rows/administration.row.ts';
import { FRESH } from './documents.ts';
import { notFoundError } from './not-found.ts';

/** Locks the tenant's row, which every change of the tenant updates. PostgreSQL only. */
export async function lockTenant(em: EntityManager, tenantId: TenantId): Promise<void> {
  await em.findOne(TenantRow, { id: tenantId }, { ...FRESH, lockMode: LockMode.PESSIMISTIC_WRITE });
}

/**
 * Invalidates what other processes have read of this kind.
 * @param options `isFirst`: first write of its transaction, which also raises the revision of the tenant.
 * @throws Failure `not_found` if the tenant was removed meanwhile: a write would leave rows behind.
 */
export async function raiseRevision(
  em: EntityManager,
  tenantId: TenantId,
  kind: ConfiguredKind,
  { isFirst }: { readonly isFirst: boolean },
): Promise<void> {
  const revision = isFirst ? { revision: raw<number>('revision + 1') } : {};
  const raised = await em.nativeUpdate(TenantRow, { id: tenantId }, { ...revision, revisions: raw<StoredRevisions>(raisedIn(em, kind)) });
  if (raised === 0) throw notFoundError('tenant');
}

/** A tenant that was created by a release without this kind has no revision of it yet. */
function raisedIn(em: EntityManager, kind: ConfiguredKind): string {
  const isSqlite = em.getPlatform().constructor.name.startsWith('Sqlite');
  return isSqlite
    ? `json_set(revisions, '$.${kind}', coalesce(json_extract(revisions, '$.${kind}'), 0) + 1)`
    : `jsonb_set(revisions, '{${kind}}', to_jsonb(coalesce((revisions->>'${kind}')::bigint, 0) + 1))`;
}
