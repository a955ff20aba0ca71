import type { MikroORM } from '@mikro-orm/core';
import { mapDatabaseErrors } from '../database-faults.ts';
import { kyselyDialects, type PostgresPool, postgresDriver, type SqliteDatabase, sqliteDriver } from '../drivers.ts';
import type { JobSql } from '../job-sql.ts';
import { tolerateLostTransactionsOnPostgres, tolerateLostTransactionsOnSqlite } from '../lost-transactions.ts';
import { endSilentConnections } from '../postgres/silent-connections.ts';
import { postgresTls } from '../postgres/tls.ts';
import { Checkpoints } from '../sqlite/checkpoints.ts';
import { restrictToOwner } from '../sqlite/owner-only-file.ts';
import type { Parameter, Row } from '../statement.ts';
import { POSTGRES_TERMS, sqliteTerms, type TermSql } from '../terms.ts';

export type Connections = { readonly used: number; readonly idle: number; readonly waiting: number };

export type Dialect = 'postgres' | 'sqlite';

/** The open database of a process: its driver, and MikroORM on the same connections for the administration. */
export type Database = {
  readonly dialect: Dialect;
  /** PostgreSQL that spreads its tables over several machines, by tenant (Citus). */
  readonly isCluster?: true;
  /** The pool of PostgreSQL's driver, or the one connection of SQLite's. */
  readonly native: object;
  /** Runs a statement without parameters; used during a start. */
  all(text: string): Promise<readonly Row[]>;
  /** Runs a minimal statement. On PostgreSQL it is prepared, like the statements for wallets. */
  ping(): Promise<unknown>;
  /** Loads MikroORM on first use: that takes 0.1 s and 15 MB, and most requests do not need it. */
  orm(): Promise<MikroORM>;
  /** Connections of the pool; undefined for SQLite. */
  readonly connections?: () => Connections;
  close(): Promise<void>;
  readonly terms: TermSql;
  /** Runs the checkpoints of SQLite in a thread of its own; undefined if the connection runs them. */
  readonly checkpoints?: Checkpoints;
  /** Registers a check that runs statements on each new connection before it is used. A connection whose check fails is not used. */
  onConnection?(check: (sql: JobSql) => Promise<void>): void;
};

export type OpeningSettings = {
  readonly url: string;
  readonly poolSize: number;
  readonly timeoutSeconds?: number;
  readonly isCluster?: true;
};

const DEFAULT_TIMEOUT_SECONDS = 15;
/** Time after the statement timeout of PostgreSQL until a silent connection counts as dead. */
const GRACE_MS = 1_000;
/** Type ids (OIDs) of date, timestamp, timestamptz and interval. MikroORM parses their texts itself. */
const TIME_TYPE_IDS = [1082, 1114, 1184, 1186];

type SessionParameters = Readonly<Record<string, string>>;

const COMMON_PARAMETERS: SessionParameters = {
  // The service's statements find single rows: compiling or planning them again would cost more than running them.
  jit: 'off',
  // PostgreSQL has a limited number of connections, and by default keeps a connection for hours after its peer is gone.
  tcp_keepalives_idle: '30',
  tcp_keepalives_interval: '10',
  tcp_keepalives_count: '3',
};

/**
 * The plans of statements that find single rows are worth caching. A Citus cluster must see the tenant in each call to route it, and
 * rejects plans that were made without it.
 */
const planParameters = (isCluster: boolean): SessionParameters => (isCluster ? {} : { plan_cache_mode: 'force_generic_plan' });

/**
 * Timeouts of a serving process. A migration has none: a statement that rewrites a large table is silent for as long as it takes, so only
 * TCP detects that the database is gone. A connection that is lost between two statements holds its locks until PostgreSQL ends the
 * transaction.
 */
const timeoutParameters = (timeoutMs: number): SessionParameters => ({
  statement_timeout: String(timeoutMs),
  idle_in_transaction_session_timeout: String(timeoutMs),
});

/**
 * Statement that sets the parameters of a new session. They are not startup parameters (`options`), because poolers such as PgBouncer
 * reject those.
 */
function sessionSetup({ timeoutSeconds, isCluster }: OpeningSettings, purpose: 'serve' | 'migrate') {
  const parameters = {
    ...COMMON_PARAMETERS,
    ...planParameters(isCluster === true),
    ...(purpose === 'serve' ? timeoutParameters(timeoutMsOf(timeoutSeconds)) : {}),
  };
  const calls = Object.entries(parameters).map(([name, value]) => `set_config('${name}', '${value}', false)`);
  return `select ${calls.join(', ')}`;
}

const timeoutMsOf = (timeoutSeconds = DEFAULT_TIMEOUT_SECONDS) => timeoutSeconds * 1000;

