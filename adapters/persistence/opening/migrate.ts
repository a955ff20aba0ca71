import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { BOTH_DIALECTS, inSqlite } from '../migrations/both-dialects.ts';
import type { Database, Dialect } from './open-driver.ts';

/** Table with the names of the migrations that have run, in the format of MikroORM, whose tool writes new ones. */
export const MIGRATIONS = 'schema_migrations';
const TABLE: Readonly<Record<Dialect, string>> = {
  postgres: `create table if not exists ${MIGRATIONS} (id serial primary key, name varchar(255) not null,
    executed_at timestamptz(6) not null default current_timestamp(6))`,
  sqlite: `create table if not exists ${MIGRATIONS} (id integer not null primary key autoincrement, name text not null,
    executed_at datetime not null default (strftime('%s', 'now') * 1000))`,
};
const DONE = `select name from ${MIGRATIONS}`;
/** `vidi` in ASCII; any number that no other user of advisory locks in this database takes. */
const LOCK = 0x76696469;

type Pool = { connect(): Promise<Client> };
type Client = { query(text: string): Promise<{ readonly rows: readonly { readonly name?: unknown }[] }>; release(destroy?: boolean): void };
type Sqlite = { readonly inTransaction: boolean; exec(text: string): unknown };

export function folderOf(dialect: Dialect): string {
  return join(dirname(fileURLToPath(import.meta.url)), '..', 'migrations', dialect);
}

/** State of the schema: no migration has run, some are pending, or none is. */
export async function stateOf({ dialect, all }: Database): Promise<'empty' | 'behind' | 'current'> {
  const tables =
    dialect === 'sqlite'
      ? `select name from sqlite_master where name = '${MIGRATIONS}'`
      : `select table_name from information_schema.tables
         where table_schema = current_schema() and table_name = '${MIGRATIONS}'`;
  if ((await all(tables)).length === 0) return 'empty';
  return pending(dialect, await all(DONE)).length > 0 ? 'behind' : 'current';
}

/**
 * Migrates a database in one transaction: all pending migrations, or none. Several processes may start at once; one migrates, the others
 * wait and find nothing to do.
 * @param lastMigration the last migration to run; all by default.
 */
export async function migrate(database: Database, lastMigration?: string): Promise<void> {
  if (database.dialect === 'sqlite') await migrateSqlite(database, lastMigration);
  else await migratePostgres(database, lastMigration);
}

async function migratePostgres({ native }: Database, lastMigration?: string): Promise<void> {
  const client = await (native as Pool).connect();
  try {
    await client.query(`select pg_advisory_lock(${LOCK})`);
    await client.query(TABLE.postgres);
    const { rows } = await client.query(DONE);
    const due = await load('postgres', pending('postgres', rows, lastMigration));
    // One message, however many statements there are.
    if (due.length > 0) await client.query(['begin', ...due, 'commit'].join(';\n'));
    await client.query(`select pg_advisory_unlock(${LOCK})`);
    client.release();
  } catch (error) {
    // The lock and the transaction end with the connection.
    client.release(true);
    throw error;
  }
}

async function migrateSqlite({ native, all }: Database, lastMigration?: string): Promise<void> {
  const database = native as Sqlite;
  // The files are read before the transaction begins, because the thread must not yield within it.
  const texts = new Map<string, readonly string[]>();
  for (const name of namesOf('sqlite')) texts.set(name, await load('sqlite', [name]));
  database.exec('begin immediate');
  try {
    database.exec(TABLE.sqlite);
    const due = pending('sqlite', await all(DONE), lastMigration).flatMap((name) => texts.get(name) ?? []);
    for (const statement of due) database.exec(statement);
    database.exec('commit');
  } catch (error) {
    if (database.inTransaction) database.exec('rollback');
    throw error;
  }
}

function filesOf(dialect: Dialect): readonly string[] {
  return readdirSync(folderOf(dialect))
    .filter((file) => /^Migration\d+.*\.(ts|js)$/.test(file))
    .map((file) => file.replace(/\.(ts|js)$/, ''));
}

export function namesOf(dialect: Dialect): readonly string[] {
  return [...new Set([...filesOf(dialect), ...Object.keys(BOTH_DIALECTS)])].sort();
}

function pending(dialect: Dialect, done: readonly { readonly name?: unknown }[], lastMigration?: string): string[] {
  const names = new Set(done.map(({ name }) => name));
  return namesOf(dialect).filter((name) => !names.has(name) && (lastMigration === undefined || name <= lastMigration));
}

/** @returns the statements of these migrations, each followed by the one that records it. */
async function load(dialect: Dialect, names: readonly string[]): Promise<string[]> {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const files = new Set(filesOf(dialect));
  const both: Readonly<Record<string, readonly string[]>> = BOTH_DIALECTS;
  const statements: string[] = [];
  for (const name of names) {
    if (files.has(name)) {
      const { href } = pathToFileURL(join(folderOf(dialect), `${name}.${ending}`));
      const { statements: fileStatements } = (await import(href)) as { readonly statements: readonly string[] };
      statements.push(...fileStatements.map((statement) => statement.replace(/;\s*$/, '')));
    } else statements.push(...(both[name] ?? []).map((statement) => (dialect === 'sqlite' ? inSqlite(statement) : statement)));
    statements.push(`insert into ${MIGRATIONS} (name) values ('${name}')`);
  }
  return statements;
}
