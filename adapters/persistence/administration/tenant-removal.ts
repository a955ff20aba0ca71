import type { EntityManager, EntityName } from '@mikro-orm/core';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { ClientRow, documentRows, RecordedKeyRow } from '../rows/administration.row.ts';
import { allRows } from '../rows/all.ts';
import { snakeCase } from '../rows/columns.ts';
import { LeaseRow } from '../rows/status.row.ts';
import { TrustListRow } from '../rows/trust-list.row.ts';
import type { Statement } from '../statement.ts';

/**
 * A tenant is removed in two steps. First, in one transaction, goes what makes it one: its row, so that nothing is served
 * any more, its clients, its keys, and what is configured; a mark says that there are remains. They go a few at a time, by
 * the one who runs the job, however often that is interrupted. The mark goes last.
 */
const IN_FIRST_STEP = [ClientRow, ...documentRows.values(), RecordedKeyRow, TrustListRow] as const;

/** Beginning of the name of a mark. */
export const MARK = 'tenant-removal/';
/** A statement that began before the tenant went can write for so long. */
const GRACE_MS = 60_000;
/** Rows of one table that a new tenant of the same id waits for. */
const MAX_OF_TABLE = 500;

const UNSCOPED = { filters: { tenant: false }, disableIdentityMap: true } as const;
const anyRow = (row: unknown) => row as EntityName<Record<string, unknown>>;

const OWN = allRows.filter((row) => 'tenantId' in row.meta.properties);

/** The mark of a tenant goes with the transaction that makes another one of its id, whose clients come with it. */
const NO_TENANT = (table: string) =>
  table === ClientRow.meta.tableName ? '' : 'and not exists (select 1 from tenants where id = $1)';

/** The tenant is `$1`, at most `$2` rows, its mark `$3`: without that, or with a tenant of this id, nothing goes. */
export const REMOVALS: readonly Statement[] = OWN.map(({ meta }) => {
  const table = String(meta.tableName);
  const key = Object.entries(meta.properties as Record<string, { readonly primary?: boolean }>)
    .flatMap(([name, { primary }]) => (primary ? [snakeCase(name)] : []))
    .join();
  const text = `delete from ${table} where (${key}) in (select ${key} from ${table} where tenant_id = $1 limit $2)
    and exists (select 1 from leases where name = $3) ${NO_TENANT(table)}`;
  return { name: `remove_remains_${table}`, text };
});

/** The first step. */
export async function beginRemoval(em: EntityManager, id: TenantId): Promise<void> {
  for (const row of IN_FIRST_STEP) await em.nativeDelete(anyRow(row), { tenantId: id }, UNSCOPED);
  await em.upsert(LeaseRow, { name: `${MARK}${id}`, holder: '', expiresAt: Date.now() + GRACE_MS });
}

/**
 * A new tenant has nothing of an older one of its id.
 * @throws Failure `conflict` when there is more left of that than one transaction should remove.
 */
export async function endRemoval(em: EntityManager, id: TenantId): Promise<void> {
  const name = `${MARK}${id}`;
  if ((await em.nativeDelete(LeaseRow, { name })) === 0) return;
  for (const row of OWN) {
    const options = { ...UNSCOPED, limit: MAX_OF_TABLE + 1, fields: ['tenantId'] } as never;
    const found = await em.find(anyRow(row), { tenantId: id }, options);
    if (found.length > MAX_OF_TABLE) {
      throw new Failure(
        'conflict',
        'an older tenant of this id is still being removed; try again in a minute',
      );
    }
    if (found.length > 0) await em.nativeDelete(anyRow(row), { tenantId: id }, UNSCOPED);
  }
}
