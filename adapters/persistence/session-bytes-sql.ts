import { MIGRATIONS } from './opening/migrate.ts';
import type { PostgresSql } from './postgres/sql.ts';
import type { SqliteSql } from './sqlite/sql.ts';
import { namedStatement, type Row, type Statement } from './statement.ts';

/** Change of the bytes of a tenant that expire at a time. */
export type BytesDelta = {
  readonly tenantId: string;
  /** Unit: milliseconds. */
  readonly expiresAt: number;
  readonly bytes: number;
};

export type EndedSession = { readonly tenantId: string; readonly id: string };

export type SessionSize = {
  readonly tenantId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Stored size of the request. */
  readonly bytes: number;
};

export type SessionBytesSql = {
  /** True if other processes may write the table. */
  readonly isShared: boolean;
  /**
   * Adds bytes, and sums up what expires after `now`; a tenant that does not exist any more gets no row.
   * @returns the sums of `tenants`, without empty ones. If the table is not shared, also the sums of tenants that have a negative bucket:
   * they differ from the sum of the additions.
   */
  add(deltas: readonly BytesDelta[], tenants: readonly string[], now: number): Promise<ReadonlyMap<string, number>>;
  sizes(sessions: readonly EndedSession[]): Promise<readonly SessionSize[]>;
  /** Creation time of the table in milliseconds: earlier sessions are not counted. */
  countedSince(): Promise<number>;
};

const MIGRATION = 'Migration00000000000035_open_session_bytes';
const INSERT = 'insert into open_session_bytes (tenant_id, expires_at, bytes)';
const ADD_UP = 'on conflict (tenant_id, expires_at) do update set bytes = open_session_bytes.bytes + excluded.bytes';
/** A negative bucket waits for another process, and takes nothing off the others. */
const sum = (bytes: string, source: string) => `select tenant_id, sum(${bytes}) as bytes from ${source} group by tenant_id`;
const SIZE = `select tenant_id, created_at, expires_at, octet_length(request) + octet_length(configuration_ids) as bytes
  from sessions where request is not null and`;

/** The sums combine the rows before the statement with its changes. */
const ADD_POSTGRES = namedStatement(
  'add_open_session_bytes',
  `with d as (select * from unnest($1::text[], $2::bigint[], $3::bigint[]) as d(tenant_id, expires_at, bytes)),
   w as (${INSERT} select d.tenant_id, d.expires_at, d.bytes from d
     where exists (select 1 from tenants t where t.id = d.tenant_id)
     order by d.tenant_id, d.expires_at ${ADD_UP} returning tenant_id, expires_at, bytes),
   a as (select tenant_id, sum(greatest(bytes, 0)) as bytes from open_session_bytes
       where tenant_id = any($4::text[]) and expires_at > $5 group by tenant_id
     union all select tenant_id, greatest(w.bytes, 0) - greatest(w.bytes - d.bytes, 0)
       from w join d using (tenant_id, expires_at) where expires_at > $5)
   ${sum('bytes', 'a')}`,
);
const SIZES_POSTGRES = namedStatement('sizes_of_sessions', `${SIZE} (tenant_id, id) in (select * from unnest($1::text[], $2::text[]))`);
const SINCE_POSTGRES = namedStatement(
  'session_bytes_since',
  `select extract(epoch from executed_at) * 1000 as at from ${MIGRATIONS} where name = $1`,
);

/** On a cluster a statement writes rows of one tenant. */
const ADD_OF_TENANT = namedStatement(
  'add_open_session_bytes_of_tenant',
  `${INSERT} select $1::text, d.expires_at, d.bytes from unnest($2::bigint[], $3::bigint[]) as d(expires_at, bytes) ${ADD_UP}`,
);
const SUM_OF_TENANT = namedStatement(
  'open_session_bytes_of_tenant',
  sum('greatest(bytes, 0)', '(select tenant_id, bytes from open_session_bytes where tenant_id = $1 and expires_at > $2) b'),
);

