import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Maintenance } from '../../../application/ports/maintenance.ts';
import { DEFERRED_MOVES } from '../../../domain/issuance/deferred.ts';
import { OPEN_STATUSES } from '../../../domain/sessions/session.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import { HIDDEN } from '../rows/session-codec.ts';
import type { SqliteRun, SqliteSql } from '../sqlite/sql.ts';
import { listOf, named, type Row } from '../statement.ts';
import { UNSENT } from './event-log.ts';
import { postgresJobs, sqliteJobs } from './job-sql.ts';
import { dayOf, IS_RENEWED, POSTGRES_ROWS, RENEWED, renewals, SQLITE_ROWS } from './renewals.ts';

type CleaningUp = Pick<Maintenance, 'cleanUpSessions'>;

const OPEN = listOf(OPEN_STATUSES);
const WAITING = listOf(DEFERRED_MOVES.expire.from);

/**
 * What makes a session due, but for its age; `s` is the session, `t` its tenant. A wallet that was promised a credential
 * for later still comes back for it after the others have completed the session.
 */
const ENDED = `(s.status not in (${OPEN}) or s.expires_at <= $1)
  and (t.mode = 'full' or s.kind = '${HIDDEN}' or s.request is not null or s.outcome is not null)
  and not exists (select 1 from deferred_transactions w where w.tenant_id = s.tenant_id and w.session_id = s.id
    and w.status in (${WAITING}) and w.expires_at > $1)`;

/** Of a batch that cannot be revoked: once its session is gone, nothing asks for it. */
const NO_STATUS = 'status_list_id is null';

/** Of what is hidden nothing is left to look at. */
const MODE = `case when s.kind = '${HIDDEN}' then 'full' else t.mode end as mode`;
const DUE = `s.tenant_id = t.id and s.created_at <= $1 - t.ttl and ${ENDED}`;
const TENANTS_POSTGRES = `select id, coalesce(cast(session_config ->> 'ttlSeconds' as bigint), $3::bigint) * 1000 as ttl,
       coalesce(session_config ->> 'cleanupMode', 'full') as mode from tenants`;
const TENANTS_SQLITE = `select id, coalesce(json_extract(session_config, '$.ttlSeconds'), $3) * 1000 as ttl,
     coalesce(json_extract(session_config, '$.cleanupMode'), 'full') as mode from tenants`;

/** The lateral part walks the index of each tenant and stops at the limit, however many sessions there are. */
const CLEAN_UP_POSTGRES = named(
  'clean_up_sessions',
  `with t as (${TENANTS_POSTGRES}),
   p as (select d.tenant_id, d.id, d.mode from t cross join lateral (
       select s.tenant_id, s.id, ${MODE} from sessions s where ${DUE} and not (${IS_RENEWED})
       order by s.created_at limit $2 for update skip locked) d limit $2),
   g as (delete from grants g using p where g.tenant_id = p.tenant_id and g.session_id = p.id),
   d as (delete from deferred_transactions d using p where d.tenant_id = p.tenant_id and d.session_id = p.id),
   u as (delete from session_subjects u using p where u.tenant_id = p.tenant_id and u.session_id = p.id),
   e as (delete from session_events e using p
     where p.mode = 'full' and e.tenant_id = p.tenant_id and e.session_id = p.id returning e.position),
   b as (update issued_batches b set issued_at = ${dayOf('b.issued_at')} from p
     where b.tenant_id = p.tenant_id and b.session_id = p.id and not (p.mode = 'full' and b.${NO_STATUS})),
   n as (delete from issued_batches b using p
     where p.mode = 'full' and b.tenant_id = p.tenant_id and b.session_id = p.id and b.${NO_STATUS}),
   l as (update session_events e set at = ${dayOf('e.at')} from p
     where p.mode <> 'full' and e.tenant_id = p.tenant_id and e.session_id = p.id),
   r as (delete from sessions s using p where p.mode = 'full' and s.tenant_id = p.tenant_id and s.id = p.id),
   a as (update sessions s set request = null, outcome = null, version = version + 1,
       created_at = ${dayOf('created_at')}, updated_at = ${dayOf('updated_at')}, claimed_at = ${dayOf('claimed_at')},
       expires_at = ${dayOf('least(expires_at, $1)')} from p
     where p.mode <> 'full' and s.tenant_id = p.tenant_id and s.id = p.id)
   select count(*) filter (where mode = 'full') as removed, count(*) filter (where mode <> 'full') as anonymized,
     (select count(*) from e where ${UNSENT}) as unsent
   from p`,
);

