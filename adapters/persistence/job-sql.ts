import type { PostgresSql } from './postgres/sql.ts';
import type { SqliteSql } from './sqlite/sql.ts';
import type { Parameter, Row, Statement } from './statement.ts';

/** Runs statements that are the same in both dialects, each as its own transaction. */
export type JobSql = {
  all(statement: Statement, ...parameters: Parameter[]): Promise<readonly Row[]>;
  /** @returns how many rows changed. */
  change(statement: Statement, ...parameters: Parameter[]): Promise<number>;
};

export function postgresJobs(sql: PostgresSql): JobSql {
  return {
    all: (statement, ...parameters) => sql.query(statement, parameters),
    // Returns one row per changed row, at most a batch: a cluster does not count rows in the statement that changes them.
    change: async ({ name, text }, ...parameters) => (await sql.query({ name, text: `${text} returning 1 as changed` }, parameters)).length,
  };
}

export function sqliteJobs(sql: SqliteSql): JobSql {
  return {
    all: (statement, ...parameters) => sql.single((run) => run.all(statement, ...parameters)),
    change: (statement, ...parameters) => sql.single((run) => run.change(statement, ...parameters)),
  };
}
