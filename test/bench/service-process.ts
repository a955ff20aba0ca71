import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { startOptions } from '../support/start-options.ts';
import { cpuMs, memoryMegabytes } from './processor-time.ts';

const MAIN = fileURLToPath(new URL('../../dist/bootstrap/main.js', import.meta.url));
const START = startOptions();
const HEAP_PROBE = new URL('heap-probe.ts', import.meta.url).href;
const START_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 15_000;
const POLL_MS = 5;
const SETTLE_MS = 1000;
const ERROR_LENGTH = 4000;

export const ROOT_CLIENT = { id: 'root', secret: randomBytes(24).toString('base64url') } as const;

/** How the process is looked into. */
export type Instruments = {
  /** Folder that takes a CPU profile of each process. */
  readonly profileFolder: string | undefined;
  /** Whether its heap can be asked for. */
  readonly memory: boolean;
};

export type ServiceOptions = Instruments & {
  readonly databaseUrl: string;
  readonly dataFolder: string;
};

export type Start = { readonly startMs: number; readonly idleMegabytes: number };

/** The built service as a process of its own, the way it is deployed. */
export class ServiceProcess {
  readonly origin: string;
  readonly starts: Start[] = [];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #nodeOptions: readonly string[];
  /** To the probe, where there is one. */
  readonly #channel: readonly 'ipc'[];
  #child: ChildProcess | undefined;
  #errors = '';

  constructor(port: number, options: ServiceOptions) {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing; run "npm run build" first`);
    this.origin = `http://127.0.0.1:${port}`;
    const { profileFolder, memory } = options;
    this.#nodeOptions = [
      ...START.nodeOptions,
      ...(profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`]),
      ...(memory ? ['--expose-gc', `--import=${HEAP_PROBE}`] : []),
    ];
    this.#channel = memory ? ['ipc'] : [];
    this.#environment = {
      ...START.environment,
      PATH: process.env['PATH'] ?? '',
      HOST: '127.0.0.1',
      PORT: String(port),
      PUBLIC_URL: this.origin,
      DATA_FOLDER: options.dataFolder,
      DATABASE_URL: options.databaseUrl,
      MASTER_SECRET: randomBytes(48).toString('base64url'),
      AUTH_CLIENT_ID: ROOT_CLIENT.id,
      AUTH_CLIENT_SECRET: ROOT_CLIENT.secret,
      OUTBOUND_ALLOW: '127.0.0.1',
      RATE_LIMIT_OFFER: '0',
    };
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the service does not run');
    return pid;
  }

  cpuMs(): number {
    return cpuMs(this.pid);
  }

  /** What the service last wrote to its standard error. */
  get errors(): string {
    return this.#errors;
  }

  /** Megabytes in use after a collection: objects, and the buffers outside of the heap that belong to them. */
  heapMegabytes(): Promise<number> {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      child?.once('message', (bytes) => resolve(Number(bytes) / 1024 ** 2));
      child?.once('exit', () => reject(new Error('the service ended')));
      child?.send('heap');
    });
  }

  /** Resolves once the service is healthy and settled; `startMs` is the time until healthy. */
  async start(): Promise<Start> {
    const began = performance.now();
    const child = spawn(process.execPath, [...this.#nodeOptions, MAIN], {
      env: this.#environment,
      stdio: ['ignore', 'ignore', 'pipe', ...this.#channel],
    });
    this.#child = child;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-ERROR_LENGTH);
    });
    while ((await statusOf(`${this.origin}/health`)) !== 200) {
      if (child.exitCode !== null) throw new Error(`the service ended at its start:\n${this.#errors}`);
      if (performance.now() - began > START_LIMIT_MS)
        throw new Error(`the service is not healthy:\n${this.#errors}`);
      await pause(POLL_MS);
    }
    const startMs = performance.now() - began;
    await pause(SETTLE_MS);
    const start = { startMs, idleMegabytes: memoryMegabytes(this.pid, 'VmRSS') };
    this.starts.push(start);
    return start;
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(timer);
  }
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

function statusOf(url: string): Promise<number> {
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
