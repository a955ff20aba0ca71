import type { MikroORM } from '@mikro-orm/core';
import type { Quotas } from '../../../domain/tenants/quotas.ts';
import { UNREACHABLE } from '../database-faults.ts';
import { tolerateLostTransactionsOnPostgres } from '../lost-transactions.ts';
import { assertDedicatedSessions, SharedSessionError } from '../postgres/dedicated-sessions.ts';
import { serviceGrants } from '../postgres/grants.ts';
import { restrictToOwner } from '../sqlite/owner-only-file.ts';
import { sqliteTerms } from '../terms.ts';
import { folderOf, MIGRATIONS, migrate, stateOf } from './migrate.ts';
import { type Database, type Dialect, openPostgres, openSqlite, poolOf, postgresOptions, setUpSqlite } from './open-driver.ts';

export type DatabaseSettings = {
  /** `sqlite:<path>`, `sqlite::memory:` or `postgres://…`. */
  readonly url: string;
  /** Connections per process, at least 2; PostgreSQL only. */
  readonly poolSize: number;
  /** Timeout in seconds of a statement, and of waiting for a connection; 15 by default. PostgreSQL only. */
  readonly timeoutSeconds?: number;
  readonly isCluster?: true;
  /** Quotas of each tenant; unlimited if absent. */
  readonly quotas?: Quotas;
  /** A database that is behind is migrated; true by default. */
  readonly migrates?: boolean;
  /**
   * SQLite only: writes the write-ahead log back in a thread, and is called if that fails. Without it, the committing connection does so.
   */
  readonly onCheckpointFault?: (error: Error) => void;
  /** Called as soon as the database is open, before it is read or changed. */
  readonly onConnected?: (database: Database) => Promise<void>;
};

export function dialectOf(url: string): Dialect {
  return url.startsWith('sqlite:') ? 'sqlite' : 'postgres';
}

/**
 * Opens the database and, unless `settings` say otherwise, migrates its schema. The caller closes it.
 * @throws Error that explains how to fix `DATABASE_URL` if the database cannot be opened.
 */
export async function openDatabase(settings: DatabaseSettings): Promise<Database> {
  try {
    return await openAndMigrate(settings);
  } catch (error) {
    if (error instanceof DatabaseNotReady) throw error;
    throw new Error(describeFault(settings.url, error) ?? (error as Error).message, { cause: error });
  }
}

export function urlWithoutCredentials(url: string): string {
  if (dialectOf(url) === 'sqlite') return url;
  const { hostname, port, pathname } = new URL(url);
  return `postgres://${hostname}:${port || '5432'}${pathname}`;
}

/** Messages of drivers name neither the setting nor the database. */
function describeFault(url: string, error: unknown): string | undefined {
  const { code, message } = error as { code?: string; message: string };
  if (dialectOf(url) === 'sqlite') {
    const isOfFile = code?.startsWith('SQLITE_CANTOPEN') || code === 'SQLITE_NOTADB' || /directory/.test(message);
    return isOfFile ? `DATABASE_URL: ${urlWithoutCredentials(url)} cannot be opened: ${message}` : undefined;
  }
  if (error instanceof SharedSessionError)
    return `DATABASE_URL: ${urlWithoutCredentials(url)} is a connection pooler in transaction or statement mode, which does not keep prepared statements and locks. Set pool_mode=session for this database, or use the PostgreSQL server itself; see docs/reference/poolers.md`;
  if (code === '42501')
    return `DATABASE_URL: ${urlWithoutCredentials(url)}: ${message}. The user must not create the tables of the service; as an administrator run "grant create on schema public to <user>" in this database, or make the user its owner`;
  if (code === '3D000') return `DATABASE_URL: ${urlWithoutCredentials(url)} does not exist; create it, or correct its name`;
  if (code?.startsWith('28')) return `DATABASE_URL: ${urlWithoutCredentials(url)} rejects this user; check name and password`;
  if (UNREACHABLE.includes(code ?? '') || /Connection terminated|timeout/.test(message)) {
    return `DATABASE_URL: ${urlWithoutCredentials(url)} does not answer (${code ?? 'no connection'})`;
  }
  return /SSL|certificate/i.test(`${message} ${code}`) ? `DATABASE_URL: ${urlWithoutCredentials(url)}: ${message}` : undefined;
}

/** Thrown for read-only access, which does not create tables. */
export class DatabaseNotReady extends Error {
  readonly state: 'empty' | 'behind';

  constructor(state: 'empty' | 'behind') {
    super(
      state === 'empty'
        ? 'the database is empty: no service has been started on it. Check DATABASE_URL, and run "npx vidimus migrate" to create the tables; with MIGRATE=on the first start creates them'
        : 'the database has the tables of an older release; start the service of this release once with MIGRATE=on, or run "npx vidimus migrate", then try again',
    );
    this.state = state;
  }
}

