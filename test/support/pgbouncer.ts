import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../demo/process.ts';

const PROGRAM = '/usr/sbin/pgbouncer';

/** The Debian package `pgbouncer` is installed. */
export const hasPgBouncer = () => existsSync(PROGRAM);

/** A PgBouncer in front of one PostgreSQL database. */
export class PgBouncer {
  readonly #process: ChildProcess;
  readonly #folder: string;
  /** Address of the database through the pooler. */
  readonly url: string;

  private constructor(process: ChildProcess, folder: string, url: string) {
    this.#process = process;
    this.#folder = folder;
    this.url = url;
  }

  /** @param settings further lines of the section `pgbouncer`. */
  static async start(
    database: string,
    mode: 'session' | 'transaction' | 'statement',
    settings: readonly string[] = [],
  ): Promise<PgBouncer> {
    const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'));
    const port = await freePort(createServer);
    const { hostname, port: serverPort, username, password, pathname } = new URL(database);
    const file = join(folder, 'pgbouncer.ini');
    const user = decodeURIComponent(username);
    // An empty password makes the whole line invalid.
    const secret = password === '' ? '' : ` password=${decodeURIComponent(password)}`;
    const server = `host=${hostname} port=${serverPort || 5432} user=${user}${secret}`;
    const lines = [
      '[databases]',
      `* = ${server}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      `pool_mode = ${mode}`,
      ...settings,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    // It does not run as root.
    const isRoot = process.getuid?.() === 0;
    if (isRoot) {
      chmodSync(folder, 0o755);
      execFileSync('chown', ['-R', 'postgres', folder]);
    }
    const child = spawn(PROGRAM, [...(isRoot ? ['-u', 'postgres'] : []), file], { stdio: 'ignore' });
    while (!(await isListening(port))) {
      if (child.exitCode !== null) throw new Error('PgBouncer did not start');
      await setTimeout(20);
    }
    return new PgBouncer(child, folder, `postgres://${username || 'postgres'}@127.0.0.1:${port}${pathname}`);
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill('SIGKILL');
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
