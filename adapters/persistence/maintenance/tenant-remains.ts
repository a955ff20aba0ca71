import type { TenantId } from '../../../domain/shared/ids.ts';
import { named } from '../statement.ts';
import type { JobSql } from './job-sql.ts';

/** Tenants that one run looks at. */
const MAX_MARKS = 100;

const MARKS = named(
  'tenant_removals',
  `select name from leases where name like 'tenant-removal/%' order by name limit $1`,
);
const ENDED = named(
  'ended_tenants',
  'select id from tenants where ends_at <= $1 order by ends_at, id limit $2',
);
const END = named('end_tenant_removal', 'delete from leases where name = $1 and expires_at <= $2');

export async function endedTenants(sql: JobSql, now: Date, limit: number): Promise<TenantId[]> {
  return (await sql.all(ENDED, now.getTime(), limit)).map(({ id }) => String(id) as TenantId);
}

/** What is left of removed tenants, as many as there are. @returns how many rows went, at most `limit`. */
export async function removeRemains(sql: JobSql, now: Date, limit: number): Promise<number> {
  const marks = await sql.all(MARKS, MAX_MARKS);
  if (marks.length === 0) return 0;
  // What is known of all tables comes with MikroORM, which a process loads for administration only.
  const { MARK, REMOVALS } = await import('../administration/tenant-removal.ts');
  let gone = 0;
  for (const { name } of marks) {
    const mark = String(name);
    const before = gone;
    for (const statement of REMOVALS) {
      if (gone >= limit) return gone;
      gone += await sql.change(statement, mark.slice(MARK.length), limit - gone, mark);
    }
    if (gone === before) await sql.change(END, mark, now.getTime());
  }
  return gone;
}
