import type { MikroORM } from '@mikro-orm/core';
import { reaching } from '../database-faults.ts';
import { kyselyDialects, type PostgresPool, postgresDriver, type SqliteDatabase, sqliteDriver } from '../drivers.ts';
import type { JobSql } from '../job-sql.ts';
import { surviveOnPostgres, surviveOnSqlite } from '../lost-transactions.ts';
import { endSilentConnections } from '../postgres/silent-connections.ts';
import { postgresTls } from '../postgres/tls.ts';
import { Checkpoints } from '../sqlite/checkpoints.ts';
import { keepToOwner } from '../sqlite/own-file.ts';
import type { Parameter, Row } from '../statement.ts';
import { POSTGRES_TERMS, sqliteTerms, type TermWords } from '../terms.ts';

export type Connections = { readonly used: number; readonly idle: number; readonly waiting: number };

export type Dialect = 'postgres' | 'sqlite';

/** A database as a process has it: its driver, and MikroORM over the same connections once somebody administrates. */
export type Database = {
  readonly dialect: Dialect;
  /** PostgreSQL that spreads its tables over several machines, by tenant (Citus). */
  readonly isCluster?: true;
  /** The pool of PostgreSQL's driver, or the one connection of SQLite's. */
  readonly native: object;
  /** For a start, which has few words of its own. */
  all(text: string): Promise<readonly Row[]>;
  /** Runs one statement, prepared where the database has prepared statements, as those of wallets are. */
  ping(): Promise<unknown>;
  /** Loaded when it is wanted first: it takes 0.1 s and 15 MB, and most of what a process serves does without. */
  orm(): Promise<MikroORM>;
  /** Connections of a pool, where there is one. */
  readonly connections?: () => Connections;
  close(): Promise<void>;
  readonly terms: TermWords;
  /** Checkpoints of SQLite beside the main thread; undefined where its connection runs them. */
  readonly checkpoints?: Checkpoints;
  /** Each new connection is looked over, by statements on it, before anybody gets it; where that fails nobody does. */
  onConnection?(look: (sql: JobSql) => Promise<void>): void;
};

export type OpeningSettings = {
  readonly url: string;
  readonly poolSize: number;
  readonly timeoutSeconds?: number;
  readonly isCluster?: true;
};

const DEFAULT_TIMEOUT_SECONDS = 15;
/** So much later than PostgreSQL should have given up a statement, nobody expects it to say so any more. */
const GRACE_MS = 1_000;
/** Dates and times, which PostgreSQL has in a table of MikroORM; it reads them itself. */
const TIMES = [1082, 1114, 1184, 1186];

/** Parameters of a session, by name. */
type SessionParameters = Readonly<Record<string, string>>;

const COMMON_PARAMETERS: SessionParameters = {
  // Our statements find single rows: compiling or planning them anew would cost more than running them.
  jit: 'off',
  // PostgreSQL has a limited number of connections, and by itself keeps one for hours whose other end is gone.
  tcp_keepalives_idle: '30',
  tcp_keepalives_interval: '10',
  tcp_keepalives_count: '3',
};

/**
 * Plans of single rows are worth keeping. A cluster of Citus needs to see the tenant in each call, to know where it goes, and refuses
 * plans that were made without.
 */
const planning = (isCluster: boolean): SessionParameters => (isCluster ? {} : { plan_cache_mode: 'force_generic_plan' });

/**
 * A migration has none of these limits: a statement that rewrites a large table is silent for as long as it takes, so only TCP notices that
 * the database has gone meanwhile. A connection that got lost between two statements holds its locks until PostgreSQL ends the transaction.
 */
const limits = (timeoutMs: number): SessionParameters => ({
  statement_timeout: String(timeoutMs),
  idle_in_transaction_session_timeout: String(timeoutMs),
});

/**
 * The statement that sets the parameters of a new session. They are no startup parameters (`options`), since poolers such as
 * PgBouncer reject those.
 */
function sessionSetup({ timeoutSeconds, isCluster }: OpeningSettings, purpose: 'serve' | 'migrate') {
  const parameters = {
    ...COMMON_PARAMETERS,
    ...planning(isCluster === true),
    ...(purpose === 'serve' ? limits(timeoutMsOf(timeoutSeconds)) : {}),
  };
  const calls = Object.entries(parameters).map(([name, value]) => `set_config('${name}', '${value}', false)`);
  return `select ${calls.join(', ')}`;
}

