import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { Agent, createServer as createHttpServer, get, request, type Server } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startOptions } from '../support/start-options.ts';
import type { KeyStoreName } from './key-store.ts';
import { cpuMs, memoryMegabytes } from './processor-time.ts';

/** Distributes requests among several processes round-robin. */
export class Balancer {
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(ports: readonly number[]) {
    let turn = 0;
    this.#server = createHttpServer({ keepAliveTimeout: 65_000 }, (incoming, outgoing) => {
      const port = ports[turn++ % ports.length];
      const { method, url: path, headers } = incoming;
      const forwarded = request({ host: '127.0.0.1', port, method, path, headers, agent: this.#agent }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      forwarded.on('error', () => outgoing.destroy());
      incoming.pipe(forwarded);
    });
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject).listen(port, '127.0.0.1', () => resolve());
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
  }
}

const THIS_TREE = fileURLToPath(new URL('../../', import.meta.url));
const HEAP_PROBE = new URL('heap-probe.ts', import.meta.url).href;
const START_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 15_000;
const POLL_MS = 5;
const SETTLE_MS = 1000;
const ERROR_LENGTH = 4000;

export const ROOT_CLIENT = { id: 'root', secret: randomBytes(24).toString('base64url') } as const;

/** Instruments of the process. */
export type Instruments = {
  /** Folder that takes a CPU profile of each process. */
  readonly profileFolder: string | undefined;
  /** Whether the heap can be measured. */
  readonly memory: boolean;
  /** Number of processes that share the requests; more than one only with PostgreSQL. */
  readonly processes: number;
  /** Key provider. */
  readonly kms: KeyStoreName;
  readonly variant?: Variant;
};

/** Another build of the service, or the same under other settings. */
export type Variant = {
  /** Folder with its manifest and its `dist`; this one unless stated. */
  readonly tree?: string;
  /** `{database}` in a value is the name of the database. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Behind those of the manifest. */
  readonly nodeOptions?: readonly string[];
};

export type ServiceOptions = Instruments & {
  readonly databaseUrl: string;
  readonly dataFolder: string;
  /** Further settings. */
  readonly environment: Readonly<Record<string, string>>;
};

export type Start = { readonly startMs: number; readonly idleMegabytes: number };

const mainProgram = (tree: string) => join(tree, 'dist', 'bootstrap', 'main.js');

/** @throws Error when there is no build to be measured. */
export function assertBuilt(tree: string): void {
  const main = mainProgram(tree);
  if (!existsSync(main)) throw new Error(`${main} is missing; run "npm run build" in ${tree}`);
}

/** The built service as a process of its own, the way it is deployed; or several of them behind a balancer. */
export class ServiceProcess {
  readonly origin: string;
  readonly starts: Start[] = [];
  readonly #main: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #nodeOptions: readonly string[];
  /** Channel to the probe, if any. */
  readonly #channel: readonly 'ipc'[];
  readonly #port: number;
  readonly #processes: number;
  #children: readonly ChildProcess[] = [];
  #balancer: Balancer | undefined;
  #errors = '';

  constructor(port: number, options: ServiceOptions) {
    const { tree = THIS_TREE, nodeOptions = [] } = options.variant ?? {};
    this.#main = mainProgram(tree);
    assertBuilt(tree);
    const start = startOptions(tree);
    this.origin = `http://127.0.0.1:${port}`;
    this.#port = port;
    this.#processes = options.processes;
    const { profileFolder, memory } = options;
    this.#nodeOptions = [
      ...start.nodeOptions,
      ...(profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`]),
      ...(memory ? ['--expose-gc', `--import=${HEAP_PROBE}`] : []),
      ...nodeOptions,
    ];
    this.#channel = memory ? ['ipc'] : [];
    this.#environment = {
      ...start.environment,
      PATH: process.env['PATH'] ?? '',
      DRAIN_SECONDS: '0',
      HOST: '127.0.0.1',
      PUBLIC_URL: this.origin,
      DATA_FOLDER: options.dataFolder,
      DATABASE_URL: options.databaseUrl,
      MASTER_SECRET: randomBytes(48).toString('base64url'),
      AUTH_CLIENT_ID: ROOT_CLIENT.id,
      AUTH_CLIENT_SECRET: ROOT_CLIENT.secret,
      OUTBOUND_ALLOW: '127.0.0.1',
      RATE_LIMIT_OFFER: '0',
      QUOTA_SESSION_BYTES: '1099511627776',
      ...options.environment,
    };
  }

  get pid(): number {
    const [pid] = this.#pids;
    if (pid === undefined) throw new Error('the service does not run');
    return pid;
  }

  get #pids(): readonly number[] {
    return this.#children.flatMap(({ pid }) => pid ?? []);
  }

  /** CPU time of all its processes. */
  cpuMs(): number {
    return this.#pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
  }

  /** Last lines of the standard error of the service. */
  get errors(): string {
    return this.#errors;
  }

  /** Megabytes in use after a collection: objects, and the buffers outside of the heap that belong to them. */
  heapMegabytes(): Promise<number> {
    const [child] = this.#children;
    return new Promise((resolve, reject) => {
      child?.once('message', (bytes) => resolve(Number(bytes) / 1024 ** 2));
      child?.once('exit', () => reject(new Error('the service ended')));
      child?.send('heap');
    });
  }

  /** Resolves once the service is healthy and settled; `startMs` is the time until healthy. */
  async start(): Promise<Start> {
    const startedAt = performance.now();
    const isAlone = this.#processes === 1;
    const ports: number[] = [];
    while (ports.length < this.#processes) {
      const port = isAlone ? this.#port : await freePort();
      ports.push(port);
      await this.#startOne(port, startedAt);
    }
    if (!isAlone) {
      this.#balancer = new Balancer(ports);
      await this.#balancer.listen(this.#port);
    }
    const startMs = performance.now() - startedAt;
    await pause(SETTLE_MS);
    const start = { startMs, idleMegabytes: memoryMegabytes(this.pid, 'VmRSS') };
    this.starts.push(start);
    return start;
  }

  async #startOne(port: number, startedAt: number): Promise<void> {
    const child = spawn(process.execPath, [...this.#nodeOptions, this.#main], {
      env: { ...this.#environment, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe', ...this.#channel],
    });
    this.#children = [...this.#children, child];
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-ERROR_LENGTH);
    });
    while ((await fetchStatus(`http://127.0.0.1:${port}/health`)) !== 200) {
      if (child.exitCode !== null) throw new Error(`the service ended at its start:\n${this.#errors}`);
      if (performance.now() - startedAt > START_LIMIT_MS) throw new Error(`the service is not healthy:\n${this.#errors}`);
      await pause(POLL_MS);
    }
  }

  async stop(): Promise<void> {
    this.#balancer?.close();
    const children = this.#children.filter(({ exitCode }) => exitCode === null);
    this.#children = [];
    await Promise.all(children.map(end));
  }
}

async function end(child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  child.kill('SIGTERM');
  await exited;
  clearTimeout(timer);
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

function fetchStatus(url: string): Promise<number> {
  return new Promise((resolve) => {
    get(url, { agent: false, timeout: 1000 }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    }).once('error', () => resolve(0));
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