const DUE_SQLITE = named(
  'due_sessions',
  `with t as materialized (${TENANTS_SQLITE})
   select s.tenant_id, s.id, ${MODE} from t cross join sessions s where ${DUE} and not (${IS_RENEWED}) limit $2`,
);
/** What wallets may still renew, of tenants that keep it no longer. */
const RENEWED_POSTGRES = named(
  'due_renewed_sessions',
  `with t as (${TENANTS_POSTGRES})
   select d.* from t cross join lateral (
     select ${RENEWED} from sessions s where ${DUE} and ${IS_RENEWED} order by s.created_at limit $2) d limit $2`,
);
const RENEWED_SQLITE = named(
  'due_renewed_sessions',
  `with t as materialized (${TENANTS_SQLITE})
   select ${RENEWED} from t cross join sessions s where ${DUE} and ${IS_RENEWED} limit $2`,
);
/** The same of one tenant, `$4`, which stands beside each table, so that a cluster knows its machine. */
const ofOne = (name: string, text: string) =>
  named(
    `${name}_of_tenant`,
    text
      .replace(TENANTS_POSTGRES, `${TENANTS_POSTGRES} where id = $$4`)
      .replace('s.tenant_id = t.id', 's.tenant_id = $$4')
      .replaceAll(/(\w)\.tenant_id = [ps]\.tenant_id/g, '$1.tenant_id = $$4'),
  );
const CLEAN_UP_ONE = ofOne('clean_up_sessions', CLEAN_UP_POSTGRES.text);
const RENEWED_OF_ONE = ofOne('due_renewed_sessions', RENEWED_POSTGRES.text);
const ALL_TENANTS = named('ids_of_tenants', 'select id from tenants order by id');

/** Pairs of tenant and session as one parameter, so that a table without an index on them is walked once. */
const THESE = `(select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each($1))`;
const drop = (table: string, key = 'session_id') =>
  named(`drop_${table}`, `delete from ${table} where (tenant_id, ${key}) in ${THESE}`);
const DROP_WHAT_HANGS_ON_THEM = ['grants', 'deferred_transactions', 'session_subjects'].map((table) =>
  drop(table),
);
const COUNT_UNSENT = named(
  'count_unsent_events',
  `select count(*) as unsent from session_events e where (tenant_id, session_id) in ${THESE} and ${UNSENT}`,
);
const DROP_EVENTS = drop('session_events');
const DROP_BATCHES = named(
  'drop_batches_without_status',
  `delete from issued_batches where (tenant_id, session_id) in ${THESE} and ${NO_STATUS}`,
);
const DROP_SESSIONS = drop('sessions', 'id');
const ROUND_BATCHES = named(
  'round_batches',
  `update issued_batches set issued_at = ${dayOf('issued_at')} where (tenant_id, session_id) in ${THESE}`,
);
const ROUND_EVENTS = named(
  'round_events',
  `update session_events set at = ${dayOf('at')} where (tenant_id, session_id) in ${THESE}`,
);
const ANONYMIZE = named(
  'anonymize_sessions',
  `update sessions set request = null, outcome = null, version = version + 1, created_at = ${dayOf('created_at')},
     updated_at = ${dayOf('updated_at')}, claimed_at = ${dayOf('claimed_at')}, expires_at = ${dayOf('min(expires_at, $2)')}
   where (tenant_id, id) in ${THESE}`,
);

/** The version moves on, so that nobody who read the client before writes the secret back. */
const FORGET_PICK_UP = 'update clients set pick_up = null, version = version + 1 where client_id in';
export const FORGET_PICK_UPS = {
  postgres: named(
    'forget_pick_ups',
    `${FORGET_PICK_UP} (select client_id from clients
       where pick_up is not null and cast(pick_up ->> 'expiresAt' as bigint) <= $1 limit $2 for update skip locked)`,
  ),
  sqlite: named(
    'forget_pick_ups',
    `${FORGET_PICK_UP} (select client_id from clients where pick_up is not null and json_extract(pick_up, '$.expiresAt') <= $1 limit $2)`,
  ),
};

