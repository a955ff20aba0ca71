import type { Cipher } from '../../../application/ports/cipher.ts';
import type { CleanedUpTenant, CleanUpCursor, CleanUpTenant, Maintenance } from '../../../application/ports/maintenance.ts';
import { DEFERRED_MOVES } from '../../../domain/issuance/deferred.ts';
import { OPEN_STATUSES } from '../../../domain/sessions/session.ts';
import { defined } from '../../../domain/shared/defined.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { postgresJobs, sqliteJobs } from '../job-sql.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import { HIDDEN } from '../rows/session-codec.ts';
import type { SqliteRun, SqliteSql } from '../sqlite/sql.ts';
import { listOf, namedStatement, type Row, type Statement } from '../statement.ts';
import { BatchSize } from './batch-size.ts';
import { UNPUBLISHED } from './event-log.ts';
import { dayOf, IS_RENEWABLE, POSTGRES_ROWS, RENEWABLE_COLUMNS, renewals, SQLITE_ROWS } from './renewals.ts';

type CleaningUp = Pick<Maintenance, 'cleanUpSessions'>;

const OPEN = listOf(OPEN_STATUSES);
const WAITING = listOf(DEFERRED_MOVES.expire.from);

/** Number of tenants that one statement lists. */
const TENANTS = 500;
/** Cost of a listed tenant, in visited sessions of a batch. */
const LISTED_COST = 0.1;
/** Number of sessions that are reduced together: their sealed columns are opened and resealed on the main thread. */
const REDUCED = { postgres: 100, sqlite: 20 } as const;

const tenantsStatement = (ttl: string, mode: string) =>
  namedStatement(
    'tenants_to_clean_up',
    `with t as (select id, ${ttl} * 1000 as ttl, coalesce(${mode}, 'full') as mode from tenants)
     select t.id, t.mode, t.ttl, (select s.created_at from sessions s where s.tenant_id = t.id and s.created_at <= $1 - t.ttl
       order by s.created_at desc limit 1) as newest
     from t where t.id > $3 order by t.id limit ${TENANTS}`,
  );
const TENANTS_POSTGRES = tenantsStatement(
  `coalesce(cast(session_config ->> 'ttlSeconds' as bigint), $2::bigint)`,
  `session_config ->> 'cleanupMode'`,
);
const TENANTS_SQLITE = tenantsStatement(
  `coalesce(json_extract(session_config, '$.ttlSeconds'), $2)`,
  `json_extract(session_config, '$.cleanupMode')`,
);

/**
 * Action for a session `s` at the time `$1`, by the clean-up mode `$3` of its tenant. A wallet with a deferred credential still comes back
 * after the other credentials have completed the session. A request that was erased when the session ended does not show that the session
 * was anonymized; its creation time, rounded to the day, does.
 */
const TO_DO = `case
  when $3 <> 'full' and s.kind <> '${HIDDEN}' and s.request is null and s.outcome is null
    and ${dayOf('s.created_at')} = s.created_at then 'nothing'
  when s.status in (${OPEN}) and s.expires_at > $1 then 'wait'
  when exists (select 1 from deferred_transactions w where w.tenant_id = $2 and w.session_id = s.id
    and w.status in (${WAITING}) and +w.expires_at > $1) then 'wait'
  when ${IS_RENEWABLE} then 'reduce'
  else 'clean' end`;

/** Visits the next `$7` sessions of the tenant `$2` up to `$4` in the order of their creation: those with an action, and the last one. */
const visit = (source: string, behind: string) =>
  namedStatement(
    'visit_due_sessions',
    `with visited as materialized (
     select s.id, s.created_at, ${TO_DO} as to_do from ${source}
     where s.tenant_id = $2 and s.created_at <= $4 and s.created_at >= $5 and ${behind}
     order by s.created_at, s.id limit $7)
   select visited.*, 0 as is_last from visited where to_do <> 'nothing'
   union all
   select * from (select visited.*, 1 as is_last from visited order by created_at, id limit 1 offset $7 - 1) l`,
  );
