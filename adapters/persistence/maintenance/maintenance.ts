import type { Cipher } from '../../../application/ports/cipher.ts';
import type { EventLog } from '../../../application/ports/event-log.ts';
import type { Maintenance } from '../../../application/ports/maintenance.ts';
import type { StoredTrustListJobs, UnreportedProblem } from '../../../application/ports/stored-trust-lists.ts';
import { DEFERRED_MOVES } from '../../../domain/issuance/deferred.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import type { ClientMacs } from '../client-macs.ts';
import { type JobSql, postgresJobs, sqliteJobs } from '../job-sql.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import { type SqliteSql, STORE_TIME } from '../sqlite/sql.ts';
import { listOf, namedStatement, type Statement } from '../statement.ts';
import { keyOfFinding, STORED_TRUST_LISTS } from '../stored-trust-lists.ts';
import { BatchSize } from './batch-size.ts';
import { EVENT_CURSOR, EVENT_LEASE, fieldsOf, MOVE_CURSOR, RELEASE_EVENT_LEASE, readBatch } from './event-log.ts';
import { postgresExpiry, sqliteExpiry } from './expiry.ts';
import { followedWallets, POSTGRES_FOLLOWED, SQLITE_FOLLOWED } from './followed-wallets.ts';
import { issuedSubjects, POSTGRES_SUBJECTS, SQLITE_SUBJECTS } from './issued-subjects.ts';
import { pendingDeliveries } from './pending-deliveries.ts';
import { postgresEventLog } from './postgres-event-log.ts';
import { PRESENT_MS } from './postgres-time.ts';
import { endedTenants, tenantRemains } from './remaining-tenant-rows.ts';
import { resealing } from './resealing.ts';
import { FORGET_PICK_UPS, postgresCleaningUp, sqliteCleaningUp } from './retention.ts';

/** Tables whose rows expire, and their keys. */
const FORGOTTEN = {
  used_values: 'tenant_id, kind, hash',
  grants: 'tenant_id, id',
  authorizations: 'tenant_id, id',
  kept_answers: 'tenant_id, id',
  open_session_bytes: 'tenant_id, expires_at',
  issued_subjects: 'tenant_id, fingerprint, session_id, batch_id',
};
/** Rows of these tables live for long: the order makes the database use the index by expiry instead of reading rows that are not due. */
const LONG_LIVED = ['grants', 'issued_subjects', 'open_session_bytes'];
const FORGET = Object.entries(FORGOTTEN).map(([table, key]) => {
  const order = LONG_LIVED.includes(table) ? 'order by expires_at' : '';
  const due = `select ${key} from ${table} where expires_at <= $1 ${order} limit $2`;
  return namedStatement(`forget_${table}`, `delete from ${table} where (${key}) in (${due})`);
});
const EXPIRE_DEFERRED = namedStatement(
  'expire_deferred',
  `update deferred_transactions set status = ${listOf([DEFERRED_MOVES.expire.to])}, credentials = null,
     holder_keys = '[]', wallet_statuses = null, updated_at = $1
   where (tenant_id, id) in (select tenant_id, id from deferred_transactions
     where expires_at <= $1 and status in (${listOf(DEFERRED_MOVES.expire.from)}) limit $2)`,
);

const ENDING_TRUST_LISTS = namedStatement(
  'ending_trust_lists',
  `select tenant_id, id, next_update from trust_lists
   where next_update <= $1 and (next_update, tenant_id, id) > ($3, $4, $5)
   order by next_update, tenant_id, id limit $2`,
);

/**
 * The state is computed in the database, so an answer is empty while nothing changed. Each revision is weighted by the creation time of its
 * tenant, so that changes of two tenants do not cancel each other.
 */
const TENANT_VERSIONS = namedStatement(
  'tenant_versions',
  `select t.id, t.revision, t.created_at, s.state from (
     select cast(count(*) as text) || '/' || cast(coalesce(sum(created_at), 0) as text) || '/' ||
       cast(coalesce(sum(revision * (1 + created_at % 999983)), 0) as text) as state from tenants) s
   left join tenants t on true where s.state <> $1`,
);

/** Rows of the first removal batch of a table. */
const FIRST_REMOVED = 200;

/** SQLite itself decides which tables to analyze. */
const OPTIMIZE = namedStatement('optimize', 'pragma optimize');

const PRESENT = namedStatement('present', `select ${PRESENT_MS} as now`);

/**
 * A lease that ends more than a minute after one taken now was taken by a wrong clock. Releasing a lease (it then ends now) never takes the
 * lease of another holder.
 */
