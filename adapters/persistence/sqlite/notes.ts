import type { NotedSession } from '../../../application/ports/store.ts';
import type { SessionTransition } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { namedStatement } from '../statement.ts';
import { EVENT } from './commit.ts';
import { isAmong, type SqliteSql } from './sql.ts';

const MOVE = namedStatement(
  'note_session',
  `update sessions set status = $5, version = version + 1, updated_at = $2
   where tenant_id = $1 and id = $3 and ${isAmong('status', '$4')} and expires_at > $2
   returning version`,
);

/** Moves sessions, all of them in one transaction. */
export function noteOnSqlite(
  sql: SqliteSql,
  tenantId: TenantId,
  ids: readonly SessionId[],
  { from, to }: SessionTransition,
  now: Date,
): Promise<readonly NotedSession[]> {
  const timestamp = now.getTime();
  return sql.grouped((run) =>
    ids.flatMap((id) => {
      const [row] = run.all(MOVE, tenantId, timestamp, id, from, to);
      if (row === undefined) return [];
      const version = Number(row['version']);
      run.change(EVENT, tenantId, id, version, to, timestamp);
      return [{ id, version }];
    }),
  );
}
