import type { MikroORM } from '@mikro-orm/core';

/** What we use of the drivers that MikroORM brings along. */
type Pool = {
  query(query: { name: string; text: string; values: unknown[] }): Promise<{ rows: Row[] }>;
};
type Prepared = {
  all(...parameters: unknown[]): unknown[];
  run(...parameters: unknown[]): { changes: number };
};
type Database = {
  prepare(text: string): Prepared;
  transaction<T>(work: () => T): { immediate(): T };
};

/** One prepared statement. Parameters are `$1`, `$2`, …; the tenant is always `$1`. */
export type Statement = { readonly name: string; readonly text: string };

export type Row = Readonly<Record<string, unknown>>;
export type Parameter = string | number | boolean | null | readonly string[] | readonly number[];

/**
 * Wallet paths bypass the unit of work: a named prepared statement costs a seventh of an entity round trip.
 */
export type PostgresSql = {
  query(statement: Statement, parameters: readonly Parameter[]): Promise<readonly Row[]>;
};

export async function postgresSql(orm: MikroORM): Promise<PostgresSql> {
  const pool = (await orm.em.getConnection().getNativeClient()) as Pool;
  return {
    async query({ name, text }, values) {
      const { rows } = await pool.query({ name, text, values: values as Parameter[] });
      return rows;
    },
  };
}

/**
 * SQLite answers synchronously on one connection. While a unit of work holds a transaction open on it, nobody
 * else may slip a statement in, so beats wait for the turnstile first and then run without giving up the thread.
 */
export type SqliteSql = {
  /** Runs `work` synchronously in one immediate transaction. */
  beat<T>(work: (run: SqliteRun) => T): Promise<T>;
  /** Runs `work` while no beat runs. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
};

export type SqliteRun = {
  all(statement: Statement, ...parameters: readonly (string | number | null)[]): readonly Row[];
  /** @returns how many rows changed. */
  change(statement: Statement, ...parameters: readonly (string | number | null)[]): number;
};

export async function sqliteSql(orm: MikroORM): Promise<SqliteSql> {
  const database = (await orm.em.getConnection().getNativeClient()) as Database;
  const prepared = new Map<string, Prepared>();
  const prepare = ({ name, text }: Statement) => {
    let statement = prepared.get(name);
    if (statement === undefined) {
      statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'));
      prepared.set(name, statement);
    }
    return statement;
  };
  const run: SqliteRun = {
    all: (statement, ...parameters) => prepare(statement).all(...parameters) as Row[],
    change: (statement, ...parameters) => prepare(statement).run(...parameters).changes,
  };
  let queue: Promise<unknown> = Promise.resolve();
  let open = 0;
  return {
    async beat(work) {
      while (open > 0) await queue;
      return database.transaction(() => work(run)).immediate();
    },
    exclusively(work) {
      open++;
      const turn = queue.then(work);
      queue = turn.then(
        () => void open--,
        () => void open--,
      );
      return turn;
    },
  };
}