const VISIT_POSTGRES = visit('sessions s', '(s.created_at, s.id) > ($5, $6)');
/** If statistics say that one tenant has nearly all sessions, SQLite would use the index for a comparison of pairs only, and sort. */
const VISIT_SQLITE = visit('sessions s indexed by sessions_by_creation', '(s.created_at > $5 or s.id > $6)');

/** Condition of a batch that cannot be revoked: once its session is gone, nothing needs it. */
const NO_STATUS = 'status_list_id is null';

/** `$4` are ids of sessions. Each table is restricted by the tenant, so that a cluster can route the statement. */
const CLEAN_UP_POSTGRES = namedStatement(
  'clean_up_sessions',
  `with p as (select s.id, case when s.kind = '${HIDDEN}' then 'full' else $3 end as mode from sessions s
     where s.tenant_id = $2 and s.id = any($4::text[]) and ${TO_DO} = 'clean' for update skip locked),
   g as (delete from grants g using p where g.tenant_id = $2 and g.session_id = p.id),
   d as (delete from deferred_transactions d using p where d.tenant_id = $2 and d.session_id = p.id),
   u as (delete from session_subjects u using p where u.tenant_id = $2 and u.session_id = p.id),
   e as (delete from session_events e using p
     where p.mode = 'full' and e.tenant_id = $2 and e.session_id = p.id returning e.position),
   b as (update issued_batches b set issued_at = ${dayOf('b.issued_at')} from p
     where b.tenant_id = $2 and b.session_id = p.id and not (p.mode = 'full' and b.${NO_STATUS})),
   n as (delete from issued_batches b using p
     where p.mode = 'full' and b.tenant_id = $2 and b.session_id = p.id and b.${NO_STATUS}),
   l as (update session_events e set at = ${dayOf('e.at')} from p
     where p.mode <> 'full' and e.tenant_id = $2 and e.session_id = p.id),
   r as (delete from sessions s using p where p.mode = 'full' and s.tenant_id = $2 and s.id = p.id),
   a as (update sessions s set request = null, outcome = null, version = version + 1,
       created_at = ${dayOf('created_at')}, updated_at = ${dayOf('updated_at')}, claimed_at = ${dayOf('claimed_at')},
       expires_at = ${dayOf('least(expires_at, $1)')} from p
     where p.mode <> 'full' and s.tenant_id = $2 and s.id = p.id)
   select count(*) filter (where mode = 'full') as removed, count(*) filter (where mode <> 'full') as anonymized,
     (select count(*) from e where ${UNPUBLISHED}) as unsent
   from p`,
);
/** Sessions with credentials that wallets may still renew, of tenants whose retention period is over. */
const renewedStatement = (ids: string) =>
  namedStatement(
    'due_renewed_sessions',
    `select ${RENEWABLE_COLUMNS} from sessions s where s.tenant_id = $2 and s.id ${ids} and ${IS_RENEWABLE}`,
  );
const RENEWED_POSTGRES = renewedStatement('= any($3::text[])');
const RENEWED_SQLITE = renewedStatement('in (select value from json_each($3))');
const KINDS_SQLITE = namedStatement(
  'kinds_of_sessions',
  'select id, kind from sessions where tenant_id = $1 and id in (select value from json_each($2))',
);

/** Pairs of tenant and session as one parameter, so that a table without an index on them is scanned once. */
const SESSION_PAIRS = `(select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each($1))`;
const drop = (table: string, key = 'session_id') =>
  namedStatement(`drop_${table}`, `delete from ${table} where (tenant_id, ${key}) in ${SESSION_PAIRS}`);
