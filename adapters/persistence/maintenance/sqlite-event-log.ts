import type { EventLog } from '../../../application/ports/event-log.ts';
import type { SqliteSql } from '../sqlite/sql.ts';
import { named } from '../statement.ts';
import { EVENT_CURSOR, EVENT_LEASE, fieldsOf, LEAVE_EVENTS, MOVE_CURSOR, readBatch } from './event-log.ts';
import { sqliteJobs } from './job-sql.ts';

/** Writers come one after the other, so events become visible in the order of their positions. */
const BEGIN = named(
  'begin_event_log',
  `insert into event_cursors (name, position, tenant, session, version)
   values (${EVENT_CURSOR}, coalesce((select seq from sqlite_sequence where name = 'session_events'), 0), '', '', 0)
   on conflict do nothing`,
);
const HOLD = named(
  'hold_events',
  `insert into leases (name, holder, expires_at) values (${EVENT_LEASE}, $1, $2 + $3)
   on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
     where leases.expires_at <= $2 or leases.holder = excluded.holder or leases.expires_at > $2 + $3 + 60000
   returning holder`,
);
const NEXT = named(
  'next_events',
  `select c.position as c_position, c.tenant as c_tenant, c.session as c_session, c.version as c_version,
     0 as is_behind, e.position as l_position, e.tenant_id as l_tenant, e.session_id as l_session,
     e.version as l_version, e.tenant_id, e.session_id, e.version, e.status, e.at, s.kind
   from event_cursors c left join session_events e on e.position > c.position
   left join sessions s on s.tenant_id = e.tenant_id and s.id = e.session_id
   where c.name = ${EVENT_CURSOR} order by e.position limit $1`,
);

export function sqliteEventLog(sql: SqliteSql): EventLog {
  const { change } = sqliteJobs(sql);
  return {
    async beginHandingOn() {
      await change(BEGIN);
    },
    nextEvents: (holder, leaseSeconds, limit) =>
      sql.transaction((run) => {
        const isHeld = run.all(HOLD, holder, run.time(), leaseSeconds * 1000).length > 0;
        return isHeld ? readBatch(run.all(NEXT, limit)) : undefined;
      }),
    handedOn: async (from, to) => (await change(MOVE_CURSOR, ...fieldsOf(to), ...fieldsOf(from))) > 0,
    // The numbers are stored with the rows, so they cannot be behind.
    renumber: () => Promise.resolve(0),
    async leaveEvents(holder) {
      await change(LEAVE_EVENTS, holder);
    },
  };
}
