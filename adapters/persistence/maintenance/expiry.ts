import type { ExpiryCursor, Maintenance, SessionKey } from '../../../application/ports/maintenance.ts';
import { MOVES } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { REQUEST_AT_EXPIRY } from '../erased-requests.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import type { SqliteSql } from '../sqlite/sql.ts';
import { listOf, namedStatement, type Row, type Statement } from '../statement.ts';
import { BatchSize } from './batch-size.ts';
import { NOTHING_PENDING } from './pending-deliveries.ts';

type Expiry = Pick<Maintenance, 'expireSessions'>;

const OPEN_STATUSES = listOf(MOVES.expire.from);
const EXPIRED_STATUS = listOf([MOVES.expire.to]);
/**
 * Time after its expiry in which `EndOverdueResponses` ends a session with a response (`claimed_at`). After it, the session expires like
 * one without a response.
 */
const MAX_OVERDUE_MS = 3_600_000;

/**
 * Reads the next `$4` sessions in the order of their expiry, up to `$1`. The result has the open ones without a pending delivery, and, if
 * there may be more, the last session of the range as the position (`is_open` 0). The cost depends on the sessions in the range, not on all
 * that are stored.
 */
const selectExpiring = (columns: string, range: string, order: string, position: string) =>
  `with visited as materialized (
     select ${columns} from sessions${position === 'rowid' ? ' indexed by sessions_by_expiry' : ''} where expires_at <= $1 and expires_at >= $2 and ${range} order by ${order} limit $4)
   select sessions.*, 1 as is_open from visited sessions where status in (${OPEN_STATUSES}) and ${NOTHING_PENDING}
   union all
   select * from (select visited.*, 0 as is_open from visited order by ${order} limit 1 offset $4 - 1) last`;

const COLUMNS = 'tenant_id, id, status, expires_at, claimed_at';
const SELECT_EXPIRING_POSTGRES = namedStatement(
  'visit_expiring_sessions',
  selectExpiring(COLUMNS, '(expires_at, tenant_id, id) > ($2, $3::text, $5::text)', 'expires_at, tenant_id, id', 'tenant_id, id'),
);
/** The index orders sessions with the same expiry by their rowid. */
const SELECT_EXPIRING_SQLITE = namedStatement(
  'visit_expiring_sessions',
  selectExpiring(`${COLUMNS}, rowid as row_id`, '(expires_at, rowid) > ($2, $3)', 'expires_at, row_id', 'rowid').replace(
    'order by expires_at, row_id limit $4)',
    'order by expires_at, rowid limit $4)',
  ),
);

/** Condition for the expiry of a session, which is evaluated again while its row is locked. `$1` is the time. */
const IS_DUE = `status in (${OPEN_STATUSES}) and expires_at <= $1 and (claimed_at is null or expires_at <= $1 - ${MAX_OVERDUE_MS})
  and ${NOTHING_PENDING}`;
const INSERT_EVENT = 'insert into session_events (tenant_id, session_id, version, status, at)';
const EXPIRE_POSTGRES = namedStatement(
  'expire_sessions',
  `with p as (select tenant_id, id from sessions
     where (tenant_id, id) in (select * from unnest($2::text[], $3::text[])) and ${IS_DUE} for update skip locked),
   u as (update sessions s set status = ${EXPIRED_STATUS}, version = version + 1, updated_at = $1, request = ${REQUEST_AT_EXPIRY}
     from p where s.tenant_id = p.tenant_id and s.id = p.id
     returning s.tenant_id, s.id, s.version, s.status, s.updated_at),
   e as (${INSERT_EVENT} select tenant_id, id, version, status, updated_at from u)
   select tenant_id, id from u`,
);
const EXPIRE_SQLITE = namedStatement(
  'expire_sessions',
  `update sessions set status = ${EXPIRED_STATUS}, version = version + 1, updated_at = $1, request = ${REQUEST_AT_EXPIRY}
   where (tenant_id, id) in (select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each($2)) and ${IS_DUE}
   returning tenant_id, id, version`,
);
const INSERT_EVENT_SQLITE = namedStatement('log_expired', `${INSERT_EVENT} values ($1, $2, $3, ${EXPIRED_STATUS}, $4)`);
const EXPIRE_OF_TENANT = namedStatement(
  'expire_sessions_of_tenant',
  `update sessions set status = ${EXPIRED_STATUS}, version = version + 1, updated_at = $1, request = ${REQUEST_AT_EXPIRY}
   where tenant_id = $2 and id = any($3::text[]) and ${IS_DUE} returning tenant_id, id, version`,
);
const INSERT_EVENTS_OF_TENANT = namedStatement(
  'log_expired_of_tenant',
  `${INSERT_EVENT} select $1::text, x.id, x.version, ${EXPIRED_STATUS}, $2::bigint from unnest($3::text[], $4::int[]) as x(id, version)`,
);

const keyOf = (row: Row): SessionKey => ({ tenantId: row['tenant_id'] as TenantId, id: row['id'] as SessionId });