const LEASE = namedStatement(
  'lease',
  `insert into leases (name, holder, expires_at) values ($1, $2, $3)
   on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
     where leases.expires_at <= $4 or leases.holder = excluded.holder
       or $3 > $4 and leases.expires_at > $3 + 60000
   returning holder`,
);

/**
 * Tables on the wallet paths that grew fourfold since the last analyze. The server's autovacuum runs once a minute; until then a plan for
 * an empty table scans a whole tenant instead of finding one row.
 */
const GROWN = namedStatement(
  'grown_tables',
  `select relname as name from pg_class
   where relnamespace = to_regnamespace(current_schema()) and relname = any($1::text[])
     and pg_relation_size(oid) > 65536
     and pg_relation_size(oid) > 4 * current_setting('block_size')::bigint * greatest(relpages, 0)`,
);
const GROWING = [
  'sessions',
  'grants',
  'authorizations',
  'used_values',
  'session_events',
  'issued_batches',
  'status_entries',
  'followed_statuses',
];

const RETIRED = 'select owner, kms, key_id, algorithm from retired_keys';
const RETIRED_KEYS = namedStatement('retired_keys', `${RETIRED} order by retired_at limit $1`);
const RETIRED_KEYS_OF = namedStatement('retired_keys_of', `${RETIRED} where owner = $2 order by retired_at limit $1`);
const FORGET_RETIRED_KEY = namedStatement('forget_retired_key', 'delete from retired_keys where owner = $1 and kms = $2 and key_id = $3');
const POSTPONE_RETIRED_KEY = namedStatement(
  'postpone_retired_key',
  `update retired_keys set retired_at = (select max(retired_at) + 1 from retired_keys)
   where owner = $1 and kms = $2 and key_id = $3`,
);

function sqliteRemains(sql: SqliteSql): Pick<Maintenance, 'removeRemainingRows' | 'tenantRemovals'> {
  // One size per table: a row of one table can take ten times as long as a row of another.
  const sizes = new Map<number, BatchSize>();
  const sizeOf = (table: number) => {
    const size = sizes.get(table) ?? new BatchSize(FIRST_REMOVED);
    sizes.set(table, size);
    return size;
  };
  const measured = (size: BatchSize): JobSql => ({
    all: (statement, ...values) => sql.single((run) => size.timed(() => run.all(statement, ...values))),
    change: (statement, ...values) =>
      sql.transaction(
        (run) => size.timed(() => run.change(statement, ...values)),
        (step) => size.transaction(step),
      ),
  });
  return tenantRemains(sqliteJobs(sql), {
    sql: (table) => measured(sizeOf(table)),
    async run(table, limit, work) {
      // Requests that arrived while the last page was removed run first.
      await new Promise((resolve) => setImmediate(resolve));
      const size = sizeOf(table);
      return size.run(limit, async (rows) => {
        const page = await work(rows);
        size.touched(page.removed);
        return page;
      });
    },
  });
}

/** Jobs that are the same in both dialects, except for `forgetPickUps`. */
function jobs(sql: JobSql, cipher: Cipher, clientMacs: ClientMacs, forgetPickUps: Statement) {
  return {
    ...resealing(sql, cipher, clientMacs),
    ...keptTrustListJobs(sql, cipher),
    ...pendingDeliveries(sql),
    ...auditLogJobs(sql),
    endedTenants: (now, limit) => endedTenants(sql, now, limit),
    forgetPickUps: (now, limit) => sql.change(forgetPickUps, now.getTime(), limit),
    async forgetExpired(now, limit) {
      let removed = 0;
      for (const statement of FORGET) removed += await sql.change(statement, now.getTime(), limit);
      return removed;
    },
    expireDeferred: (now, limit) => sql.change(EXPIRE_DEFERRED, now.getTime(), limit),
    async endingTrustLists(deadline, limit, cursor) {
      const { nextUpdate, tenantId = '', id = '' } = cursor ?? {};
      const position = [nextUpdate?.getTime() ?? Number.MIN_SAFE_INTEGER, tenantId, id] as const;
      const rows = await sql.all(ENDING_TRUST_LISTS, deadline.getTime(), limit, ...position);
      return rows.map((row) => ({
        tenantId: row['tenant_id'] as TenantId,
        id: String(row['id']),
        nextUpdate: new Date(Number(row['next_update'])),
      }));
    },
    async tenantVersions(state = '') {
      const rows = await sql.all(TENANT_VERSIONS, state);
      const [firstRow] = rows;
      if (firstRow === undefined) return undefined;
      const versions = rows
        .filter(({ id }) => id !== null)
        .map((row) => ({ id: String(row['id']) as TenantId, version: `${row['created_at']}/${row['revision']}` }));
      // Sorted here, because the order in the database depends on its locale.
      versions.sort((a, b) => (a.id < b.id ? -1 : 1));
      return { state: String(firstRow['state']), versions };
    },
    ...listFill(sql),
    async retiredKeys(limit, owner) {
      const rows = owner === undefined ? await sql.all(RETIRED_KEYS, limit) : await sql.all(RETIRED_KEYS_OF, limit, owner);
      return rows.map((row) => ({
        tenantId: String(row['owner']),
        handle: { kms: String(row['kms']), keyId: String(row['key_id']), algorithm: String(row['algorithm']) as SigningAlgorithm },
      }));
    },
    async forgetRetiredKey({ tenantId, handle }) {
      await sql.change(FORGET_RETIRED_KEY, tenantId, handle.kms, handle.keyId);
    },
    async postponeRetiredKey({ tenantId, handle }) {
      await sql.change(POSTPONE_RETIRED_KEY, tenantId, handle.kms, handle.keyId);
    },
    async tryLease(name, holder, now, ttlSeconds) {
      const expiresAt = now.getTime() + ttlSeconds * 1000;
      return (await sql.all(LEASE, name, holder, expiresAt, now.getTime())).length > 0;
    },
  } satisfies Partial<Maintenance>;
}

