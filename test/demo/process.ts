import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer as createTcpServer } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';

export type ServiceProcess = {
  /** The generated client that manages tenants. */
  readonly root: { readonly clientId: string; readonly secret: string };
  readonly process: ChildProcess;
  /** The printed link, which opens a logged-in console once. */
  consoleLink(): Promise<string>;
  stop(): Promise<void>;
};

/** Below those that systems give to outgoing connections, one of which could take a port before it is listened on. */
const PORTS = { first: 10_000, processes: 16, ofEach: 1_000 } as const;
/** Longest wait for the start of a service. Long, so that a busy machine does not fail it. */
const START_MS = 120_000;
/** The one of these that `fetch` does not call (WHATWG Fetch section 2.9). */
const BAD_PORT = 10_080;

/** A free port that no other process of the test run gets. */
export async function freePort(createServer: typeof createTcpServer): Promise<number> {
  const worker = Number(process.env['MOCHA_WORKER_ID'] ?? 0) % PORTS.processes;
  for (;;) {
    const port = PORTS.first + worker * PORTS.ofEach + randomInt(PORTS.ofEach);
    if (port !== BAD_PORT && (await isFree(port, createServer))) return port;
  }
}

function isFree(port: number, createServer: typeof createTcpServer): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error)));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

/** Starts the service as a process of its own and waits until it is healthy. */
export async function startProcess(options: {
  readonly address: string;
  readonly environment: Readonly<Record<string, string>>;
}): Promise<ServiceProcess> {
  const { port } = new URL(options.address);
  // Another program on the port would be mistaken for the started service.
  if (!(await isFree(Number(port), createTcpServer))) throw new Error(`port ${port} is in use; set PORT to another one`);
  // Built, it is started as it was built.
  const ending = extname(fileURLToPath(import.meta.url));
  const main = fileURLToPath(new URL(`../../bootstrap/main${ending}`, import.meta.url));
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env['PATH'], HOST: '127.0.0.1', DRAIN_SECONDS: '0', ...options.environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const output: string[] = [];
  child.stderr?.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const deadline = performance.now() + START_MS;
  while (!(await healthy(options.address))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`the service did not start:\n${output.join('')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const secrets = parseEnv(readFileSync(join(options.environment['DATA_FOLDER'] ?? '', 'secrets.env'), 'utf8'));
  return {
    root: { clientId: secrets['AUTH_CLIENT_ID'] ?? '', secret: secrets['AUTH_CLIENT_SECRET'] ?? '' },
    process: child,
    consoleLink: () => printedLink(output, performance.now() + 2_000),
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** The link is printed when the service is ready, or slightly later. */
async function printedLink(output: readonly string[], deadline: number): Promise<string> {
  for (;;) {
    const link = /^Console: (\S+#ticket=\S+)/m.exec(output.join(''))?.[1];
    if (link !== undefined || performance.now() > deadline) return link ?? '';
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function healthy(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/health`)).ok;
  } catch {
    return false;
  }
}