async function openAndMigrate(settings: DatabaseSettings): Promise<Database> {
  if (settings.url === 'sqlite::memory:') return inMemory(settings);
  const database = openDriver(settings);
  try {
    if (database.dialect === 'postgres') await assertDedicatedSessions(database.native as never);
    await settings.onConnected?.(database);
    if (!settings.isCluster && (await isCluster(database))) {
      await database.close();
      return await openAndMigrate({ ...settings, isCluster: true });
    }
    const state = await stateOf(database);
    if (state === 'current') return database;
    if (settings.migrates === false) throw new DatabaseNotReady(state);
    await runMigrations(settings);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Returns true if the tables are spread over several machines. A server with the extension and one machine counts as a single server. */
async function isCluster({ dialect, all }: Database): Promise<boolean> {
  if (dialect === 'sqlite') return false;
  const [row] = await all(`select to_regclass('pg_catalog.pg_dist_partition') is not null as cluster`);
  return row?.['cluster'] === true;
}

/** @param lastMigration the last migration to run; all by default. */
export async function runMigrations(settings: DatabaseSettings, lastMigration?: string): Promise<void> {
  const database = openDriver(settings, 'migrate');
  try {
    await migrate(database, lastMigration);
  } finally {
    await database.close();
  }
}

/**
 * Gives a user of PostgreSQL the rights that the service needs on rows, and none on tables.
 * @throws Error that names the cause, such as a user that does not exist.
 */
export async function grantToService(url: string, user: string): Promise<void> {
  const database = openDriver({ url, poolSize: 2 }, 'migrate');
  try {
    for (const statement of serviceGrants(user, MIGRATIONS)) await database.all(statement);
  } finally {
    await database.close();
  }
}

/** Identity of a database as its server reports it: the same by every host name and pooler that leads there. */
export type DatabaseIdentity = {
  readonly name: string;
  /** System identifier of the server; null where the user may not read it. */
  readonly server: string | null;
  /** Schema in which tables are created and found; null where the user may not use any. */
  readonly schema: string | null;
};

/** @throws Error when the database does not answer. */
export async function databaseIdentity(url: string): Promise<DatabaseIdentity> {
  if (dialectOf(url) === 'sqlite') return { name: url, server: null, schema: null };
  const database = openDriver({ url, poolSize: 2 }, 'migrate');
  try {
    const [row] = await database.all('select current_database() as name, current_schema() as schema');
    const [server] = await database.all('select cast(system_identifier as text) as id from pg_control_system()').catch(() => []);
    const text = (value: unknown) => (typeof value === 'string' ? value : null);
    return { name: String(row?.['name']), schema: text(row?.['schema']), server: text(server?.['id']) };
  } catch (error) {
    throw new Error(describeFault(url, error) ?? (error as Error).message, { cause: error });
  } finally {
    await database.close();
  }
}

function openDriver(settings: DatabaseSettings, purpose: 'serve' | 'migrate' = 'serve'): Database {
  const dialect = dialectOf(settings.url);
  if (dialect === 'postgres') {
    const orm = (driverOptions: object) => createOrm(dialect, { clientUrl: settings.url, driverOptions });
    return openPostgres(settings, orm, purpose);
  }
  const file = settings.url.slice('sqlite:'.length);
  const orm = (driverOptions: object) => createOrm(dialect, { dbName: file, driverOptions });
  return openSqlite(file, orm, purpose === 'serve' ? settings.onCheckpointFault : undefined);
}

/** Database for dry runs and tests: its only connection both migrates and serves. */
async function inMemory(settings: DatabaseSettings): Promise<Database> {
  const orm = await connect(settings);
  const connection = orm.em.getConnection();
  const database: Database = {
    dialect: 'sqlite',
    native: (await connection.getNativeClient()) as object,
    all: (text) => connection.execute(text),
    ping: () => connection.execute('select 1'),
    terms: sqliteTerms(undefined),
    orm: async () => orm,
    close: () => orm.close(),
  };
  await migrate(database);
  return database;
}

export type { Dialect } from './open-driver.ts';

/** Connects the tool that writes migrations, with MikroORM's migrator and without touching the schema. */
export async function connect(settings: DatabaseSettings): Promise<MikroORM> {
  const { Migrator } = await import('@mikro-orm/migrations');
  const dialect = dialectOf(settings.url);
  const extensions = [Migrator];
  if (dialect === 'sqlite') {
    const file = settings.url.slice('sqlite:'.length);
    if (file !== ':memory:') restrictToOwner(file);
    const orm = await createOrm(dialect, { extensions, dbName: file });
    setUpSqlite((await orm.em.getConnection().getNativeClient()) as never);
    return orm;
  }
  const orm = await createOrm(dialect, {
    extensions,
    clientUrl: settings.url,
    pool: poolOf(settings),
    driverOptions: postgresOptions(settings),
  });
  tolerateLostTransactionsOnPostgres((await orm.em.getConnection().getNativeClient()) as never);
  return orm;
}

/** Loaded lazily: with its metadata of the tables it is most of what a process could load. */
async function createOrm(dialect: Dialect, options: object): Promise<MikroORM> {
  const [{ MikroORM: Orm }, { allRows }] = await Promise.all([
    dialect === 'sqlite' ? import('@mikro-orm/sqlite') : import('@mikro-orm/postgresql'),
    import('../rows/all-rows.ts'),
  ]);
  const folder = folderOf(dialect);
  const orm = await Orm.init({
    entities: allRows,
    migrations: {
      path: folder,
      pathTs: folder,
      emit: 'ts' as const,
      tableName: MIGRATIONS,
      snapshot: true,
      snapshotName: '.snapshot',
      snapshotOnMigrate: false,
      silent: true,
    },
    discovery: { warnWhenNoEntities: false },
    // A mistyped name would create an empty database.
    ensureDatabase: false,
    allowGlobalContext: false,
    forceUtcTimezone: true,
    ...options,
  });
  return orm as unknown as MikroORM;
}