const DROP_DEPENDENT_ROWS = ['grants', 'deferred_transactions', 'session_subjects'].map((table) => drop(table));
const COUNT_UNSENT = namedStatement(
  'count_unsent_events',
  `select count(*) as unsent from session_events e where (tenant_id, session_id) in ${SESSION_PAIRS} and ${UNPUBLISHED}`,
);
const DROP_EVENTS = drop('session_events');
const DROP_BATCHES = namedStatement(
  'drop_batches_without_status',
  `delete from issued_batches where (tenant_id, session_id) in ${SESSION_PAIRS} and ${NO_STATUS}`,
);
const DROP_SESSIONS = drop('sessions', 'id');
const ROUND_BATCHES = namedStatement(
  'round_batches',
  `update issued_batches set issued_at = ${dayOf('issued_at')} where (tenant_id, session_id) in ${SESSION_PAIRS}`,
);
const ROUND_EVENTS = namedStatement(
  'round_events',
  `update session_events set at = ${dayOf('at')} where (tenant_id, session_id) in ${SESSION_PAIRS}`,
);
const ANONYMIZE = namedStatement(
  'anonymize_sessions',
  `update sessions set request = null, outcome = null, version = version + 1, created_at = ${dayOf('created_at')},
     updated_at = ${dayOf('updated_at')}, claimed_at = ${dayOf('claimed_at')}, expires_at = ${dayOf('min(expires_at, $2)')}
   where (tenant_id, id) in ${SESSION_PAIRS}`,
);

/** The version is raised, so that a concurrent writer of the client cannot write the secret back. */
const FORGET_PICK_UP = 'update clients set pick_up = null, version = version + 1 where client_id in';
export const FORGET_PICK_UPS = {
  postgres: namedStatement(
    'forget_pick_ups',
    `${FORGET_PICK_UP} (select client_id from clients
       where pick_up is not null and cast(pick_up ->> 'expiresAt' as bigint) <= $1 limit $2 for update skip locked)`,
  ),
  sqlite: namedStatement(
    'forget_pick_ups',
    `${FORGET_PICK_UP} (select client_id from clients where pick_up is not null and json_extract(pick_up, '$.expiresAt') <= $1 limit $2)`,
  ),
};

type Counts = { readonly removed: number; readonly anonymized: number; readonly unsent: number };
type PagePosition = NonNullable<CleanUpCursor['after']>;
type Page = Counts & {
  readonly visited: number;
  readonly leftFrom?: Date;
  /** Undefined at the end of the tenant. */
  readonly next?: PagePosition;
};
/** Statements in which the dialects differ. */
type Steps = {
  tenants(now: Date, ttlSeconds: number, previousTenantId: string): Promise<readonly Row[]>;
  page(now: Date, tenant: CleanUpTenant, position: PagePosition, limit: number): Promise<Page>;
};

const NO_COUNTS: Counts = { removed: 0, anonymized: 0, unsent: 0 };
const plus = (a: Counts, b: Counts): Counts => ({
  removed: a.removed + b.removed,
  anonymized: a.anonymized + b.anonymized,
  unsent: a.unsent + b.unsent,
});

/** Visits the due sessions of all tenants, each of them once, whatever the action. */
async function cleanUpPages(
  steps: Steps,
  now: Date,
  limit: number,
  { ttlSeconds, startOf }: Parameters<CleaningUp['cleanUpSessions']>[2],
  position: CleanUpCursor | undefined,
): ReturnType<CleaningUp['cleanUpSessions']> {
  let { tenants, after: pagePosition, leftFrom, lastListed }: CleanUpCursor = position ?? { tenants: [], lastListed: '' };
  let counts = NO_COUNTS;
  let visited = 0;
  const walked: CleanedUpTenant[] = [];
  while (visited < limit) {
    const [tenant] = tenants;
    if (tenant === undefined) {
      if (lastListed === undefined) break;
      const rows = await steps.tenants(now, ttlSeconds, lastListed);
      tenants = rows.filter((row) => row['newest'] !== null).map((row) => readTenant(row, now));
      visited += rows.length * LISTED_COST;
      lastListed = rows.length < TENANTS ? undefined : String(rows.at(-1)?.['id']);
      continue;
    }
    const start = pagePosition === undefined ? startOf?.(tenant) : undefined;
    const isDone = start !== undefined && start >= tenant.newest;
    if (!isDone) {
      const from = pagePosition ?? (start && { createdAt: start.getTime() + 1, id: '' }) ?? FIRST;
      const page = await steps.page(now, tenant, from, Math.max(1, Math.floor(limit - visited)));
      counts = plus(counts, page);
      visited += page.visited;
      leftFrom ??= page.leftFrom;
      pagePosition = page.next;
      if (pagePosition !== undefined) continue;
    }
    walked.push({ ...tenant, ...(leftFrom !== undefined && { leftFrom }) });
    leftFrom = undefined;
    tenants = tenants.slice(1);
  }
  const isOver = tenants.length === 0 && lastListed === undefined;
  const nextPosition = { tenants, ...defined({ after: pagePosition, leftFrom, lastListed }) };
  const { unsent, ...touched } = counts;
  return { ...touched, ...(unsent > 0 && { unsent }), ...(!isOver && { next: nextPosition }), ...(startOf !== undefined && { walked }) };
}

