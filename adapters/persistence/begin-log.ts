import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import { begin } from '../../domain/audit/chain.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import type { PostgresSql } from './postgres/sql.ts';
import type { SqliteSql } from './sqlite/sql.ts';
import { named, type Parameter, type Row } from './statement.ts';

/** As long as there is neither a head nor an entry: entries without a head are for the next writer to complain of. */
const IS_BLANK = `seal = '' and not exists (select 1 from audit_entries where tenant_id = $1)`;
const HEAD = named('service_head', `select 1 as found from audit_heads where tenant_id = $1 and seal <> ''`);
const TENANTS = named('count_tenants', 'select count(*) as count from tenants');
const MAKE_ROOM = named(
  'make_room_for_head',
  `insert into audit_heads (tenant_id, sequence, hash, seal) values ($1, 0, '', '') on conflict (tenant_id) do nothing`,
);
const PUT_HEAD = `update audit_heads set sequence = $2, hash = $9, seal = $10 where tenant_id = $1 and ${IS_BLANK}`;
const COLUMNS = 'tenant_id, sequence, at, actor, action, kind, target, detail, hash';
const BEGIN = named(
  'begin_audit_log',
  `with begun as (${PUT_HEAD} returning 1)
   insert into audit_entries (${COLUMNS})
     select $1, $2, $3::bigint, $4::text, $5::text, $6::text, $7::text, $8::text, $9 from begun`,
);
const PUT_HEAD_SQLITE = named('begin_audit_log', PUT_HEAD);
const INSERT_SQLITE = named(
  'first_audit_entry',
  `insert into audit_entries (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
);

/** Begins the log unless it has begun; the one who does so at the same moment finds it done. */
export async function beginOnPostgres(sql: PostgresSql, macs: Macs): Promise<void> {
  if ((await sql.query(HEAD, [SERVICE_SCOPE])).length > 0) return;
  await sql.query(MAKE_ROOM, [SERVICE_SCOPE]);
  await sql.query(BEGIN, firstEntry(macs, await sql.query(TENANTS, [])));
}

/** The same. */
export function beginOnSqlite(sql: SqliteSql, macs: Macs): Promise<void> {
  return sql.transaction((run) => {
    if (run.all(HEAD, SERVICE_SCOPE).length > 0) return;
    run.change(MAKE_ROOM, SERVICE_SCOPE);
    const values = firstEntry(macs, run.all(TENANTS));
    if (run.change(PUT_HEAD_SQLITE, ...values) > 0) run.change(INSERT_SQLITE, ...values);
  });
}

function firstEntry(macs: Macs, [row]: readonly Row[]): Parameter[] {
  const { entries, head } = begin(macs, Number(row?.['count']), new Date());
  return entries.flatMap(({ sequence, at, actor, action, kind, target, detail, hash }) => [
    ...[SERVICE_SCOPE, sequence, at.getTime(), actor, action, kind, target, detail, hash, head.seal],
  ]);
}