const ADD_SQLITE = namedStatement(
  'add_open_session_bytes',
  `${INSERT} select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') from json_each($1)
   where exists (select 1 from tenants t where t.id = json_extract(value, '$[0]')) ${ADD_UP} returning tenant_id, bytes`,
);
const SUM_SQLITE = namedStatement(
  'open_session_bytes_of_tenants',
  sum(
    'max(bytes, 0)',
    `(select tenant_id, bytes from open_session_bytes
      where tenant_id in (select value from json_each($1)) and expires_at > $2) b`,
  ),
);
const SIZES_SQLITE = namedStatement(
  'sizes_of_sessions',
  `${SIZE} (tenant_id, id) in (select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each($1))`,
);
const SINCE_SQLITE = namedStatement('session_bytes_since', `select executed_at as at from ${MIGRATIONS} where name = $1`);

export function postgresSessionBytes(sql: PostgresSql, isCluster: boolean): SessionBytesSql {
  return {
    isShared: true,
    async add(deltas, tenants, now) {
      if (isCluster) return addOnCluster(sql, deltas, tenants, now);
      const values = [deltas.map(({ tenantId }) => tenantId), deltas.map(({ expiresAt }) => expiresAt), deltas.map(({ bytes }) => bytes)];
      return sumsIn(await sql.query(ADD_POSTGRES, [...values, tenants, now]));
    },
    async sizes(sessions) {
      const tenants = sessions.map(({ tenantId }) => tenantId);
      const ids = sessions.map(({ id }) => id);
      return (await sql.query(SIZES_POSTGRES, [tenants, ids])).map(sizeIn);
    },
    countedSince: async () => sinceIn(await sql.query(SINCE_POSTGRES, [MIGRATION])),
  };
}

async function addOnCluster(
  sql: PostgresSql,
  deltas: readonly BytesDelta[],
  tenants: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, number>> {
  for (const [tenantId, tenantDeltas] of Map.groupBy(deltas, (delta) => delta.tenantId)) {
    const values = [tenantDeltas.map(({ expiresAt }) => expiresAt), tenantDeltas.map(({ bytes }) => bytes)];
    await sql.query(ADD_OF_TENANT, [tenantId, ...values]);
  }
  const rows: Row[] = [];
  for (const tenantId of tenants) rows.push(...(await sql.query(SUM_OF_TENANT, [tenantId, now])));
  return sumsIn(rows);
}

export function sqliteSessionBytes(sql: SqliteSql): SessionBytesSql {
  const queryAll = (statement: Statement, ...values: (string | number)[]) => sql.single((run) => run.all(statement, ...values));
  return {
    isShared: false,
    async add(deltas, tenants, now) {
      if (deltas.length === 0) return sumsIn(await queryAll(SUM_SQLITE, JSON.stringify(tenants), now));
      const rows = JSON.stringify(deltas.map(({ tenantId, expiresAt, bytes }) => [tenantId, expiresAt, bytes]));
      return sql.transaction((run) => {
        const overdrawn = run
          .all(ADD_SQLITE, rows)
          .filter(({ bytes }) => Number(bytes) < 0)
          .map((row) => String(row['tenant_id']));
        const sums = sumsIn(run.all(SUM_SQLITE, JSON.stringify([...tenants, ...overdrawn]), now));
        return new Map([...overdrawn.map((tenantId) => [tenantId, 0] as const), ...sums]);
      });
    },
    async sizes(sessions) {
      const keys = JSON.stringify(sessions.map(({ tenantId, id }) => [tenantId, id]));
      return (await queryAll(SIZES_SQLITE, keys)).map(sizeIn);
    },
    countedSince: async () => sinceIn(await queryAll(SINCE_SQLITE, MIGRATION)),
  };
}

function sumsIn(rows: readonly Row[]): ReadonlyMap<string, number> {
  return new Map(rows.map((row) => [String(row['tenant_id']), Number(row['bytes'])]));
}

function sizeIn(row: Row): SessionSize {
  return {
    tenantId: String(row['tenant_id']),
    createdAt: Number(row['created_at']),
    expiresAt: Number(row['expires_at']),
    bytes: Number(row['bytes']),
  };
}

function sinceIn([row]: readonly Row[]): number {
  return Number(row?.['at'] ?? 0);
}