export function postgresMaintenance(sql: PostgresSql, cipher: Cipher, clientMacs: ClientMacs): Maintenance {
  return {
    ...jobs(postgresJobs(sql), cipher, clientMacs, FORGET_PICK_UPS.postgres),
    ...postgresExpiry(sql),
    ...tenantRemains(postgresJobs(sql)),
    ...postgresCleaningUp(sql, cipher),
    ...postgresEventLog(sql),
    ...followedWallets(postgresJobs(sql), cipher, POSTGRES_FOLLOWED),
    ...issuedSubjects(postgresJobs(sql), cipher, POSTGRES_SUBJECTS),
    async time() {
      const [row] = await sql.query(PRESENT, []);
      return new Date(Number(row?.['now']));
    },
    isCatchingUp: async () => false,
    async refreshStatistics() {
      const grown = (await sql.query(GROWN, [GROWING])).map((row) => String(row['name']));
      const refreshed: string[] = [];
      const failures: { readonly table: string; readonly error: unknown }[] = [];
      for (const table of grown) {
        try {
          await sql.query({ name: `analyze_${table}`, text: `analyze ${table}` }, []);
          refreshed.push(table);
        } catch (error) {
          failures.push({ table, error });
        }
      }
      return { refreshed, failures };
    },
  };
}

export function sqliteMaintenance(sql: SqliteSql, cipher: Cipher, clientMacs: ClientMacs): Maintenance {
  return {
    ...jobs(sqliteJobs(sql), cipher, clientMacs, FORGET_PICK_UPS.sqlite),
    ...sqliteExpiry(sql),
    ...sqliteRemains(sql),
    ...sqliteCleaningUp(sql, cipher),
    ...sqliteEventLog(sql),
    ...followedWallets(sqliteJobs(sql), cipher, SQLITE_FOLLOWED),
    ...issuedSubjects(sqliteJobs(sql), cipher, SQLITE_SUBJECTS),
    isCatchingUp: async () => sql.isCatchingUp(),
    time: () =>
      sql.transaction((run) => {
        const now = run.time();
        run.change(STORE_TIME, now);
        return new Date(now);
      }),
    refreshStatistics: () =>
      sql.transaction((run) => {
        run.all(OPTIMIZE);
        return { refreshed: [], failures: [] };
      }),
  };
}

/** One index lookup per chain. The chain of the service belongs to no tenant. */
const OLD = namedStatement(
  'old_audit_logs',
  `select h.tenant_id from audit_heads h where h.tenant_id > $3 and h.tenant_id <> ''
     and (select e.at from audit_entries e where e.tenant_id = h.tenant_id order by e.sequence limit 1) < $1
   order by h.tenant_id limit $2`,
);
const REMOVE = namedStatement('remove_audit_entries', 'delete from audit_entries where tenant_id = $1 and sequence <= $2 and at < $3');

function auditLogJobs(sql: JobSql): Pick<Maintenance, 'oldAuditLogs' | 'removeAuditEntries'> {
  return {
    async oldAuditLogs(cutoff, limit, previousTenantId) {
      const rows = await sql.all(OLD, cutoff.getTime(), limit, previousTenantId ?? '');
      return rows.map((row) => row['tenant_id'] as TenantId);
    },
    removeAuditEntries: (tenantId, upTo, cutoff) => sql.change(REMOVE, tenantId, upTo, cutoff.getTime()),
  };
}

