import { type EntityManager, LockMode, raw } from '@mikro-orm/core';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { ConfiguredKind, StoredRevisions } from '../../../domain/tenants/revisions.ts';
import { TenantRow } from '../rows/administration.row.ts';
import { FRESH } from './documents.ts';
import { missing } from './existing.ts';

/** Locks the row that every change of the tenant updates in the end; PostgreSQL only. */
export async function lockTenant(em: EntityManager, tenantId: TenantId): Promise<void> {
  await em.findOne(TenantRow, { id: tenantId }, { ...FRESH, lockMode: LockMode.PESSIMISTIC_WRITE });
}

/**
 * What was read of this kind is read anew after this.
 * @param options `isFirst`: of its transaction, which raises the revision of the tenant once.
 * @throws Failure `not_found`: the one who writes for a tenant that went meanwhile would leave something behind.
 */
export async function raiseRevision(
  em: EntityManager,
  tenantId: TenantId,
  kind: ConfiguredKind,
  { isFirst }: { readonly isFirst: boolean },
): Promise<void> {
  const revision = isFirst ? { revision: raw<number>('revision + 1') } : {};
  const raised = await em.nativeUpdate(TenantRow, { id: tenantId }, { ...revision, revisions: raw<StoredRevisions>(raisedIn(em, kind)) });
  if (raised === 0) throw missing('tenant');
}

/** A tenant that a release without this kind made has no revision of it yet. */
function raisedIn(em: EntityManager, kind: ConfiguredKind): string {
  const isSqlite = em.getPlatform().constructor.name.startsWith('Sqlite');
  return isSqlite
    ? `json_set(revisions, '$.${kind}', coalesce(json_extract(revisions, '$.${kind}'), 0) + 1)`
    : `jsonb_set(revisions, '{${kind}}', to_jsonb(coalesce((revisions->>'${kind}')::bigint, 0) + 1))`;
}
