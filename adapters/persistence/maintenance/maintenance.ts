import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Maintenance } from '../../../application/ports/maintenance.ts';
import { DEFERRED_MOVES } from '../../../domain/issuance/deferred.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import type { ClientMacs } from '../client-macs.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import { type SqliteSql, STORE_TIME } from '../sqlite/sql.ts';
import { listOf, named, type Statement } from '../statement.ts';
import { auditLogJobs } from './audit-log.ts';
import { BatchSize } from './batch-size.ts';
import { postgresExpiry, sqliteExpiry } from './expiry.ts';
import { followedWallets, POSTGRES_FOLLOWED, SQLITE_FOLLOWED } from './followed-wallets.ts';
import { issuedSubjects, POSTGRES_SUBJECTS, SQLITE_SUBJECTS } from './issued-subjects.ts';
import { type JobSql, postgresJobs, sqliteJobs } from './job-sql.ts';
import { keptTrustListJobs } from './kept-trust-lists.ts';
import { listFill } from './list-fill.ts';
import { pendingDeliveries } from './pending-deliveries.ts';
import { postgresEventLog } from './postgres-event-log.ts';
import { PRESENT_MS } from './postgres-time.ts';
import { resealing } from './resealing.ts';
import { FORGET_PICK_UPS, postgresCleaningUp, sqliteCleaningUp } from './retention.ts';
import { sqliteEventLog } from './sqlite-event-log.ts';
import { endedTenants, tenantRemains } from './tenant-remains.ts';

/** By their keys. */
const FORGOTTEN = {
  used_values: 'tenant_id, kind, hash',
  grants: 'tenant_id, id',
  authorizations: 'tenant_id, id',
  kept_answers: 'tenant_id, id',
  open_session_bytes: 'tenant_id, expires_at',
  issued_subjects: 'tenant_id, fingerprint, session_id, batch_id',
};
/** Rows of these tables live for long: the order leads to the tree by expiry, and past what is not due. */
const LONG_LIVED = ['grants', 'issued_subjects', 'open_session_bytes'];
const FORGET = Object.entries(FORGOTTEN).map(([table, key]) => {
  const order = LONG_LIVED.includes(table) ? 'order by expires_at' : '';
  const due = `select ${key} from ${table} where expires_at <= $1 ${order} limit $2`;
  return named(`forget_${table}`, `delete from ${table} where (${key}) in (${due})`);
});
const EXPIRE_DEFERRED = named(
  'expire_deferred',
  `update deferred_transactions set status = ${listOf([DEFERRED_MOVES.expire.to])}, credentials = null,
     holder_keys = '[]', wallet_statuses = null, updated_at = $1
   where (tenant_id, id) in (select tenant_id, id from deferred_transactions
     where expires_at <= $1 and status in (${listOf(DEFERRED_MOVES.expire.from)}) limit $2)`,
);

const ENDING_TRUST_LISTS = named(
  'ending_trust_lists',
  `select tenant_id, id, next_update from trust_lists
   where next_update <= $1 and (next_update, tenant_id, id) > ($3, $4, $5)
   order by next_update, tenant_id, id limit $2`,
);

/** A row of one table goes in microseconds. */
const FIRST_REMOVED = 500;

/** SQLite decides by itself which tables it has to look at. */
const OPTIMIZE = named('optimize', 'pragma optimize');

const PRESENT = named('present', `select ${PRESENT_MS} as now`);

/**
 * A lease that ends a minute later than one that is taken now was taken by a clock that was wrong. Who gives a lease back
 * (it then ends now) does not mean those of others.
 */
const LEASE = named(
  'lease',
  `insert into leases (name, holder, expires_at) values ($1, $2, $3)
   on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
     where leases.expires_at <= $4 or leases.holder = excluded.holder
       or $3 > $4 and leases.expires_at > $3 + 60000
   returning holder`,
);

/**
 * Tables on the wallet paths that grew fourfold since anybody looked. The server's own clean-up looks once a minute;
 * until then a plan made for an empty table walks a whole tenant instead of finding one row.
 */
const GROWN = named(
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
const RETIRED_KEYS = named('retired_keys', `${RETIRED} order by retired_at limit $1`);
const RETIRED_KEYS_OF = named('retired_keys_of', `${RETIRED} where owner = $2 order by retired_at limit $1`);
const FORGET_RETIRED_KEY = named(
  'forget_retired_key',
  'delete from retired_keys where owner = $1 and kms = $2 and key_id = $3',
);
const POSTPONE_RETIRED_KEY = named(
  'postpone_retired_key',
  `update retired_keys set retired_at = (select max(retired_at) + 1 from retired_keys)
   where owner = $1 and kms = $2 and key_id = $3`,
);

function sqliteRemains(sql: SqliteSql): Pick<Maintenance, 'removeRemains' | 'tenantRemovals'> {
  const size = new BatchSize(FIRST_REMOVED);
  const remains = tenantRemains({
    all: (statement, ...values) => sql.single((run) => size.timed(() => run.all(statement, ...values))),
    change: (statement, ...values) => sql.single((run) => size.timed(() => run.change(statement, ...values))),
  });
  return {
    ...remains,
    removeRemains: (now, limit) => size.run(limit, (rows) => remains.removeRemains(now, rows)),
  };
}

/** What needs no words of one dialect but `forgetPickUps`. */
function jobs(sql: JobSql, cipher: Cipher, clientMacs: ClientMacs, forgetPickUps: Statement) {
  return {
    ...resealing(sql, cipher, clientMacs),
    ...keptTrustListJobs(sql, cipher),
    ...pendingDeliveries(sql),
    ...auditLogJobs(sql),
    endedTenants: (now, limit) => endedTenants(sql, now, limit),
    forgetPickUps: (now, limit) => sql.change(forgetPickUps, now.getTime(), limit),
    async forgetExpired(now, limit) {
      let gone = 0;
      for (const statement of FORGET) gone += await sql.change(statement, now.getTime(), limit);
      return gone;
    },
    expireDeferred: (now, limit) => sql.change(EXPIRE_DEFERRED, now.getTime(), limit),
    async endingTrustLists(until, limit, after) {
      const { nextUpdate, tenantId = '', id = '' } = after ?? {};
      const place = [nextUpdate?.getTime() ?? Number.MIN_SAFE_INTEGER, tenantId, id] as const;
      const rows = await sql.all(ENDING_TRUST_LISTS, until.getTime(), limit, ...place);
      return rows.map((row) => ({
        tenantId: row['tenant_id'] as TenantId,
        id: String(row['id']),
        nextUpdate: new Date(Number(row['next_update'])),
      }));
    },
    ...listFill(sql),
    async retiredKeys(limit, owner) {
      const rows =
        owner === undefined
          ? await sql.all(RETIRED_KEYS, limit)
          : await sql.all(RETIRED_KEYS_OF, limit, owner);
      return rows.map((row) => ({
        tenantId: String(row['owner']),
        handle: {
          kms: String(row['kms']),
          keyId: String(row['key_id']),
          algorithm: String(row['algorithm']) as SigningAlgorithm,
        },
      }));
    },
    async forgetRetiredKey({ tenantId, handle }) {
      await sql.change(FORGET_RETIRED_KEY, tenantId, handle.kms, handle.keyId);
    },
    async postponeRetiredKey({ tenantId, handle }) {
      await sql.change(POSTPONE_RETIRED_KEY, tenantId, handle.kms, handle.keyId);
    },
    async tryLease(name, holder, now, ttlSeconds) {
      const until = now.getTime() + ttlSeconds * 1000;
      return (await sql.all(LEASE, name, holder, until, now.getTime())).length > 0;
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
