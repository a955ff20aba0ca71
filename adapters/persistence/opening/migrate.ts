import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { BOTH_DIALECTS, inSqlite } from '../migrations/both-dialects.ts';
import type { Database, Dialect } from './opened.ts';

/** Names of the migrations that have run, in a table as MikroORM makes it, whose tool writes new ones. */
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
type Client = {
  query(text: string): Promise<{ readonly rows: readonly { readonly name?: unknown }[] }>;
  release(destroy?: boolean): void;
};
type Sqlite = { readonly inTransaction: boolean; exec(text: string): unknown };

export function folderOf(dialect: Dialect): string {
  return join(dirname(fileURLToPath(import.meta.url)), '..', 'migrations', dialect);
}

/** Whether a migration has not run yet, or none at all. */
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
 * Brings a database up to date, in one transaction: all that is missing, or nothing. Several processes may start at once;
 * one migrates, the others wait and find nothing left to do.
 * @param last the last migration to run; all unless stated.
 */
export async function migrate(database: Database, last?: string): Promise<void> {
  if (database.dialect === 'sqlite') await migrateSqlite(database, last);
  else await migratePostgres(database, last);
}

async function migratePostgres({ native }: Database, last?: string): Promise<void> {
  const client = await (native as Pool).connect();
  try {
    await client.query(`select pg_advisory_lock(${LOCK})`);
    await client.query(TABLE.postgres);
    const { rows } = await client.query(DONE);
    const due = await load('postgres', pending('postgres', rows, last));
    // One message, however many statements there are.
    if (due.length > 0) await client.query(['begin', ...due, 'commit'].join(';\n'));
    await client.query(`select pg_advisory_unlock(${LOCK})`);
    client.release();
  } catch (error) {
    // The lock, and what was begun, end with the connection.
    client.release(true);
    throw error;
  }
}

async function migrateSqlite({ native, all }: Database, last?: string): Promise<void> {
  const database = native as Sqlite;
  // Read before the transaction begins, in which nobody may give up the thread.
  const texts = new Map<string, readonly string[]>();
  for (const name of namesOf('sqlite')) texts.set(name, await load('sqlite', [name]));
  database.exec('begin immediate');
  try {
    database.exec(TABLE.sqlite);
    const due = pending('sqlite', await all(DONE), last).flatMap((name) => texts.get(name) ?? []);
    for (const statement of due) database.exec(statement);
    database.exec('commit');
  } catch (error) {
    if (database.inTransaction) database.exec('rollback');
    throw error;
  }
}

/** Migrations of the dialect that have a file of their own. */
function filesOf(dialect: Dialect): readonly string[] {
  return readdirSync(folderOf(dialect))
    .filter((file) => /^Migration\d+.*\.(ts|js)$/.test(file))
    .map((file) => file.replace(/\.(ts|js)$/, ''));
}

/** All migrations of a dialect, in their order. */
export function namesOf(dialect: Dialect): readonly string[] {
  return [...new Set([...filesOf(dialect), ...Object.keys(BOTH_DIALECTS)])].sort();
}

function pending(dialect: Dialect, done: readonly { readonly name?: unknown }[], last?: string): string[] {
  const names = new Set(done.map(({ name }) => name));
  return namesOf(dialect).filter((name) => !names.has(name) && (last === undefined || name <= last));
}

/** @returns the statements of these migrations, each with the one that notes it. */
async function load(dialect: Dialect, names: readonly string[]): Promise<string[]> {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const files = new Set(filesOf(dialect));
  const both: Readonly<Record<string, readonly string[]>> = BOTH_DIALECTS;
  const statements: string[] = [];
  for (const name of names) {
    if (files.has(name)) {
      const { href } = pathToFileURL(join(folderOf(dialect), `${name}.${ending}`));
      const { statements: own } = (await import(href)) as { readonly statements: readonly string[] };
      statements.push(...own.map((statement) => statement.replace(/;\s*$/, '')));
    } else statements.push(...(both[name] ?? []).map((statement) => (dialect === 'sqlite' ? inSqlite(statement) : statement)));
    statements.push(`insert into ${MIGRATIONS} (name) values ('${name}')`);
  }
  return statements;
}
