import type { Maintenance, TenantRemoval } from '../../../application/ports/maintenance.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Removal } from '../administration/tenant-removal.ts';
import type { JobSql } from '../job-sql.ts';
import { named, type Parameter, type Row } from '../statement.ts';

/** Tenants that one run looks at. */
const MAX_MARKS = 100;

const MARKS = named(
  'tenant_removals',
  `select name, holder, expires_at from leases where name like 'tenant-removal/%' order by name limit $1`,
);
const ENDED = named('ended_tenants', 'select id from tenants where ends_at is not null and ends_at <= $1 order by ends_at, id limit $2');
const END = named('end_tenant_removal', 'delete from leases where name = $1 and expires_at <= $2');
/** The holder of a mark is the number of rows that went. */
const COUNT = named('count_tenant_removal', 'update leases set holder = $2 where name = $1');

/** Where the removal of one tenant goes on. */
type Place = {
  readonly table: number;
  /** The last key that was removed from the table. */
  readonly after: readonly Parameter[] | undefined;
  /** Rows that went since the first table. */
  readonly gone: number;
};
const START: Place = { table: 0, after: undefined, gone: 0 };

export async function endedTenants(sql: JobSql, now: Date, limit: number): Promise<TenantId[]> {
  return (await sql.all(ENDED, now.getTime(), limit)).map(({ id }) => String(id) as TenantId);
}

/** How the rows of one table, by its number, are removed. */
type Pages = {
  sql(table: number): JobSql;
  /** Runs `work` for as many rows, at most `limit`, as may go at once. */
  run<T extends { readonly removed: number }>(table: number, limit: number, work: (rows: number) => Promise<T>): Promise<T>;
};
type Remains = Pick<Maintenance, 'removeRemains' | 'tenantRemovals'>;

/**
 * Removes what is left of removed tenants, table by table and by the key from the last one: what was removed before is not passed again.
 * Another process, and one that starts anew, begins at the first table. A mark goes when all tables were passed without finding a row.
 */
export function tenantRemains(sql: JobSql, pages: Pages = { sql: () => sql, run: (_, limit, work) => work(limit) }): Remains {
  const places = new Map<string, Place>();
  return {
    async removeRemains(now, limit) {
      const marks = await sql.all(MARKS, MAX_MARKS);
      if (marks.length === 0) return 0;
      // The list of all tables comes with MikroORM, which a process loads for administration only.
      const { GRACE_MS, MARK, REMOVALS } = await import('../administration/tenant-removal.ts');
      let gone = 0;
      for (const mark of marks) {
        const name = String(mark['name']);
        const before = gone;
        let place = places.get(name) ?? START;
        while (place.table < REMOVALS.length && gone < limit) {
          const removal = REMOVALS[place.table] as Removal;
          const { table } = place;
          const { removed, last } = await pages.run(table, limit - gone, (rows) =>
            removePage(pages.sql(table), removal, place, {
              tenant: name.slice(MARK.length),
              mark: name,
              limit: rows,
            }),
          );
          gone += removed;
          place = { table: last === undefined ? place.table + 1 : place.table, after: last, gone: place.gone + removed };
        }
        const isPassed = place.table >= REMOVALS.length;
        if (isPassed) places.delete(name);
        else places.set(name, place);
        if (gone > before) {
          const rows = readRemoval(mark, MARK, GRACE_MS).removedRows + gone - before;
          await sql.change(COUNT, name, String(rows));
        } else if (isPassed && place.gone === 0) await sql.change(END, name, now.getTime());
        if (gone >= limit) return gone;
      }
      return gone;
    },
    async tenantRemovals() {
      const marks = await sql.all(MARKS, MAX_MARKS);
      if (marks.length === 0) return [];
      const { GRACE_MS, MARK } = await import('../administration/tenant-removal.ts');
      return marks.map((mark) => readRemoval(mark, MARK, GRACE_MS));
    },
  };
}

/** @returns `last`: the key up to which the table is empty; undefined when nothing is left in it. */
async function removePage(
  sql: JobSql,
  removal: Removal,
  { after = [] }: Place,
  { tenant, mark, limit }: { readonly tenant: string; readonly mark: string; readonly limit: number },
): Promise<{ readonly removed: number; readonly last: readonly Parameter[] | undefined }> {
  const [bound] = await sql.all(removal.bound(after.length > 0), tenant, limit, ...after);
  if (bound === undefined) {
    const removed = await sql.change(removal.rest(after.length > 0), tenant, mark, ...after);
    return { removed, last: undefined };
  }
  const last = removal.key.map((column) => bound[column] as Parameter);
  const removed = await sql.change(removal.page(after.length > 0), tenant, mark, ...last, ...after);
  // A tenant of this id was created meanwhile, or another process removed the same rows.
  return { removed, last: removed === 0 ? undefined : last };
}

function readRemoval(row: Row, mark: string, graceMs: number): TenantRemoval {
  return {
    tenantId: String(row['name']).slice(mark.length) as TenantId,
    since: new Date(Number(row['expires_at']) - graceMs),
    removedRows: Number(row['holder']) || 0,
  };
}
