import type { UsedValue } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Parameter, PostgresSql, Row, Statement } from './sql.ts';

/** SQLSTATE and the name of the constraint by which PostgreSQL says that a value was used before. */
const UNIQUE_VIOLATION = '23505';
const USED_BEFORE = 'used_values_pkey';
/** SQLSTATE and the table by which it says that a value is over. */
const NOT_NULL_VIOLATION = '23502';
const USED_VALUES = 'used_values';

/** The time of the database in milliseconds. */
export const PRESENT_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/**
 * A value that is over by the time of the database may have been used and forgotten, so it counts as used. It has no end,
 * which the column does not bear.
 */
const VALUES = (first: number) =>
  `select $1::varchar, v.kind, v.hash, case when v.expires_at > ${PRESENT_MS} then v.expires_at end
     from unnest($${first}::text[], $${first + 1}::text[], $${first + 2}::bigint[]) as v(kind, hash, expires_at)`;

/**
 * Remembers the values at `$first`, `$first + 1`, `$first + 2`. A value that is known violates the primary key, one that is
 * over another constraint, and takes the whole statement back, so nothing else of it has happened either.
 */
export const USE_VALUES = (first: number) =>
  `n as (
     insert into used_values (tenant_id, kind, hash, expires_at)
     ${VALUES(first)}
     where exists (select 1 from tenants where id = $1))`;

/** Like `USE_VALUES`, only if the part of the statement that is called `source` yields a row. */
export const USE_VALUES_IF = (source: string, first: number) =>
  `n as (
     insert into used_values (tenant_id, kind, hash, expires_at)
     ${VALUES(first)}
     cross join ${source})`;

/** Runs statements whose `$1` is the tenant. */
export type PostgresRun = {
  all(statement: Statement, ...parameters: Parameter[]): Promise<readonly Row[]>;
  one(statement: Statement, ...parameters: Parameter[]): Promise<Row | undefined>;
  /** @returns the rows, or the kind of the value that was used before: then nothing has happened. */
  unlessUsed(
    used: readonly UsedValue[],
    statement: Statement,
    ...parameters: Parameter[]
  ): Promise<readonly Row[] | UsedValue['kind']>;
};

export function postgresRun(sql: PostgresSql, tenantId: TenantId): PostgresRun {
  const all: PostgresRun['all'] = (statement, ...parameters) =>
    sql.query(statement, [tenantId, ...parameters]);
  return {
    all,
    async one(statement, ...parameters) {
      return (await all(statement, ...parameters))[0];
    },
    async unlessUsed(used, statement, ...parameters) {
      try {
        return await all(statement, ...parameters);
      } catch (error) {
        if (!saysUsed(error)) throw error;
        const { detail } = error as { detail?: unknown };
        const replayed = used.find(({ hash }) => String(detail).includes(hash)) ?? used[0];
        if (replayed === undefined) throw error;
        return replayed.kind;
      }
    },
  };
}

function saysUsed(error: unknown): boolean {
  const { code, constraint, table } = error as { code?: unknown; constraint?: unknown; table?: unknown };
  return code === UNIQUE_VIOLATION
    ? constraint === USED_BEFORE
    : code === NOT_NULL_VIOLATION && table === USED_VALUES;
}

/** The three arrays of `USE_VALUES`, in one order for all, so that two callers with the same values do not block each other. */
export function valuesOf(used: readonly UsedValue[]): Parameter[] {
  const sorted = used.length < 2 ? used : [...used].sort((one, other) => (one.hash < other.hash ? -1 : 1));
  return [
    sorted.map((value) => value.kind),
    sorted.map((value) => value.hash),
    sorted.map((value) => value.expiresAt.getTime()),
  ];
}
