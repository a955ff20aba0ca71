import type { LogBatch, LoggedEvent, RelayCursor } from '../../../application/ports/event-log.ts';
import type { SessionKind, SessionStatus } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { Row } from '../statement.ts';

/** The holder of this lease publishes the events after the cursor. */
export const EVENT_LEASE = `'hand-on-events'`;
export const EVENT_CURSOR = `'session-events'`;

/** Condition on a row `e` of `session_events`: its position is after the cursor, so it is not published yet. */
export const UNPUBLISHED = `e.position > (select position from event_cursors where name = ${EVENT_CURSOR})`;

export const MOVE_CURSOR = {
  name: 'move_event_cursor',
  text: `update event_cursors set position = $1, tenant = $2, session = $3, version = $4
    where name = ${EVENT_CURSOR} and position = $5 and tenant = $6 and session = $7 and version = $8`,
};
export const RELEASE_EVENT_LEASE = { name: 'leave_events', text: `delete from leases where name = ${EVENT_LEASE} and holder = $1` };

export const fieldsOf = ({ position, tenantId, sessionId, version }: RelayCursor) => [position, tenantId, sessionId, version] as const;

/** Rows have the cursor as `c_…`, the log position of each event as `l_…`, and the event, which is null if there is none. */
export function readBatch(rows: readonly Row[]): LogBatch | undefined {
  const [firstRow] = rows;
  if (firstRow === undefined) return undefined;
  const events = rows.filter((row) => row['session_id'] !== null).map(readEvent);
  return { after: readCursor(firstRow, 'c'), events, needsRenumbering: Boolean(firstRow['needs_renumbering']) };
}

function readCursor(row: Row, prefix: 'c' | 'l'): RelayCursor {
  return {
    position: Number(row[`${prefix}_position`]),
    tenantId: String(row[`${prefix}_tenant`]),
    sessionId: String(row[`${prefix}_session`]),
    version: Number(row[`${prefix}_version`]),
  };
}

function readEvent(row: Row): LoggedEvent {
  return {
    tenantId: row['tenant_id'] as TenantId,
    sessionId: row['session_id'] as SessionId,
    kind: (row['kind'] ?? undefined) as SessionKind | undefined,
    version: Number(row['version']),
    status: row['status'] as SessionStatus,
    at: new Date(Number(row['at'])),
    cursor: readCursor(row, 'l'),
  };
}