const FIRST: PagePosition = { createdAt: Number.MIN_SAFE_INTEGER, id: '' };

function readTenant(row: Row, now: Date): CleanUpTenant {
  return {
    id: row['id'] as TenantId,
    mode: String(row['mode']),
    until: new Date(now.getTime() - Number(row['ttl'])),
    newest: new Date(Number(row['newest'])),
  };
}

/** @param most sessions with an action that are returned; the next visit begins behind the last of them. */
function readVisit(rows: readonly Row[], limit: number, most = Number.POSITIVE_INFINITY) {
  const dueRows = rows.filter((row) => Number(row['is_last']) === 0);
  const selectedRows = dueRows.slice(0, most);
  const isCut = selectedRows.length < dueRows.length;
  const idsTo = (what: string) => selectedRows.filter((row) => row['to_do'] === what).map((row) => String(row['id']));
  const lastRow = isCut ? selectedRows.at(-1) : rows.find((row) => Number(row['is_last']) === 1);
  const createdAt = (row: Row) => new Date(Number(row['created_at']));
  const firstRemaining = selectedRows.find((row) => row['to_do'] !== 'clean');
  return {
    clean: idsTo('clean'),
    reduce: idsTo('reduce'),
    page: {
      // A page that is not full visited at least the rows that it returned.
      visited: lastRow === undefined || isCut ? Math.max(1, selectedRows.length) : limit,
      first: selectedRows[0] && createdAt(selectedRows[0]),
      ...(firstRemaining !== undefined && { leftFrom: createdAt(firstRemaining) }),
      ...(lastRow !== undefined && { next: { createdAt: Number(lastRow['created_at']), id: String(lastRow['id']) } }),
    },
  };
}

const ofTenant = (rows: readonly Row[], { mode, until }: CleanUpTenant, now: Date) =>
  rows.map((row) => ({ ...row, mode: row['kind'] === HIDDEN ? 'full' : mode, ttl: now.getTime() - until.getTime() }));

const visitParameters = (now: Date, { id, mode, until }: CleanUpTenant, position: PagePosition, limit: number) =>
  [now.getTime(), id, mode, until.getTime(), position.createdAt, position.id, limit] as const;

export function postgresCleaningUp(sql: PostgresSql, cipher: Cipher): CleaningUp {
  const reduce = renewals(postgresJobs(sql), cipher, POSTGRES_ROWS);
  const steps: Steps = {
    tenants: (now, ttlSeconds, previousTenantId) => sql.query(TENANTS_POSTGRES, [now.getTime(), ttlSeconds, previousTenantId]),
    async page(now, tenant, position, limit) {
      const rows = await sql.query(VISIT_POSTGRES, visitParameters(now, tenant, position, limit));
      const { clean, reduce: renewed, page } = readVisit(rows, limit);
      let counts = NO_COUNTS;
      let leftFrom = page.leftFrom;
      if (clean.length > 0) {
        const values = [now.getTime(), tenant.id, tenant.mode, clean];
        counts = countsOf((await sql.query(CLEAN_UP_POSTGRES, values))[0]);
        // The other sessions are locked by another transaction.
        if (counts.removed + counts.anonymized < clean.length) leftFrom = page.first;
      }
      for (let from = 0; from < renewed.length; from += REDUCED.postgres) {
        const ids = renewed.slice(from, from + REDUCED.postgres);
        const due = await sql.query(RENEWED_POSTGRES, [now.getTime(), tenant.id, ids]);
        counts = plus(counts, await reduce(ofTenant(due, tenant, now), now));
      }
      return { ...counts, ...page, ...defined({ leftFrom }) };
    },
  };
  return { cleanUpSessions: (now, limit, options, place) => cleanUpPages(steps, now, limit, options, place) };
}

