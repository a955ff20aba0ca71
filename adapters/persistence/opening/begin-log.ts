import { type AuditEntry, SERVICE_SCOPE } from '../../../domain/audit/audit-entry.ts';
import { beginChain } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import type { SqliteSql } from '../sqlite/sql.ts';
import { namedStatement, type Parameter, type Row } from '../statement.ts';

/** Condition that there is neither a head nor an entry. Entries without a head are reported by the next writer. */
const IS_BLANK = `seal = '' and not exists (select 1 from audit_entries where tenant_id = $1)`;
const HEAD = namedStatement('service_head', `select 1 as found from audit_heads where tenant_id = $1 and seal <> ''`);
const TENANTS = namedStatement('count_tenants', 'select count(*) as count from tenants');
const INSERT_BLANK_HEAD = namedStatement(
  'make_room_for_head',
  `insert into audit_heads (tenant_id, sequence, hash, seal) values ($1, 0, '', '') on conflict (tenant_id) do nothing`,
);
const PUT_HEAD = `update audit_heads set sequence = $2, hash = $3, seal = $4 where tenant_id = $1 and ${IS_BLANK}`;
const COLUMNS = 'tenant_id, sequence, at, actor, action, kind, target, detail, hash';
const BEGIN = namedStatement('begin_audit_log', `${PUT_HEAD} returning 1 as found`);
const PUT_HEAD_SQLITE = namedStatement('begin_audit_log', PUT_HEAD);
const FIRST_ENTRY = namedStatement(
  'first_audit_entry',
  `insert into audit_entries (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
);

/** Begins the log unless it has begun; a concurrent process finds it begun. */
export async function beginOnPostgres(sql: PostgresSql, macs: Macs): Promise<void> {
  if ((await sql.query(HEAD, [SERVICE_SCOPE])).length > 0) return;
  await sql.query(INSERT_BLANK_HEAD, [SERVICE_SCOPE]);
  const { entry, head } = firstEntry(macs, await sql.query(TENANTS, []));
  await sql.transaction(async (tx) => {
    if ((await tx.query(BEGIN, head)).length > 0) await tx.query(FIRST_ENTRY, entry);
  });
}

export function beginOnSqlite(sql: SqliteSql, macs: Macs): Promise<void> {
  return sql.transaction((run) => {
    if (run.all(HEAD, SERVICE_SCOPE).length > 0) return;
    run.change(INSERT_BLANK_HEAD, SERVICE_SCOPE);
    const { entry, head } = firstEntry(macs, run.all(TENANTS));
    if (run.change(PUT_HEAD_SQLITE, ...head) > 0) run.change(FIRST_ENTRY, ...entry);
  });
}

function firstEntry(macs: Macs, [row]: readonly Row[]) {
  const { entries, head } = beginChain(macs, Number(row?.['count']), new Date());
  const [{ sequence, at: recordedAt, actor, action, kind, target, detail, hash }] = entries as [AuditEntry];
  return {
    entry: [SERVICE_SCOPE, sequence, recordedAt.getTime(), actor, action, kind, target, detail, hash] as Parameter[],
    head: [SERVICE_SCOPE, head.sequence, head.hash, head.seal] as Parameter[],
  };
}