const timeoutMsOf = (timeoutSeconds = DEFAULT_TIMEOUT_SECONDS) => timeoutSeconds * 1000;

/** What the driver for PostgreSQL is given besides its address. */
export function postgresOptions({ url, timeoutSeconds }: OpeningSettings) {
  return {
    ssl: postgresTls(url),
    // A plan that was made while the tables were small would stay with its connection, and with it the wrong index.
    maxUses: 20_000,
    maxLifetimeSeconds: 300,
    connectionTimeoutMillis: timeoutMsOf(timeoutSeconds),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

export const poolOf = ({ poolSize }: OpeningSettings) => ({ min: 0, max: Math.max(2, poolSize) });

/** Connects without touching the schema. @param orm makes MikroORM over connections that there are. */
export function openPostgres(
  settings: OpeningSettings,
  orm: (driverOptions: object) => Promise<MikroORM>,
  purpose: 'serve' | 'migrate',
): Database {
  const { Pool, TypeOverrides } = postgresDriver();
  const types = new TypeOverrides();
  for (const type of TIMES) types.setTypeParser(type, (text) => text);
  const options = postgresOptions(settings);
  const setup = { text: sessionSetup(settings, purpose), values: [] };
  let look: ((sql: JobSql) => Promise<void>) | undefined;
  const prepare = async (client: FreshConnection) => {
    await client.query(setup);
    await look?.(freshJobs(client));
  };
  const verify = (client: FreshConnection, done: (error?: unknown) => void) => void prepare(client).then(() => done(), done);
  const pool = new Pool({ ...addressOf(settings.url), ...poolOf(settings), types, ...options, verify });
  ignoreLostConnections(pool);
  if (purpose === 'serve') endSilentConnections(pool as never, options.connectionTimeoutMillis + GRACE_MS);
  surviveOnPostgres(pool as never);
  return {
    dialect: 'postgres',
    ...(settings.isCluster && { isCluster: true }),
    native: pool,
    all: async (text) => (await pool.query(text)).rows,
    ping: () => pool.query({ name: 'ping', text: 'select 1' }),
    connections: () => ({ used: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    terms: POSTGRES_TERMS,
    onConnection: (wanted) => {
      look = wanted;
    },
    ...onceMade(
      async () => orm(new (await kyselyDialects()).PostgresDialect({ pool })),
      () => pool.end(),
    ),
  };
}

/** @param onCheckpointFault has checkpoints run in a thread, and is called when they fail there. */
export function openSqlite(
  file: string,
  orm: (driverOptions: object) => Promise<MikroORM>,
  onCheckpointFault?: (error: Error) => void,
): Database {
  keepToOwner(file);
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
  const { orm: loadOrm, close } = onceMade(
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

/** A connection of the pool that nobody has yet. */
type FreshConnection = {
  query(query: {
    readonly text: string;
    readonly values: readonly Parameter[];
  }): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>;
};

function freshJobs(client: FreshConnection): JobSql {
  const query = (text: string, values: readonly Parameter[]) => reaching(() => client.query({ text, values }));
  return {
    all: async ({ text }, ...values) => (await query(text, values)).rows,
    change: async ({ text }, ...values) => (await query(text, values)).rowCount ?? 0,
  };
}

export function setUpSqlite(database: SqliteDatabase): void {
  database.pragma('journal_mode = wal');
  // What a caller was told has to outlive a power cut (SQLite, PRAGMA synchronous: with the WAL only `full` does).
  database.pragma('synchronous = full');
  database.pragma('busy_timeout = 5000');
  // What undoes a single change among several that share a transaction would else be written to a file of its own.
  database.pragma('temp_store = memory');
  surviveOnSqlite(database);
}

/** As MikroORM reads an address. */
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

/** The statement that is under way fails with its connection, and the pool replaces it; nobody else has to hear of it. */
function ignoreLostConnections(pool: PostgresPool): void {
  const nothing = () => {};
  pool.on('error', nothing);
  pool.on('connect', (client: { on(event: 'error', listener: () => void): unknown }) => {
    client.on('error', nothing);
  });
}

/** MikroORM closes what it works on. */
function onceMade(make: () => Promise<MikroORM>, close: () => Promise<void>): Pick<Database, 'orm' | 'close'> {
  let made: Promise<MikroORM> | undefined;
  return {
    orm: () => {
      made ??= make();
      return made;
    },
    close: async () => {
      const orm = await made?.catch(() => undefined);
      if (orm === undefined) await close();
      else await orm.close();
    },
  };
}
