import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { StoreUnavailableError } from '../../application/ports/store.ts';
import type { Terms } from '../../application/ports/terms.ts';
import type { Change, CommitResult } from '../../domain/changes/change.ts';
import type { History, Term, TermBeginning } from '../../domain/rewinds/term.ts';
import type { JobSql } from './job-sql.ts';
import { PRESENT_MS } from './maintenance/postgres-time.ts';
import { namedStatement, type Row } from './statement.ts';

/** Statements in which the dialects differ. */
export type TermSql = {
  readonly supportsPromotion: boolean;
  /** Reads the terms, the newest first, each with the location and time of the database; one row without a term if there is none. */
  read(sql: JobSql): Promise<readonly Row[]>;
};

/** Limit of terms that are read: promotions are rare, and no process remembers older terms. */
const MAX_TERMS = 200;
const readTerms = (stateSql: string) =>
  namedStatement(
    'read_terms',
    `select p.*, t.number, t.id, t.lineage, t.place, t.counter, t.began_at, t.how, t.lost_at, t.list_floor, t.witnessed_at,
       t.witnessed_counter, t.witnessed_idle_checks, t.witnessed_by
     from (select ${stateSql}) p left join service_terms t on true order by t.number desc limit ${MAX_TERMS}`,
  );
const COUNT = namedStatement(
  'count_term',
  `update service_terms set counter = counter + 1
   where number = $1 and id = $2 and counter >= $3 and number = (select max(number) from service_terms)`,
);
const OPEN = namedStatement(
  'open_term',
  `insert into service_terms (number, follows, id, lineage, place, counter, began_at, how, lost_at, list_floor)
   select cast($1 as bigint), t.number, cast($2 as text), t.lineage, cast($3 as text), t.counter, cast($4 as bigint), cast($5 as text), null,
     case when t.list_floor > $6 then t.list_floor else $6 end
   from service_terms t where t.number = $7 on conflict do nothing`,
);
const BEGIN = namedStatement(
  'begin_terms',
  `insert into service_terms (number, follows, id, lineage, place, counter, began_at, how, lost_at, list_floor)
   select 1, 0, cast($1 as text), cast($1 as text), cast($2 as text), 0, cast($3 as bigint), 'begun', null, 0
   where not exists (select 1 from service_terms) on conflict do nothing`,
);
const MARK_LOST = namedStatement(
  'mark_lost',
  `update service_terms set lost_at = $1
   where lost_at is null and number >= $2 and exists (select 1 from service_terms o where o.number = $2 and o.id = $3)
     and not exists (select 1 from service_terms s
       where s.number > $2 and s.number <= service_terms.number and s.how in ('accepted', 'fenced'))`,
);
const MARK_WITNESSED = namedStatement(
  'mark_term_witnessed',
  `update service_terms set witnessed_at = coalesce(witnessed_at, $5), witnessed_counter = $3, witnessed_idle_checks = $6,
     witnessed_by = $4
   where number = $1 and id = $2 and (coalesce(witnessed_counter, -1) < $3
     or (witnessed_counter = $3 and coalesce(witnessed_idle_checks, 0) < $6))`,
);
/** Challenges are leases without a holder until they are answered. */
const CHALLENGE = 'start-challenge/';
const CHALLENGE_MS = 60_000;
const OPEN_CHALLENGE = namedStatement(
  'open_start_challenge',
  `insert into leases (name, holder, expires_at) values ('${CHALLENGE}' || cast($1 as text), '', $2)`,
);
const ANSWER_CHALLENGE = namedStatement(
  'answer_start_challenge',
  `update leases set holder = 'answered' where name = '${CHALLENGE}' || cast($1 as text)`,
);
const IS_ANSWERED = namedStatement(
  'is_start_challenge_answered',
  `select 1 from leases where name = '${CHALLENGE}' || cast($1 as text) and holder = 'answered'`,
);
/** Also deletes challenges of processes that ended while they waited. */
const CLOSE_CHALLENGE = namedStatement(
  'close_start_challenge',
  `delete from leases where name = '${CHALLENGE}' || cast($1 as text)
   or (name like '${CHALLENGE}%' and expires_at <= $2)`,
);
const HAS_VALUE = namedStatement('has_used_value', 'select 1 from used_values where tenant_id = $1 and kind = $2 and hash = $3');
/**
 * A session that a client removed since, through any process, counts as found: otherwise clients could make a complete standby look
 * incomplete.
 */
const HAS_SESSION = namedStatement(
  'has_session',
  `select 1 from sessions where tenant_id = $1 and id = $2 and version >= $3
   union all select 1 from audit_entries where tenant_id = $1 and kind = 'session' and target = $2 and action = 'removed'`,
);

type LastChange = readonly [tenantId: string, name: string, value: string | number];

/** Remembers enough of the last change of this process to find it again. */
export class LastChanges {
  count = 0;
  last: LastChange | undefined;

