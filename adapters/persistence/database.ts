import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MikroORM } from '@mikro-orm/core';
import type { Quotas } from '../../domain/tenants/quotas.ts';
import { UNREACHABLE } from './database-faults.ts';
import { surviveOnPostgres, surviveOnSqlite } from './lost-transactions.ts';
import { endSilentConnections } from './postgres/silent-connections.ts';
import { postgresTls } from './postgres/tls.ts';
import { allRows } from './rows/all.ts';
import { keepToOwner } from './sqlite/own-file.ts';

export type Dialect = 'postgres' | 'sqlite';

export type DatabaseSettings = {
  /** `sqlite:<path>`, `sqlite::memory:` or `postgres://…`. */
  readonly url: string;
  /** Connections per process, at least 2; PostgreSQL only. */
  readonly poolSize: number;
  /**
   * Seconds that the database has for one statement, and that work waits for a connection; 15 unless stated. PostgreSQL
   * only.
   */
  readonly timeoutSeconds?: number;
  /** What one tenant may have; without it as much as it likes. */
  readonly quotas?: Quotas;
  /** Whether a database that is behind is brought up to date; true unless stated. */
  readonly migrates?: boolean;
  /** Called as soon as the database is open, before anything is looked at or changed. */
  readonly onConnected?: (orm: MikroORM) => Promise<void>;
};

export const DEFAULT_TIMEOUT_SECONDS = 15;
/** So much later than PostgreSQL should have given up a statement, nobody expects it to say so any more. */
const GRACE_MS = 1_000;

export function dialectOf(url: string): Dialect {
  return url.startsWith('sqlite:') ? 'sqlite' : 'postgres';
}

/**
 * Opens the database and, unless `settings` say otherwise, brings its schema up to date. The caller closes what it opened.
 * @throws Error that says what to do about `DATABASE_URL` when the database cannot be opened.
 */
export async function openDatabase(settings: DatabaseSettings): Promise<MikroORM> {
  try {
    return await openAndMigrate(settings);
  } catch (error) {
    throw new Error(describeFault(settings.url, error) ?? (error as Error).message, { cause: error });
  }
}

/** Where the database is, without who uses it. */
export function placeOf(url: string): string {
  if (dialectOf(url) === 'sqlite') return url;
  const { hostname, port, pathname } = new URL(url);
  return `postgres://${hostname}:${port || '5432'}${pathname}`;
}

/** What drivers say names neither the setting nor the database. */
function describeFault(url: string, error: unknown): string | undefined {
  const { code, message } = error as { code?: string; message: string };
  if (dialectOf(url) === 'sqlite') {
    const isOfFile =
      code?.startsWith('SQLITE_CANTOPEN') || code === 'SQLITE_NOTADB' || /directory/.test(message);
    return isOfFile ? `DATABASE_URL: ${placeOf(url)} cannot be opened: ${message}` : undefined;
  }
  if (code === '3D000') return `DATABASE_URL: there is no ${placeOf(url)}; make it, or correct its name`;
  if (code?.startsWith('28'))
    return `DATABASE_URL: ${placeOf(url)} does not let this user in; check name and password`;
  if (UNREACHABLE.includes(code ?? '') || /Connection terminated|timeout/.test(message)) {
    return `DATABASE_URL: ${placeOf(url)} does not answer (${code ?? 'no connection'})`;
  }
  return /SSL|certificate/i.test(`${message} ${code}`)
    ? `DATABASE_URL: ${placeOf(url)}: ${message}`
    : undefined;
}

async function openAndMigrate(settings: DatabaseSettings): Promise<MikroORM> {
  if (settings.url === 'sqlite::memory:') {
    const inMemory = await connect(settings, 'migrate');
    await inMemory.migrator.up();
    return inMemory;
  }
  const orm = await connect(settings, 'serve');
  try {
    await settings.onConnected?.(orm);
    if (!(await isBehind(orm, dialectOf(settings.url)))) return orm;
    if (settings.migrates === false) {
      throw new Error('the database is empty or of an older release; start the service once, then try again');
    }
    const migrating = await connect(settings, 'migrate');
    try {
      if (dialectOf(settings.url) === 'sqlite') await migrating.migrator.up();
      else await migrateAlone(migrating);
    } finally {
      await migrating.close();
    }
    return orm;
  } catch (error) {
    await orm.close();
    throw error;
  }
}

/** Whether a migration has not run yet. Answered without the migrator, which costs a start more than all the rest. */
async function isBehind(orm: MikroORM, dialect: Dialect): Promise<boolean> {
  const known = readdirSync(folderOf(dialect)).filter((file) => /^Migration\d+.*\.(ts|js)$/.test(file));
  const connection = orm.em.fork().getConnection();
  const tables =
    dialect === 'sqlite'
      ? `select name from sqlite_master where name = '${MIGRATIONS}'`
      : `select table_name from information_schema.tables
         where table_schema = current_schema() and table_name = '${MIGRATIONS}'`;
  if ((await connection.execute(tables)).length === 0) return true;
  const done = (await connection.execute(`select name from ${MIGRATIONS}`)) as { name: string }[];
  const names = new Set(done.map(({ name }) => name));
  return known.some((file) => !names.has(file.replace(/\.(ts|js)$/, '')));
}

