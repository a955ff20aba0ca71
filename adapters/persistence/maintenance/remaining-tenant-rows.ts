import type { Maintenance, TenantRemoval } from '../../../application/ports/maintenance.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Removal } from '../administration/tenant-removal.ts';
import type { JobSql } from '../job-sql.ts';
import { namedStatement, type Parameter, type Row } from '../statement.ts';

/** Limit of tenants per run. */
const MAX_MARKS = 100;

const MARKS = namedStatement(
  'tenant_removals',
  `select name, holder, expires_at from leases where name like 'tenant-removal/%' order by name limit $1`,
);
const ENDED = namedStatement(
  'ended_tenants',
  'select id from tenants where ends_at is not null and ends_at <= $1 order by ends_at, id limit $2',
);
const END = namedStatement('end_tenant_removal', 'delete from leases where name = $1 and expires_at <= $2');
/** The holder of a mark is the number of deleted rows. */
const COUNT = namedStatement('count_tenant_removal', 'update leases set holder = $2 where name = $1');

type RemovalProgress = {
  readonly table: number;
  /** Last key that was deleted from the table. */
  readonly after: readonly Parameter[] | undefined;
  /** Rows that were deleted since the first table. */
  readonly removedCount: number;
};
const START: RemovalProgress = { table: 0, after: undefined, removedCount: 0 };

export async function endedTenants(sql: JobSql, now: Date, limit: number): Promise<TenantId[]> {
  return (await sql.all(ENDED, now.getTime(), limit)).map(({ id }) => String(id) as TenantId);
}

/** Executes the deletions of one table, given by its number. */
type Pages = {
  sql(table: number): JobSql;
  /** Runs `work` for as many rows as may be deleted at once, at most `limit`. */
  run<T extends { readonly removed: number }>(table: number, limit: number, work: (rows: number) => Promise<T>): Promise<T>;
};
type Remains = Pick<Maintenance, 'removeRemainingRows' | 'tenantRemovals'>;

/**
 * Deletes the remaining rows of removed tenants, table by table and in key order: each page starts behind the last deleted key, so deleted
 * rows are not scanned again. Another process, and one that restarts, begins at the first table. A mark is deleted after a pass over all
 * tables that found no row.
 */
export function tenantRemains(sql: JobSql, pages: Pages = { sql: () => sql, run: (_, limit, work) => work(limit) }): Remains {
  const progressByMark = new Map<string, RemovalProgress>();
  return {
    async removeRemainingRows(now, limit) {
      const marks = await sql.all(MARKS, MAX_MARKS);
      if (marks.length === 0) return 0;
      // The list of all tables needs MikroORM, which a process loads for administration only.
      const { GRACE_MS, REMOVAL_MARK_PREFIX: MARK, REMOVALS } = await import('../administration/tenant-removal.ts');
      let totalRemoved = 0;
      for (const mark of marks) {
        const name = String(mark['name']);
        const countBefore = totalRemoved;
        let progress = progressByMark.get(name) ?? START;
        while (progress.table < REMOVALS.length && totalRemoved < limit) {
          const removal = REMOVALS[progress.table] as Removal;
          const { table } = progress;
          const { removed, last: lastKey } = await pages.run(table, limit - totalRemoved, (rows) =>
            removePage(pages.sql(table), removal, progress, { tenant: name.slice(MARK.length), mark: name, limit: rows }),
          );
          totalRemoved += removed;
          progress = {
            table: lastKey === undefined ? progress.table + 1 : progress.table,
            after: lastKey,
            removedCount: progress.removedCount + removed,
          };
        }
        const isPassed = progress.table >= REMOVALS.length;
        if (isPassed) progressByMark.delete(name);
        else progressByMark.set(name, progress);
        if (totalRemoved > countBefore) {
          const rows = readRemoval(mark, MARK, GRACE_MS).removedRows + totalRemoved - countBefore;
          await sql.change(COUNT, name, String(rows));
        } else if (isPassed && progress.removedCount === 0) await sql.change(END, name, now.getTime());
        if (totalRemoved >= limit) return totalRemoved;
      }
      return totalRemoved;
    },
    async tenantRemovals() {
      const marks = await sql.all(MARKS, MAX_MARKS);
      if (marks.length === 0) return [];
      const { GRACE_MS, REMOVAL_MARK_PREFIX: MARK } = await import('../administration/tenant-removal.ts');
      return marks.map((mark) => readRemoval(mark, MARK, GRACE_MS));
    },
  };
}

/** @returns `last`: the key up to which the table is empty; undefined if the table has no more rows. */
async function removePage(
  sql: JobSql,
  removal: Removal,
  { after: previousKey = [] }: RemovalProgress,
  { tenant, mark, limit }: { readonly tenant: string; readonly mark: string; readonly limit: number },
): Promise<{ readonly removed: number; readonly last: readonly Parameter[] | undefined }> {
  const [bound] = await sql.all(removal.bound(previousKey.length > 0), tenant, limit, ...previousKey);
  if (bound === undefined) {
    const removed = await sql.change(removal.rest(previousKey.length > 0), tenant, mark, ...previousKey);
    return { removed, last: undefined };
  }
  const lastKey = removal.key.map((column) => bound[column] as Parameter);
  const removed = await sql.change(removal.page(previousKey.length > 0), tenant, mark, ...lastKey, ...previousKey);
  // Nothing is deleted if a tenant with this id was created meanwhile, or if another process deleted the same rows.
  return { removed, last: removed === 0 ? undefined : lastKey };
}

function readRemoval(row: Row, mark: string, graceMs: number): TenantRemoval {
  return {
    tenantId: String(row['name']).slice(mark.length) as TenantId,
    since: new Date(Number(row['expires_at']) - graceMs),
    removedRows: Number(row['holder']) || 0,
  };
}