function readExpiring(rows: readonly Row[], now: Date, positionOf: (row: Row) => ExpiryCursor) {
  const open = rows.filter((row) => Number(row['is_open']) === 1);
  const isOverdue = (row: Row) => row['claimed_at'] !== null && Number(row['expires_at']) > now.getTime() - MAX_OVERDUE_MS;
  const lastRow = rows.find((row) => Number(row['is_open']) === 0);
  return {
    due: open.filter((row) => !isOverdue(row)).map(keyOf),
    overdue: open.filter(isOverdue).map(keyOf),
    next: lastRow && positionOf(lastRow),
  };
}

/** Position before the first session. */
const START: ExpiryCursor = [Number.MIN_SAFE_INTEGER];

/** @param isCluster true if each tenant is on one machine, so that a statement may only change sessions of one tenant. */
export function postgresExpiry(sql: PostgresSql, isCluster = false): Expiry {
  const expire = isCluster ? expireOnCluster : expireTogether;
  return {
    async expireSessions(now, limit, { after: cursor = START, until: deadline = now } = {}) {
      const [from = 0, tenantId = '', id = ''] = cursor;
      const rows = await sql.query(SELECT_EXPIRING_POSTGRES, [deadline.getTime(), from, tenantId, limit, id]);
      const {
        due,
        overdue,
        next: nextPosition,
      } = readExpiring(rows, now, (row) => [Number(row['expires_at']), String(row['tenant_id']), String(row['id'])]);
      return { expired: due.length === 0 ? [] : await expire(sql, due, now), overdue, next: nextPosition };
    },
  };
}

async function expireTogether(sql: PostgresSql, due: readonly SessionKey[], now: Date) {
  const [tenants, ids] = [due.map(({ tenantId }) => tenantId), due.map(({ id }) => id)];
  return (await sql.query(EXPIRE_POSTGRES, [now.getTime(), tenants, ids])).map(keyOf);
}

async function expireOnCluster(sql: PostgresSql, due: readonly SessionKey[], now: Date) {
  const expired: SessionKey[] = [];
  for (const [tenantId, sessions] of Map.groupBy(due, (session) => session.tenantId)) {
    const ids = sessions.map(({ id }) => id);
    const rows = await sql.transaction(async (tx) => {
      const expiredRows = await tx.query(EXPIRE_OF_TENANT, [now.getTime(), tenantId, ids]);
      const keys = expiredRows.map(({ id }) => String(id));
      const versions = expiredRows.map(({ version }) => Number(version));
      if (expiredRows.length > 0) await tx.query(INSERT_EVENTS_OF_TENANT, [tenantId, now.getTime(), keys, versions]);
      return expiredRows;
    });
    expired.push(...rows.map(keyOf));
  }
  return expired;
}

export function sqliteExpiry(sql: SqliteSql): Expiry {
  // Most sessions in the range are not due, so a read has many rows. A change of as many rows would block the thread for long.
  const reads = new BatchSize();
  const changes = new BatchSize();
  const expire = (now: Date, due: readonly SessionKey[]) =>
    changes.run(due.length, (rows) => {
      const keys = JSON.stringify(due.slice(0, rows).map(({ tenantId, id }) => [tenantId, id]));
      return sql.transaction(
        (run) =>
          changes.timed(() => {
            const expiredRows = run.all(EXPIRE_SQLITE, now.getTime(), keys);
            for (const { tenant_id, id, version } of expiredRows)
              run.change(INSERT_EVENT_SQLITE, String(tenant_id), String(id), Number(version), now.getTime());
            return { expired: expiredRows.map(keyOf), rest: due.slice(rows) };
          }),
        (step) => changes.transaction(step),
      );
    });
  return {
    expireSessions: (now, limit, { after: cursor = START, until: deadline = now } = {}) =>
      reads.run(limit, async (maxSessions) => {
        const [from = 0, rowid = -1] = cursor;
        const rows = await sql.single((run) =>
          reads.timed(() => run.all(SELECT_EXPIRING_SQLITE, deadline.getTime(), from, rowid, maxSessions)),
        );
        const { due, overdue, next: nextPosition } = readExpiring(rows, now, (row) => [Number(row['expires_at']), Number(row['row_id'])]);
        const expired: SessionKey[] = [];
        for (let remainingSessions: readonly SessionKey[] = due; remainingSessions.length > 0; ) {
          // Requests that arrived during the last step run first.
          await new Promise((resolve) => setImmediate(resolve));
          try {
            const step = await expire(now, remainingSessions);
            expired.push(...step.expired);
            remainingSessions = step.rest;
          } catch (error) {
            if (expired.length === 0) throw error;
            // The expired sessions are reported; the next call begins at the same position.
            return { expired, overdue: [], next: cursor };
          }
        }
        return { expired, overdue, next: nextPosition };
      }),
  };
}

export const EXPIRY_STATEMENTS: Readonly<Record<'postgres' | 'sqlite', Statement>> = {
  postgres: SELECT_EXPIRING_POSTGRES,
  sqlite: SELECT_EXPIRING_SQLITE,
};
