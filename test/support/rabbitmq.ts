import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ChannelModel, connect } from 'amqplib';
import { freePort } from '../demo/process.ts';
import { WAIT_TIMEOUT_MS } from './patience.ts';
import { certify, pem } from './test-certificates.ts';

const run = promisify(execFile);
/** Folders of the scripts that run the server under the calling account. */
const FOLDERS = ['/usr/lib/rabbitmq/bin', '/opt/rabbitmq/sbin', '/opt/homebrew/opt/rabbitmq/sbin'];

/** A RabbitMQ server of a test file, on loopback and free ports. */
export type RabbitMq = {
  readonly url: string;
  /** The TLS address and the CA file. */
  readonly tls: { readonly url: string; readonly ca: string };
  /** Environment variables for `rabbitmqctl` with this server. */
  readonly environment: Readonly<Record<string, string>>;
  control(...args: string[]): Promise<string>;
  /** Opens a connection for the test, which must close it. */
  connect(): Promise<ChannelModel>;
  /**
   * Kills it as a power failure does, once queues and bindings are on disk: RabbitMQ confirms them up to two seconds
   * earlier.
   */
  kill(): Promise<void>;
  /** Restarts it with its stored data. */
  restart(): Promise<void>;
  /** Raises the disk alarm, so that it accepts no messages. */
  block(): Promise<void>;
  unblock(): Promise<void>;
  stop(): Promise<void>;
};

/** @returns undefined without RabbitMQ, and prints one line; with `CI=true` that throws. */
export async function startRabbitMq(): Promise<RabbitMq | undefined> {
  const scripts = FOLDERS.find((folder) => existsSync(join(folder, 'rabbitmq-server')));
  if (scripts !== undefined) return startFrom(scripts);
  if (process.env['CI'] === 'true') throw new Error('CI needs RabbitMQ: install rabbitmq-server');
  console.log('    RabbitMQ is skipped, install rabbitmq-server to run it');
  return undefined;
}

async function startFrom(scripts: string): Promise<RabbitMq> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-rabbitmq-'));
  const ports = { amqp: 0, amqps: 0, nodes: 0, names: 0 };
  for (const name of Object.keys(ports)) ports[name as keyof typeof ports] = await freePort(createServer);
  const { environment, ca } = await writeSettings(folder, ports);
  const url = `amqp://guest:guest@127.0.0.1:${ports.amqp}/`;
  const children = new Set<ChildProcess>();
  const killAll = () => {
    for (const child of children) stopProgram(child);
  };
  process.once('exit', killAll);
  const spawnProgram = (file: string, args: readonly string[]) => {
    // In a separate process group with its children.
    const child = spawn(file, args, { cwd: folder, env: environment, stdio: 'ignore', detached: true });
    children.add(child);
    child.once('exit', () => children.delete(child));
    child.once('error', () => children.delete(child));
    return child;
  };
  const names = spawnProgram('epmd', ['-address', '127.0.0.1', '-port', String(ports.names)]);
  let server: ChildProcess | undefined;
  const control = async (...args: string[]) => {
    const { stdout } = await run(join(scripts, 'rabbitmqctl'), ['-q', ...args], { env: environment });
    return stdout;
  };
  const start = async () => {
    const brokerProcess = spawnProgram(join(scripts, 'rabbitmq-server'), []);
    server = brokerProcess;
    const deadline = performance.now() + WAIT_TIMEOUT_MS;
    for (;;) {
      const connection = await connect(url).catch(() => undefined);
      if (connection !== undefined) return connection.close();
      if (brokerProcess.exitCode !== null || performance.now() > deadline) throw new Error('RabbitMQ does not start');
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const kill = async () => {
    if (server !== undefined) await exitOf(server);
  };
  const rabbit: RabbitMq = {
    url,
    tls: { url: `amqps://guest:guest@localhost:${ports.amqps}/`, ca },
    environment: { ...environment, PATH: `${scripts}:${process.env['PATH']}` },
    control,
    connect: async () => {
      const connection = await connect(url);
      connection.on('error', () => {});
      return connection;
    },
    kill: async () => {
      await control('eval', 'mnesia:sync_log().');
      await kill();
    },
    restart: start,
    block: async () => {
      await control('set_disk_free_limit', '1000000GB');
    },
    unblock: async () => {
      await control('set_disk_free_limit', '1MB');
    },
    async stop() {
      await kill();
      await exitOf(names);
      process.removeListener('exit', killAll);
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    },
  };
  try {
    await start();
  } catch (error) {
    await rabbit.stop();
    throw error;
  }
  return rabbit;
}

function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return Promise.resolve();
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  stopProgram(child);
  return exited;
}

function stopProgram({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

type Ports = { readonly amqp: number; readonly amqps: number; readonly nodes: number; readonly names: number };

async function writeSettings(folder: string, ports: Ports) {
  const write = (name: string, text: string, mode = 0o600) => {
    writeFileSync(join(folder, name), text, { mode });
    return join(folder, name);
  };
  for (const name of ['data', 'log']) mkdirSync(join(folder, name));
  write('.erlang.cookie', 'only-for-this-test', 0o400);
  const root = await certify({ name: 'Authority of the broker', ca: true });
  const leaf = await certify({ name: 'Broker', by: root, dns: ['localhost'] });
  const ca = write('ca.pem', pem(root));
  const certificate = write('broker.pem', pem(leaf));
  const key = write('broker.key', leaf.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string);
  write(
    'rabbitmq.conf',
    [
      `listeners.tcp.local = 127.0.0.1:${ports.amqp}`,
      `listeners.ssl.local = 127.0.0.1:${ports.amqps}`,
      `ssl_options.cacertfile = ${ca}`,
      `ssl_options.certfile = ${certificate}`,
      `ssl_options.keyfile = ${key}`,
      'disk_free_limit.absolute = 1MB',
      '',
    ].join('\n'),
  );
  const environment = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    LC_ALL: 'C.UTF-8',
    ERL_CRASH_DUMP_BYTES: '0',
    // The script uses `exec`, so its process id is that of the server.
    RUNNING_UNDER_SYSTEMD: 'true',
    RABBITMQ_NODENAME: `test${ports.nodes}@localhost`,
    RABBITMQ_DIST_PORT: String(ports.nodes),
    ERL_EPMD_PORT: String(ports.names),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq'),
    RABBITMQ_CONF_ENV_FILE: write('environment', ''),
    RABBITMQ_ENABLED_PLUGINS_FILE: write('plugins', '[].'),
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
  };
  return { environment, ca };
}

/** Waits until `attempt` returns true. @param describeState details for the error message. */
export async function waitUntil(
  description: string,
  attempt: () => boolean | Promise<boolean>,
  { withinMs = WAIT_TIMEOUT_MS, about: describeState = () => '' }: { readonly withinMs?: number; readonly about?: () => string } = {},
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await attempt())) {
    if (performance.now() > deadline) throw new Error(`in vain: ${description}\n${describeState()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