export function postgresCleaningUp(sql: PostgresSql, cipher: Cipher): CleaningUp {
  const reduce = renewals(postgresJobs(sql), cipher, POSTGRES_ROWS);
  return {
    async cleanUpSessions(now, limit, { ttlSeconds }) {
      const [row] = await sql.query(CLEAN_UP_POSTGRES, [now.getTime(), limit, ttlSeconds]);
      const gone = countsOf(row);
      const left = limit - gone.removed - gone.anonymized;
      if (left <= 0) return cleanedUp(gone);
      const due = await sql.query(RENEWED_POSTGRES, [now.getTime(), left, ttlSeconds]);
      return cleanedUp(gone, await reduce(due, now));
    },
  };
}

/** On a cluster: tenant by tenant, until there were as many as may be. */
export function clusterCleaningUp(sql: PostgresSql, cipher: Cipher): CleaningUp {
  const reduce = renewals(postgresJobs(sql), cipher, POSTGRES_ROWS);
  return {
    async cleanUpSessions(now, limit, { ttlSeconds }) {
      const done: CleanedUp[] = [];
      let left = limit;
      for (const { id } of await sql.query(ALL_TENANTS, [])) {
        if (left <= 0) break;
        const [row] = await sql.query(CLEAN_UP_ONE, [now.getTime(), left, ttlSeconds, String(id)]);
        const gone = countsOf(row);
        left -= gone.removed + gone.anonymized;
        done.push(gone);
        if (left <= 0) break;
        const due = await sql.query(RENEWED_OF_ONE, [now.getTime(), left, ttlSeconds, String(id)]);
        const reduced = await reduce(due, now);
        left -= reduced.removed + reduced.anonymized;
        done.push(reduced);
      }
      return cleanedUp(...done);
    },
  };
}

function countsOf(row: Row | undefined): CleanedUp {
  const count = (name: string) => Number(row?.[name]);
  return { removed: count('removed'), anonymized: count('anonymized'), unsent: count('unsent') };
}

export function sqliteCleaningUp(sql: SqliteSql, cipher: Cipher): CleaningUp {
  const jobs = sqliteJobs(sql);
  const reduce = renewals(jobs, cipher, SQLITE_ROWS);
  return {
    async cleanUpSessions(now, limit, { ttlSeconds }) {
      const gone = await sql.transaction((run) => cleanUpSqlite(run, now, limit, ttlSeconds));
      const left = limit - gone.removed - gone.anonymized;
      if (left <= 0) return cleanedUp(gone);
      return cleanedUp(
        gone,
        await reduce(await jobs.all(RENEWED_SQLITE, now.getTime(), left, ttlSeconds), now),
      );
    },
  };
}

function cleanUpSqlite(run: SqliteRun, now: Date, limit: number, ttlSeconds: number) {
  const due = run.all(DUE_SQLITE, now.getTime(), limit, ttlSeconds);
  if (due.length === 0) return { removed: 0, anonymized: 0, unsent: 0 };
  const pairs = (rows: typeof due) => JSON.stringify(rows.map((row) => [row['tenant_id'], row['id']]));
  const kept = pairs(due.filter((row) => row['mode'] !== 'full'));
  const full = pairs(due.filter((row) => row['mode'] === 'full'));
  for (const statement of DROP_WHAT_HANGS_ON_THEM) run.change(statement, pairs(due));
  run.change(DROP_BATCHES, full);
  run.change(ROUND_BATCHES, pairs(due));
  run.change(ROUND_EVENTS, kept);
  const unsent = Number(run.all(COUNT_UNSENT, full)[0]?.['unsent']);
  run.change(DROP_EVENTS, full);
  const removed = run.change(DROP_SESSIONS, full);
  const anonymized = run.change(ANONYMIZE, kept, now.getTime());
  return { removed, anonymized, unsent };
}

type CleanedUp = { readonly removed: number; readonly anonymized: number; readonly unsent: number };

function cleanedUp(...counts: readonly CleanedUp[]) {
  const sum = (name: keyof CleanedUp) => counts.reduce((total, each) => total + each[name], 0);
  const unsent = sum('unsent');
  return { removed: sum('removed'), anonymized: sum('anonymized'), ...(unsent > 0 && { unsent }) };
}
