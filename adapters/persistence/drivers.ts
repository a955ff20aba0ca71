import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/**
 * Drivers and query builder that MikroORM depends on, resolved from its packages so that one copy and one version of each is loaded. They
 * are loaded without MikroORM itself, which takes longer to load than everything that wallets need.
 */
const { resolve } = createRequire(import.meta.url);
const requireFrom = (name: string) => createRequire(resolve(name));

/** Subset of node-postgres that opening a database uses. */
export type PostgresPool = {
  query(query: string | { readonly name: string; readonly text: string }): Promise<{ readonly rows: Readonly<Record<string, unknown>>[] }>;
  on(event: string, listener: (...parameters: never[]) => void): unknown;
  end(): Promise<void>;
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
};
type Types = { setTypeParser(type: number, parse: (text: string) => unknown): void };
type Postgres = { readonly Pool: new (options: object) => PostgresPool; readonly TypeOverrides: new () => Types };

/** Subset of better-sqlite3 that opening a database uses. */
export type SqliteDatabase = {
  readonly inTransaction: boolean;
  pragma(text: string): unknown;
  prepare(text: string): { all(...parameters: unknown[]): Record<string, unknown>[]; run(...parameters: unknown[]): unknown };
  close(): unknown;
};

export function postgresDriver(): Postgres {
  return requireFrom('@mikro-orm/postgresql')('pg') as Postgres;
}

type SqliteConnection = new (file: string, options?: { readonly fileMustExist: boolean }) => SqliteDatabase;

export function sqliteDriver(): SqliteConnection {
  return requireFrom('@mikro-orm/sqlite')('better-sqlite3') as SqliteConnection;
}

type Dialects = {
  readonly PostgresDialect: new (options: { readonly pool: object }) => object;
  readonly SqliteDialect: new (options: { readonly database: object }) => object;
};

/** Dialects by which MikroORM works on existing connections. */
export async function kyselyDialects(): Promise<Dialects> {
  return (await import(pathToFileURL(requireFrom('@mikro-orm/sql').resolve('kysely')).href)) as Dialects;
}
