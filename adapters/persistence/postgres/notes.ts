import type { NotedSession } from '../../../application/ports/store.ts';
import type { SessionTransition } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { namedStatement } from '../statement.ts';
import type { PostgresSql } from './sql.ts';

const NOTE = namedStatement('note_sessions_1', 'select id, version from note_sessions_1($1, $2, $3, $4, $5)');

/** Moves the sessions whose status allows it, by one function call that does not wait for the disk. */
export async function noteOnPostgres(
  sql: PostgresSql,
  tenantId: TenantId,
  ids: readonly SessionId[],
  { from, to }: SessionTransition,
  now: Date,
): Promise<readonly NotedSession[]> {
  const rows = await sql.query(NOTE, [tenantId, now.getTime(), from, to, ids]);
  return rows.map((row) => ({ id: row['id'] as SessionId, version: Number(row['version']) }));
}
