import type { EventLog } from '../../../application/ports/event-log.ts';
import { postgresJobs } from '../job-sql.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import { namedStatement } from '../statement.ts';
import { EVENT_CURSOR, EVENT_LEASE, fieldsOf, MOVE_CURSOR, RELEASE_EVENT_LEASE, readBatch } from './event-log.ts';
import { PRESENT_MS } from './postgres-time.ts';

/**
 * The position of an event is the id of the transaction that wrote it. Every transaction below the lowest running one has ended, so nothing
 * can appear below it any more; later events wait, however long that takes. Clocks play no part.
 */
const COMPLETE = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
/** No transaction has had this id yet: an event at or above it was written by a database with other transaction ids. */
const UNUSED = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint';
const CURRENT = 'pg_current_xact_id()::text::bigint';

const BEGIN = namedStatement(
  'begin_event_log',
  `insert into event_cursors (name, position, tenant, session, version)
   values (${EVENT_CURSOR}, ${UNUSED}, '', '', 0) on conflict do nothing`,
);

/**
 * A transaction gets its id before it waits for the row of its session, so a later event of a session can have a lower position than an
 * earlier one. Such an event is published with the one that it overtook: `l` are the events that overtook none, `f` each of them with those
 * that overtook it. Both are few rows of one session, found by the key of the table. `$1` is the holder, `$2` milliseconds, `$3` the limit.
 */
const OF_SESSION = (alias: string, otherAlias: string) =>
  `${alias}.tenant_id = ${otherAlias}.tenant_id and ${alias}.session_id = ${otherAlias}.session_id`;
const NEXT = namedStatement(
  'next_events',
  `with held as (
     insert into leases (name, holder, expires_at) values (${EVENT_LEASE}, $1, ${PRESENT_MS} + $2::bigint)
     on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
       where leases.expires_at <= ${PRESENT_MS} or leases.holder = excluded.holder
         or leases.expires_at > ${PRESENT_MS} + $2::bigint + 60000
     returning 1),
   c as materialized (select position, tenant, session, version from event_cursors
     where name = ${EVENT_CURSOR} and exists (select 1 from held)),
   l as materialized (select e.position, e.tenant_id, e.session_id, e.version from session_events e
     where e.position >= (select position from c) and e.position < ${COMPLETE}
       and (e.position, e.tenant_id, e.session_id, e.version) > (select position, tenant, session, version from c)
       and coalesce((select max(b.position) from session_events b where ${OF_SESSION('b', 'e')}
         and b.version < e.version), 0) <= e.position
     order by e.position, e.tenant_id, e.session_id, e.version limit $3)
   select c.position as c_position, c.tenant as c_tenant, c.session as c_session, c.version as c_version,
     greatest(c.position, (select max(position) from session_events)) >= ${UNUSED} as needs_renumbering,
     l.position as l_position, l.tenant_id as l_tenant, l.session_id as l_session, l.version as l_version,
     f.tenant_id, f.session_id, f.version, f.status, f.at, s.kind
   from c left join l on true
   left join lateral (select f.* from session_events f where ${OF_SESSION('f', 'l')}
     and (f.version = l.version or f.version > l.version and f.position < l.position
       and not exists (select 1 from session_events m where ${OF_SESSION('m', 'f')}
         and m.version > l.version and m.version < f.version and m.position >= l.position))) f on true
   left join sessions s on s.tenant_id = f.tenant_id and s.id = f.session_id
   order by l.position, l.tenant_id, l.session_id, l.version, f.version`,
);

/**
 * Published events move to position 0, below every cursor; the others get the id of this transaction. No transaction has the ids up to 2.
 */
const RENUMBER = namedStatement(
  'renumber_events',
  `update session_events e set position = case
     when (e.position, e.tenant_id, e.session_id, e.version) > (c.position, c.tenant, c.session, c.version)
     then ${CURRENT} else 0 end
   from (select tenant_id, session_id, version from session_events where position >= ${UNUSED}
     order by position limit $1 for update) d, event_cursors c
   where e.tenant_id = d.tenant_id and e.session_id = d.session_id and e.version = d.version
     and c.name = ${EVENT_CURSOR}`,
);
const RESTART_CURSOR = namedStatement(
  'begin_event_log_anew',
  `update event_cursors set position = 1, tenant = '', session = '', version = 0
   where name = ${EVENT_CURSOR} and position >= ${UNUSED}`,
);

export function postgresEventLog(sql: PostgresSql): EventLog {
  const { change } = postgresJobs(sql);
  return {
    async startRelay() {
      await change(BEGIN);
    },
    nextEvents: async (holder, leaseSeconds, limit) => readBatch(await sql.query(NEXT, [holder, leaseSeconds * 1000, limit])),
    advanceRelay: async (from, to) => (await change(MOVE_CURSOR, ...fieldsOf(to), ...fieldsOf(from))) > 0,
    async renumber(limit) {
      const changedRows = await change(RENUMBER, limit);
      // The cursor moves last, so an interrupted run continues where it stopped.
      if (changedRows === 0) await change(RESTART_CURSOR);
      return changedRows;
    },
    async releaseRelay(holder) {
      await change(RELEASE_EVENT_LEASE, holder);
    },
  };
}
