import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MikroORM } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { allRows } from './rows/all.ts';

export type Dialect = 'postgres' | 'sqlite';

export type DatabaseSettings = {
  /** `sqlite:<path>`, `sqlite::memory:` or `postgres://…`. */
  readonly url: string;
  /** Connections per process, at least 2; PostgreSQL only. */
  readonly poolSize: number;
};

export function dialectOf(url: string): Dialect {
  return url.startsWith('sqlite:') ? 'sqlite' : 'postgres';
}

/** Opens the database and brings its schema up to date. The caller closes what it opened. */
export async function openDatabase(settings: DatabaseSettings): Promise<MikroORM> {
  const orm = await connect(settings);
  try {
    if (dialectOf(settings.url) === 'sqlite') await orm.migrator.up();
    else await migrateAlone(orm);
  } catch (error) {
    await orm.close();
    throw error;
  }
  return orm;
}

/** `vidi` in ASCII; any number that no other user of advisory locks in this database takes. */
const MIGRATION_LOCK = 0x76696469;

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

/** Connects without touching the schema; for the migration command. */
export async function connect(settings: DatabaseSettings): Promise<MikroORM> {
  const dialect = dialectOf(settings.url);
  const folder = join(dirname(fileURLToPath(import.meta.url)), 'migrations', dialect);
  const common = {
    entities: allRows,
    extensions: [Migrator],
    migrations: {
      path: folder,
      pathTs: folder,
      emit: 'ts' as const,
      tableName: 'schema_migrations',
      snapshot: true,
      snapshotName: '.snapshot',
      snapshotOnMigrate: false,
      silent: true,
      logger: () => {},
    },
    discovery: { warnWhenNoEntities: false },
    allowGlobalContext: false,
    forceUtcTimezone: true,
  };
  if (dialect === 'sqlite') {
    const { MikroORM: SqliteOrm } = await import('@mikro-orm/sqlite');
    const file = settings.url.slice('sqlite:'.length);
    if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const orm = await SqliteOrm.init({ ...common, dbName: file });
    const native = await orm.em.getConnection().getNativeClient();
    native.pragma('journal_mode = wal');
    native.pragma('synchronous = normal');
    native.pragma('busy_timeout = 5000');
    return orm as unknown as MikroORM;
  }
  const { MikroORM: PostgresOrm } = await import('@mikro-orm/postgresql');
  const orm = await PostgresOrm.init({
    ...common,
    clientUrl: settings.url,
    pool: { min: 0, max: Math.max(2, settings.poolSize) },
    driverOptions: {
      // A plan that was made while the tables were small would stay with its connection, and with it the wrong index.
      maxUses: 20_000,
      maxLifetimeSeconds: 300,
      // Our statements find single rows; compiling them would cost more than running them.
      // One plan for all parameters: planning anew costs more than any of these statements.
      options: '-c jit=off -c plan_cache_mode=force_generic_plan -c statement_timeout=30000',
      connectionTimeoutMillis: 10_000,
    },
  });
  return orm as unknown as MikroORM;
}
