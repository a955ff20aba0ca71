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
export const GRACE_MS = 60_000;
/** Rows of one table that a new tenant of the same id waits for. */
const MAX_OF_TABLE = 500;

const UNSCOPED = { filters: { tenant: false }, disableIdentityMap: true } as const;
const anyRow = (row: unknown) => row as EntityName<Record<string, unknown>>;

const OWN = allRows.filter((row) => 'tenantId' in row.meta.properties);

/** The mark of a tenant goes with the transaction that makes another one of its id, whose clients come with it. */
const NO_TENANT = (table: string) => (table === ClientRow.meta.tableName ? '' : 'and not exists (select 1 from tenants where id = $1)');

/** Statements that remove the rows of a tenant from one table in the order of their key. The tenant is `$1`. */
export type Removal = {
  /** Columns of the key besides the tenant. */
  readonly key: readonly string[];
  /** The key of the `$2`th row from the key at `$3` on; none when there are fewer. */
  readonly bound: (isAfter: boolean) => Statement;
  /** Removes rows up to a key at `$3` and from the one behind it on. Without the mark `$2`, or with a tenant of this id, none. */
  readonly page: (isAfter: boolean) => Statement;
  /** Removes all rows from the key at `$3` on. */
  readonly rest: (isAfter: boolean) => Statement;
};

export const REMOVALS: readonly Removal[] = OWN.map(({ meta }) => {
  const table = String(meta.tableName);
  const primary = Object.entries(meta.properties as Record<string, { readonly primary?: boolean }>).flatMap(([name, { primary: isKey }]) =>
    isKey ? [snakeCase(name)] : [],
  );
  const own = primary.filter((name) => name !== 'tenant_id');
  // A table that has one row for each tenant.
  const key = own.length === 0 ? primary : own;
  const columns = key.join(', ');
  const places = (from: number) => key.map((_, index) => `$${from + index}`).join(', ');
  const above = (from: number) => `and (${columns}) > (${places(from)})`;
  const removing = `delete from ${table} where tenant_id = $1`;
  const condition = `and exists (select 1 from leases where name = $2) ${NO_TENANT(table)}`;
  const statement = (act: string, first: string, later: string) => {
    const [one, two] = [`remove_remains_${table}_${act}`, `remove_remains_${table}_${act}_after`].map((name, index) => ({
      name,
      text: index === 0 ? first : later,
    })) as [Statement, Statement];
    return (isAfter: boolean) => (isAfter ? two : one);
  };
  const bound = (lower: string) =>
    `select ${columns} from ${table} where tenant_id = $1 ${lower} order by ${columns} limit 1 offset $2 - 1`;
  const upTo = `and (${columns}) <= (${places(3)})`;
  return {
    key,
    bound: statement('bound', bound(''), bound(above(3))),
    page: statement('page', `${removing} ${upTo} ${condition}`, `${removing} ${upTo} ${above(3 + key.length)} ${condition}`),
    rest: statement('rest', `${removing} ${condition}`, `${removing} ${above(3)} ${condition}`),
  };
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
      throw new Failure('conflict', 'an older tenant of this id is still being removed; try again in a minute');
    }
    if (found.length > 0) await em.nativeDelete(anyRow(row), { tenantId: id }, UNSCOPED);
  }
}