/** `vidi` in ASCII; any number that no other user of advisory locks in this database takes. */
const MIGRATION_LOCK = 0x76696469;
const MIGRATIONS = 'schema_migrations';

type LockPool = {
  connect(): Promise<{ query(text: string): Promise<unknown>; release(destroy?: boolean): void }>;
};

/** Several processes may start at once; one migrates, the others wait and find nothing left to do. */
async function migrateAlone(orm: MikroORM): Promise<void> {
  const pool = (await orm.em.getConnection().getNativeClient()) as LockPool;
  const client = await pool.connect();
  try {
    await client.query(`select pg_advisory_lock(${MIGRATION_LOCK})`);
    await orm.migrator.up();
    await client.query(`select pg_advisory_unlock(${MIGRATION_LOCK})`);
    client.release();
  } catch (error) {
    // The lock ends with its connection.
    client.release(true);
    throw error;
  }
}

export function folderOf(dialect: Dialect): string {
  return join(dirname(fileURLToPath(import.meta.url)), 'migrations', dialect);
}

/**
 * Connects without touching the schema. `migrate` brings the migrator along and lets statements take their time: one that
 * rewrites a large table is silent for as long as it takes, so only TCP notices that the database has gone meanwhile.
 */
export async function connect(settings: DatabaseSettings, purpose: 'serve' | 'migrate'): Promise<MikroORM> {
  const dialect = dialectOf(settings.url);
  const folder = folderOf(dialect);
  const extensions = purpose === 'migrate' ? [(await import('@mikro-orm/migrations')).Migrator] : [];
  const common = {
    entities: allRows,
    extensions,
    migrations: {
      path: folder,
      pathTs: folder,
      emit: 'ts' as const,
      tableName: MIGRATIONS,
      snapshot: true,
      snapshotName: '.snapshot',
      snapshotOnMigrate: false,
      silent: true,
      logger: () => {},
    },
    discovery: { warnWhenNoEntities: false },
    // A mistyped name would become an empty database.
    ensureDatabase: false,
    allowGlobalContext: false,
    forceUtcTimezone: true,
  };
  if (dialect === 'sqlite') {
    const { MikroORM: SqliteOrm } = await import('@mikro-orm/sqlite');
    const file = settings.url.slice('sqlite:'.length);
    if (file !== ':memory:') keepToOwner(file);
    const orm = await SqliteOrm.init({ ...common, dbName: file });
    const native = await orm.em.getConnection().getNativeClient();
    native.pragma('journal_mode = wal');
    // What a caller was told has to outlive a power cut (SQLite, PRAGMA synchronous: with the WAL only `full` does).
    native.pragma('synchronous = full');
    native.pragma('busy_timeout = 5000');
    // What undoes a single change among several that share a transaction would else be written to a file of its own.
    native.pragma('temp_store = memory');
    surviveOnSqlite(native);
    return orm as unknown as MikroORM;
  }
  const { MikroORM: PostgresOrm } = await import('@mikro-orm/postgresql');
  const timeoutMs = (settings.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000;
  const orm = await PostgresOrm.init({
    ...common,
    clientUrl: settings.url,
    pool: { min: 0, max: Math.max(2, settings.poolSize) },
    driverOptions: {
      ssl: postgresTls(settings.url),
      // A plan that was made while the tables were small would stay with its connection, and with it the wrong index.
      maxUses: 20_000,
      maxLifetimeSeconds: 300,
      // Our statements find single rows: compiling or planning them anew would cost more than running them.
      options: [...SERVER_SETTINGS, ...(purpose === 'serve' ? limits(timeoutMs) : [])]
        .map((setting) => `-c ${setting}`)
        .join(' '),
      connectionTimeoutMillis: timeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    },
  });
  const pool = await orm.em.getConnection().getNativeClient();
  if (purpose === 'serve') endSilentConnections(pool, timeoutMs + GRACE_MS);
  surviveOnPostgres(pool);
  return orm as unknown as MikroORM;
}

const SERVER_SETTINGS = [
  // Our statements find single rows: compiling or planning them anew would cost more than running them.
  'jit=off',
  'plan_cache_mode=force_generic_plan',
  // PostgreSQL has a limited number of connections, and by itself keeps one for hours whose other end is gone.
  'tcp_keepalives_idle=30',
  'tcp_keepalives_interval=10',
  'tcp_keepalives_count=3',
];

/** A connection that got lost between two statements holds its locks until PostgreSQL ends the transaction, too. */
const limits = (timeoutMs: number) => [
  `statement_timeout=${timeoutMs}`,
  `idle_in_transaction_session_timeout=${timeoutMs}`,
];
