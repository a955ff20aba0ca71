import type { EntityManager, EntityName } from '@mikro-orm/core';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { ClientRow, documentRows, RecordedKeyRow } from '../rows/administration.row.ts';
import { allRows } from '../rows/all-rows.ts';
import { snakeCase } from '../rows/columns.ts';
import { LeaseRow } from '../rows/status.row.ts';
import { TrustListRow } from '../rows/trust-list.row.ts';
import type { Statement } from '../statement.ts';

/**
 * A tenant is removed in two steps. The first, one transaction, removes its row (so that nothing is served any more), clients, keys and
 * configuration, and leaves a mark. A job then removes the remaining rows in batches, resumes after interruptions, and deletes the mark
 * last.
 */
const IN_FIRST_STEP = [ClientRow, ...documentRows.values(), RecordedKeyRow, TrustListRow] as const;

/** Prefix of the lease that marks a tenant as being removed. */
export const REMOVAL_MARK_PREFIX = 'tenant-removal/';
/** Statements that began before the removal may still write for this long. */
export const GRACE_MS = 60_000;
/** Limit of remaining rows per table that the creation of a tenant with the same id deletes itself. */
const MAX_REMAINING_ROWS = 500;

const UNSCOPED = { filters: { tenant: false }, disableIdentityMap: true } as const;
const anyRow = (row: unknown) => row as EntityName<Record<string, unknown>>;

const TENANT_TABLES = allRows.filter((row) => 'tenantId' in row.meta.properties);

/** Clients need no such condition: they are created in the transaction that deletes the mark of an earlier tenant with this id. */
const NO_TENANT = (table: string) => (table === ClientRow.meta.tableName ? '' : 'and not exists (select 1 from tenants where id = $1)');

/** Statements that remove the rows of a tenant from one table in key order. The tenant is `$1`. */
export type Removal = {
  /** Key columns without the tenant. */
  readonly key: readonly string[];
  /** Selects the key of the `$2`th row, counted from the key at `$3`; no row if there are fewer. */
  readonly bound: (isAfter: boolean) => Statement;
  /**
   * Deletes the rows up to the key at `$3` that are above the key behind it. Deletes nothing without the mark `$2`, or if a tenant has this
   * id.
   */
  readonly page: (isAfter: boolean) => Statement;
  /** Deletes all rows above the key at `$3`. */
  readonly rest: (isAfter: boolean) => Statement;
};

export const REMOVALS: readonly Removal[] = TENANT_TABLES.map(({ meta }) => {
  const table = String(meta.tableName);
  const primary = Object.entries(meta.properties as Record<string, { readonly primary?: boolean }>).flatMap(([name, { primary: isKey }]) =>
    isKey ? [snakeCase(name)] : [],
  );
  const keyWithoutTenant = primary.filter((name) => name !== 'tenant_id');
  // A table with one row per tenant has no other key column.
  const key = keyWithoutTenant.length === 0 ? primary : keyWithoutTenant;
  const columns = key.join(', ');
  const parameters = (from: number) => key.map((_, index) => `$${from + index}`).join(', ');
  const above = (from: number) => `and (${columns}) > (${parameters(from)})`;
  const removing = `delete from ${table} where tenant_id = $1`;
  const condition = `and exists (select 1 from leases where name = $2) ${NO_TENANT(table)}`;
  const statement = (act: string, firstText: string, laterText: string) => {
    const [firstPage, laterPage] = [`remove_remains_${table}_${act}`, `remove_remains_${table}_${act}_after`].map((name, index) => ({
      name,
      text: index === 0 ? firstText : laterText,
    })) as [Statement, Statement];
    return (isAfter: boolean) => (isAfter ? laterPage : firstPage);
  };
  const bound = (lower: string) =>
    `select ${columns} from ${table} where tenant_id = $1 ${lower} order by ${columns} limit 1 offset $2 - 1`;
  const upTo = `and (${columns}) <= (${parameters(3)})`;
  return {
    key,
    bound: statement('bound', bound(''), bound(above(3))),
    page: statement('page', `${removing} ${upTo} ${condition}`, `${removing} ${upTo} ${above(3 + key.length)} ${condition}`),
    rest: statement('rest', `${removing} ${condition}`, `${removing} ${above(3)} ${condition}`),
  };
});

export async function beginRemoval(em: EntityManager, id: TenantId): Promise<void> {
  for (const row of IN_FIRST_STEP) await em.nativeDelete(anyRow(row), { tenantId: id }, UNSCOPED);
  await em.upsert(LeaseRow, { name: `${REMOVAL_MARK_PREFIX}${id}`, holder: '', expiresAt: Date.now() + GRACE_MS });
}

/**
 * Deletes the remaining rows of an earlier tenant with this id, so that a new tenant starts empty.
 * @throws Failure `conflict` if there are more than one transaction should remove.
 */
export async function endRemoval(em: EntityManager, id: TenantId): Promise<void> {
  const name = `${REMOVAL_MARK_PREFIX}${id}`;
  if ((await em.nativeDelete(LeaseRow, { name })) === 0) return;
  for (const row of TENANT_TABLES) {
    const options = { ...UNSCOPED, limit: MAX_REMAINING_ROWS + 1, fields: ['tenantId'] } as never;
    const rows = await em.find(anyRow(row), { tenantId: id }, options);
    if (rows.length > MAX_REMAINING_ROWS) {
      throw new Failure('conflict', 'a removed tenant with this id is still being deleted; try again in a minute');
    }
    if (rows.length > 0) await em.nativeDelete(anyRow(row), { tenantId: id }, UNSCOPED);
  }
}
