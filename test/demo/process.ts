import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';

export type ServiceProcess = {
  /** The generated client that manages tenants. */
  readonly root: { readonly clientId: string; readonly secret: string };
  readonly process: ChildProcess;
  stop(): Promise<void>;
};

/** A port that is free now. */
export function freePort(createServer: typeof createTcpServer): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** Starts the service as a process of its own and waits until it is healthy. */
export async function startProcess(options: {
  readonly address: string;
  readonly environment: Readonly<Record<string, string>>;
}): Promise<ServiceProcess> {
  const main = fileURLToPath(new URL('../../bootstrap/main.ts', import.meta.url));
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env['PATH'], HOST: '127.0.0.1', ...options.environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const output: string[] = [];
  child.stderr?.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const deadline = performance.now() + 20_000;
  while (!(await healthy(options.address))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`the service did not start:\n${output.join('')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const secrets = parseEnv(
    readFileSync(join(options.environment['DATA_FOLDER'] ?? '', 'secrets.env'), 'utf8'),
  );
  return {
    root: { clientId: secrets['AUTH_CLIENT_ID'] ?? '', secret: secrets['AUTH_CLIENT_SECRET'] ?? '' },
    process: child,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function healthy(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/health`)).ok;
  } catch {
    return false;
  }
}