const HELD = namedStatement(
  'held_trust_lists',
  'select count(*) as held from kept_trust_lists where seen_at > $1 and held_since is not null',
);
const FORGET_KEPT_LISTS = namedStatement(
  'forget_kept_trust_lists',
  `delete from kept_trust_lists where (tenant_id, id) in (select tenant_id, id from kept_trust_lists
     where seen_at <= $1 and (ends_at is null or ends_at <= $1) limit $2)`,
);

const SELECT_UNREPORTED = namedStatement(
  'untold_findings',
  `select tenant_id, id, place, finding, held_since from kept_trust_lists
   where finding_key is not null and (told_key is null or told_key <> finding_key) order by held_since limit $1`,
);
const MARK_REPORTED = namedStatement(
  'told_finding',
  'update kept_trust_lists set told_key = $3 where tenant_id = $1 and id = $2 and finding_key = $3',
);

function keptTrustListJobs(sql: JobSql, cipher: Cipher): StoredTrustListJobs {
  return {
    countHeldTrustLists: async (seenSince) => Number((await sql.all(HELD, seenSince.getTime()))[0]?.['held']),
    async unreportedProblems(limit) {
      const rows = await sql.all(SELECT_UNREPORTED, limit);
      return rows.flatMap((row): UnreportedProblem[] => {
        const [tenantId, id] = [row['tenant_id'] as TenantId, String(row['id'])];
        const context = { cipher, tenantId, id };
        const finding = STORED_TRUST_LISTS.readField('finding', row['finding'], context);
        const place = STORED_TRUST_LISTS.readField('place', row['place'], context);
        const heldSince = new Date(Number(row['held_since']));
        return finding === null ? [] : [{ tenantId, id, place, finding, since: heldSince }];
      });
    },
    async markProblemReported({ tenantId, id, finding }) {
      await sql.change(MARK_REPORTED, tenantId, id, keyOfFinding(finding));
    },
    forgetStoredTrustLists: (cutoff, limit) => sql.change(FORGET_KEPT_LISTS, cutoff.getTime(), limit),
  };
}

const LIST_FILL = namedStatement(
  'list_fill',
  `select count(*) as lists, coalesce(sum(used_entries), 0) as used, coalesce(sum(capacity), 0) as capacity
   from status_lists`,
);

function listFill(sql: JobSql): Pick<Maintenance, 'listFill'> {
  return {
    async listFill() {
      const [row] = await sql.all(LIST_FILL);
      const number = (name: string) => Number(row?.[name] ?? 0);
      return { lists: number('lists'), used: number('used'), capacity: number('capacity') };
    },
  };
}

/** SQLite serializes writers, so events become visible in the order of their positions. */
const BEGIN = namedStatement(
  'begin_event_log',
  `insert into event_cursors (name, position, tenant, session, version)
   values (${EVENT_CURSOR}, coalesce((select seq from sqlite_sequence where name = 'session_events'), 0), '', '', 0)
   on conflict do nothing`,
);
const HOLD = namedStatement(
  'hold_events',
  `insert into leases (name, holder, expires_at) values (${EVENT_LEASE}, $1, $2 + $3)
   on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
     where leases.expires_at <= $2 or leases.holder = excluded.holder or leases.expires_at > $2 + $3 + 60000
   returning holder`,
);
const NEXT = namedStatement(
  'next_events',
  `select c.position as c_position, c.tenant as c_tenant, c.session as c_session, c.version as c_version,
     0 as needs_renumbering, e.position as l_position, e.tenant_id as l_tenant, e.session_id as l_session,
     e.version as l_version, e.tenant_id, e.session_id, e.version, e.status, e.at, s.kind
   from event_cursors c left join session_events e on e.position > c.position
   left join sessions s on s.tenant_id = e.tenant_id and s.id = e.session_id
   where c.name = ${EVENT_CURSOR} order by e.position limit $1`,
);

function sqliteEventLog(sql: SqliteSql): EventLog {
  const { change } = sqliteJobs(sql);
  return {
    async startRelay() {
      await change(BEGIN);
    },
    nextEvents: (holder, leaseSeconds, limit) =>
      sql.transaction((run) => {
        const isHeld = run.all(HOLD, holder, run.time(), leaseSeconds * 1000).length > 0;
        return isHeld ? readBatch(run.all(NEXT, limit)) : undefined;
      }),
    advanceRelay: async (previous, to) => (await change(MOVE_CURSOR, ...fieldsOf(to), ...fieldsOf(previous))) > 0,
    // SQLite stores the numbers with the rows, so they cannot fall behind.
    renumber: () => Promise.resolve(0),
    async releaseRelay(holder) {
      await change(RELEASE_EVENT_LEASE, holder);
    },
  };
}