/** Options of the PostgreSQL driver besides its address. */
export function postgresOptions({ url, timeoutSeconds }: OpeningSettings) {
  return {
    ssl: postgresTls(url),
    // A plan from when the tables were small would stay with its connection, and with it the wrong index.
    maxUses: 20_000,
    maxLifetimeSeconds: 300,
    connectionTimeoutMillis: timeoutMsOf(timeoutSeconds),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

export const poolOf = ({ poolSize }: OpeningSettings) => ({ min: 0, max: Math.max(2, poolSize) });

/** Connects without touching the schema. @param orm creates MikroORM over existing connections. */
export function openPostgres(
  settings: OpeningSettings,
  orm: (driverOptions: object) => Promise<MikroORM>,
  purpose: 'serve' | 'migrate',
): Database {
  const { Pool, TypeOverrides } = postgresDriver();
  const types = new TypeOverrides();
  for (const type of TIME_TYPE_IDS) types.setTypeParser(type, (text) => text);
  const options = postgresOptions(settings);
  const setup = { text: sessionSetup(settings, purpose), values: [] };
  let check: ((sql: JobSql) => Promise<void>) | undefined;
  const prepare = async (client: NewConnection) => {
    await client.query(setup);
    await check?.(jobSqlOf(client));
  };
  const verify = (client: NewConnection, done: (error?: unknown) => void) => void prepare(client).then(() => done(), done);
  const pool = new Pool({ ...addressOf(settings.url), ...poolOf(settings), types, ...options, verify });
  ignoreLostConnections(pool);
  if (purpose === 'serve') endSilentConnections(pool as never, options.connectionTimeoutMillis + GRACE_MS);
  tolerateLostTransactionsOnPostgres(pool as never);
  return {
    dialect: 'postgres',
    ...(settings.isCluster && { isCluster: true }),
    native: pool,
    all: async (text) => (await pool.query(text)).rows,
    ping: () => pool.query({ name: 'ping', text: 'select 1' }),
    connections: () => ({ used: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    terms: POSTGRES_TERMS,
    onConnection: (newCheck) => {
      check = newCheck;
    },
    ...lazyOrm(
      async () => orm(new (await kyselyDialects()).PostgresDialect({ pool })),
      () => pool.end(),
    ),
  };
}

/** @param onCheckpointFault called when a checkpoint fails. If it is undefined, the connection runs the checkpoints, not a thread. */
export function openSqlite(
  file: string,
  orm: (driverOptions: object) => Promise<MikroORM>,
  onCheckpointFault?: (error: Error) => void,
): Database {
  restrictToOwner(file);
  const Connection = sqliteDriver();
  const database = new Connection(file);
  let checkpoints: Checkpoints | undefined;
  try {
    setUpSqlite(database);
    if (onCheckpointFault !== undefined) checkpoints = new Checkpoints(file, database, { report: onCheckpointFault });
  } catch (error) {
    database.close();
    throw error;
  }
  const { orm: loadOrm, close } = lazyOrm(
    async () => orm(new (await kyselyDialects()).SqliteDialect({ database })),
    async () => {
      database.close();
    },
  );
  return {
    dialect: 'sqlite',
    native: database,
    all: async (text) => database.prepare(text).all(),
    ping: async () => database.prepare('select 1').all(),
    terms: sqliteTerms(file),
    ...(checkpoints !== undefined && { checkpoints }),
    orm: loadOrm,
    close: async () => {
      await checkpoints?.close();
      await close();
    },
  };
}

/** New connection of the pool, before its first use. */
type NewConnection = {
  query(query: {
    readonly text: string;
    readonly values: readonly Parameter[];
  }): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>;
};

function jobSqlOf(client: NewConnection): JobSql {
  const query = (text: string, values: readonly Parameter[]) => mapDatabaseErrors(() => client.query({ text, values }));
  return {
    all: async ({ text }, ...values) => (await query(text, values)).rows,
    change: async ({ text }, ...values) => (await query(text, values)).rowCount ?? 0,
  };
}

export function setUpSqlite(database: SqliteDatabase): void {
  database.pragma('journal_mode = wal');
  // A confirmed write must survive a power cut (SQLite, PRAGMA synchronous: with the WAL only `full` guarantees that).
  database.pragma('synchronous = full');
  database.pragma('busy_timeout = 5000');
  // Statement journals, which undo a single change among several in a transaction, would otherwise be files.
  database.pragma('temp_store = memory');
  tolerateLostTransactionsOnSqlite(database);
}

/** Parses the address of the database in the same way as MikroORM. */
function addressOf(address: string) {
  const { hostname, port, username, password, pathname } = new URL(address);
  return {
    host: decodeURIComponent(hostname),
    port: Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname).replace(/^\//, ''),
  };
}

/** Ignores the error events of lost connections: the running statement fails with its connection, and the pool replaces the connection. */
function ignoreLostConnections(pool: PostgresPool): void {
  const ignore = () => {};
  pool.on('error', ignore);
  pool.on('connect', (client: { on(event: 'error', listener: () => void): unknown }) => {
    client.on('error', ignore);
  });
}

/** Creates MikroORM on first use. Once it exists, `close` closes it, which also closes its connections. */
function lazyOrm(create: () => Promise<MikroORM>, close: () => Promise<void>): Pick<Database, 'orm' | 'close'> {
  let loading: Promise<MikroORM> | undefined;
  return {
    orm: () => {
      loading ??= create();
      return loading;
    },
    close: async () => {
      const orm = await loading?.catch(() => undefined);
      if (orm === undefined) await close();
      else await orm.close();
    },
  };
}
