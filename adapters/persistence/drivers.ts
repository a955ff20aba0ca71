import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/**
 * The drivers and the query builder that MikroORM brings along, from where it has them, so that there is one copy and one
 * version of each. They are loaded without MikroORM, which takes a start longer than all that wallets need.
 */
const { resolve } = createRequire(import.meta.url);
const of = (name: string) => createRequire(resolve(name));

/** Of node-postgres, what the opening of a database uses. */
export type PostgresPool = {
  query(query: string | { readonly name: string; readonly text: string }): Promise<{ readonly rows: Readonly<Record<string, unknown>>[] }>;
  on(event: string, listener: (...parameters: never[]) => void): unknown;
  end(): Promise<void>;
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
};
type Types = { setTypeParser(type: number, parse: (text: string) => unknown): void };
type Postgres = {
  readonly Pool: new (options: object) => PostgresPool;
  readonly TypeOverrides: new () => Types;
};

/** Of better-sqlite3, the same. */
export type SqliteDatabase = {
  readonly inTransaction: boolean;
  pragma(text: string): unknown;
  prepare(text: string): {
    all(...parameters: unknown[]): Record<string, unknown>[];
    run(...parameters: unknown[]): unknown;
  };
  close(): unknown;
};

export function postgresDriver(): Postgres {
  return of('@mikro-orm/postgresql')('pg') as Postgres;
}

type SqliteConnection = new (file: string, options?: { readonly fileMustExist: boolean }) => SqliteDatabase;

export function sqliteDriver(): SqliteConnection {
  return of('@mikro-orm/sqlite')('better-sqlite3') as SqliteConnection;
}

type Dialects = {
  readonly PostgresDialect: new (options: { readonly pool: object }) => object;
  readonly SqliteDialect: new (options: { readonly database: object }) => object;
};

/** By which MikroORM works on connections that it did not make. */
export async function kyselyDialects(): Promise<Dialects> {
  return (await import(pathToFileURL(of('@mikro-orm/sql').resolve('kysely')).href)) as Dialects;
}