function countsOf(row: Row | undefined): Counts {
  const count = (name: string) => Number(row?.[name]);
  return { removed: count('removed'), anonymized: count('anonymized'), unsent: count('unsent') };
}

export function sqliteCleaningUp(sql: SqliteSql, cipher: Cipher): CleaningUp {
  const jobs = sqliteJobs(sql);
  const reduce = renewals(jobs, cipher, SQLITE_ROWS);
  // Most visited sessions may need no action, so a visit has many of them. Cleaning up as many would block the thread for long.
  const visits = new BatchSize();
  const changes = new BatchSize();
  /** True if most sessions of the last page were due: visiting more than one batch can clean up would only be repeated. */
  let isDense = false;
  const steps: Steps = {
    tenants: (now, ttlSeconds, previousTenantId) => jobs.all(TENANTS_SQLITE, now.getTime(), ttlSeconds, previousTenantId),
    async page(now, tenant, position, limit) {
      const {
        reduce: renewed,
        page,
        counts,
      } = await changes.run(limit, (most) =>
        sql.transaction(
          (run) => {
            const visited = isDense ? most : limit;
            const rows = visits.timed(() => run.all(VISIT_SQLITE, ...visitParameters(now, tenant, position, visited)));
            const visitResult = readVisit(rows, visited, most);
            isDense = visitResult.clean.length > most / 2;
            changes.touched(visitResult.clean.length);
            const counts = changes.timed(() => cleanUpSqlite(run, now, tenant, visitResult.clean));
            return { ...visitResult, counts };
          },
          (step) => changes.transaction(step),
        ),
      );
      await new Promise((resolve) => setImmediate(resolve));
      let totals: Counts = counts;
      for (let from = 0; from < renewed.length; from += REDUCED.sqlite) {
        const ids = renewed.slice(from, from + REDUCED.sqlite);
        const due = await jobs.all(RENEWED_SQLITE, now.getTime(), tenant.id, ids);
        totals = plus(totals, await reduce(ofTenant(due, tenant, now), now));
        await new Promise((resolve) => setImmediate(resolve));
      }
      return { ...totals, ...page };
    },
  };
  return {
    cleanUpSessions: (now, limit, options, place) => visits.run(limit, (visited) => cleanUpPages(steps, now, visited, options, place)),
  };
}

function cleanUpSqlite(run: SqliteRun, now: Date, { id, mode }: CleanUpTenant, ids: readonly string[]): Counts {
  if (ids.length === 0) return NO_COUNTS;
  const hidden = new Set(run.all(KINDS_SQLITE, id, ids).flatMap((row) => (row['kind'] === HIDDEN ? [String(row['id'])] : [])));
  const isFull = (session: string) => mode === 'full' || hidden.has(session);
  const pairs = (sessions: readonly string[]) => JSON.stringify(sessions.map((session) => [id, session]));
  const due = pairs(ids);
  const anonymizedPairs = pairs(ids.filter((session) => !isFull(session)));
  const full = pairs(ids.filter(isFull));
  for (const statement of DROP_DEPENDENT_ROWS) run.change(statement, due);
  run.change(DROP_BATCHES, full);
  run.change(ROUND_BATCHES, due);
  run.change(ROUND_EVENTS, anonymizedPairs);
  const unsent = Number(run.all(COUNT_UNSENT, full)[0]?.['unsent']);
  run.change(DROP_EVENTS, full);
  const removed = run.change(DROP_SESSIONS, full);
  const anonymized = run.change(ANONYMIZE, anonymizedPairs, now.getTime());
  return { removed, anonymized, unsent };
}

/** Exported for tests, which check the query plan. */
export const VISIT_DUE_SESSIONS: Readonly<Record<'postgres' | 'sqlite', Statement>> = { postgres: VISIT_POSTGRES, sqlite: VISIT_SQLITE };