  note(tenantId: string, { uses, opens, session, removes }: Change, committed: CommitResult): void {
    if (!committed.done) return;
    this.count++;
    const use = uses?.[0];
    if (use !== undefined) this.last = [tenantId, use.kind, use.hash];
    else if (opens?.session !== undefined) this.last = [tenantId, opens.session.id, opens.session.version];
    else if (session !== undefined && committed.session !== undefined && removes === undefined)
      this.last = [tenantId, session.id, committed.session.version];
  }
}

/** Location that identifies a database, among the databases of a cluster and among clusters. */
const POSTGRES_PLACE = `(select system_identifier from pg_control_system()) || '/' ||
  (select oid from pg_database where datname = current_database()) || '/' ||
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`;
const readOnPostgres = readTerms(
  `${PRESENT_MS} as now, pg_is_in_recovery() as standby,
   case when pg_is_in_recovery() then '' else ${POSTGRES_PLACE} end as present_place,
   (select string_agg(substr(name, ${CHALLENGE.length + 1}), ' ') from leases
     where name like '${CHALLENGE}%' and holder = '' and expires_at > ${PRESENT_MS}) as challenges`,
);
export const POSTGRES_TERMS: TermSql = { supportsPromotion: true, read: (sql) => sql.all(readOnPostgres) };

const readOnSqlite = readTerms(`cast(unixepoch('subsec') * 1000 as integer) as now`);

/** @param file undefined for a database in memory. */
export function sqliteTerms(file: string | undefined): TermSql {
  return {
    supportsPromotion: false,
    async read(sql) {
      // While a process has a file open, another file may take its name.
      const inode = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false })?.ino;
      return (await sql.all(readOnSqlite)).map((row) => ({ ...row, present_place: `file/${inode}` }));
    },
  };
}

/** @param sql over any connection, or over one that is not in use yet. */
export function termsOf(sql: JobSql, words: TermSql, changes: LastChanges): Terms {
  const read = async (): Promise<History> => {
    const rows = await words.read(sql);
    const [state] = rows;
    if (state?.['standby']) throw new StoreUnavailableError('the database is a standby that was not promoted');
    return {
      terms: rows.filter((row) => row['number'] !== null).map(readTerm),
      place: String(state?.['present_place']),
      now: new Date(Number(state?.['now'])),
      challenges: String(state?.['challenges'] ?? '')
        .split(' ')
        .filter(Boolean),
    };
  };
  return {
    supportsPromotion: words.supportsPromotion,
    get changes() {
      return changes.count;
    },
    read,
    async begin() {
      const { now, place } = await read();
      await sql.change(BEGIN, randomUUID(), place, now.getTime());
    },
    async count({ term, termId, counter }) {
      const { last: lastChange } = changes;
      const isCounted = (await sql.change(COUNT, term, termId, counter)) > 0;
      if (isCounted && changes.last === lastChange) changes.last = undefined;
      return read();
    },
    async open({ after: previousNumber, number, how, listFloor = 0 }) {
      const { now, place } = await read();
      return (await sql.change(OPEN, number, randomUUID(), place, now.getTime(), how, listFloor, previousNumber)) > 0;
    },
    async markLost({ term, termId }) {
      const { now } = await read();
      await sql.change(MARK_LOST, now.getTime(), term, termId);
    },
    async markWitnessed({ term, termId, counter, idleChecks = 0 }, place) {
      const { now } = await read();
      await sql.change(MARK_WITNESSED, term, termId, counter, place, now.getTime(), idleChecks);
    },
    async openChallenge() {
      const { now } = await read();
      const id = randomUUID();
      await sql.change(OPEN_CHALLENGE, id, now.getTime() + CHALLENGE_MS);
      return id;
    },
    async answerChallenges(ids) {
      for (const id of ids) await sql.change(ANSWER_CHALLENGE, id);
    },
    isAnswered: async (id) => (await sql.all(IS_ANSWERED, id)).length > 0,
    async closeChallenge(id) {
      const { now } = await read();
      await sql.change(CLOSE_CHALLENGE, id, now.getTime());
    },
    async hasLastChange() {
      if (changes.last === undefined) return true;
      const statement = typeof changes.last[2] === 'string' ? HAS_VALUE : HAS_SESSION;
      return (await sql.all(statement, ...changes.last)).length > 0;
    },
  };
}

function readTerm(row: Row): Term {
  const { lost_at: lostAt, witnessed_at: witnessedAt, witnessed_counter: witnessedCounter } = row;
  const { witnessed_idle_checks: witnessedIdleChecks, witnessed_by: witnessedBy } = row;
  return {
    number: Number(row['number']),
    id: String(row['id']),
    lineage: String(row['lineage']),
    place: String(row['place']),
    counter: Number(row['counter']),
    beganAt: new Date(Number(row['began_at'])),
    how: String(row['how']) as TermBeginning,
    lostAt: lostAt === null ? null : new Date(Number(lostAt)),
    listFloor: Number(row['list_floor']),
    witnessedAt: witnessedAt === null ? null : new Date(Number(witnessedAt)),
    witnessedCounter: witnessedCounter === null ? null : Number(witnessedCounter),
    witnessedIdleChecks: witnessedIdleChecks === null ? null : Number(witnessedIdleChecks),
    witnessedBy: witnessedBy === null ? null : String(witnessedBy),
  };
}
