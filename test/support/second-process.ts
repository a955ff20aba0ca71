import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { freePort } from '../demo/process.ts';
import { bareEnvironment } from './compile-cache.ts';
import { PATIENCE_MS } from './patience.ts';
import { type CallOptions, dataFolderOf, type TestService } from './test-service.ts';

const MAIN = fileURLToPath(new URL('../../bootstrap/main.ts', import.meta.url));

export type SecondProcess = { readonly address: string; stop(): Promise<void> };

/** The service once more, as a process of its own: same database, same secrets, same public address. */
export async function startSecondProcess(
  environment: Readonly<Record<string, string>>,
): Promise<SecondProcess> {
  const port = await freePort(createServer);
  const address = `http://localhost:${port}`;
  const child = spawn(process.execPath, [MAIN], {
    env: {
      DATA_FOLDER: dataFolderOf(environment['DATABASE_URL']),
      ...environment,
      ...bareEnvironment(),
      PORT: String(port),
      DRAIN_SECONDS: '0',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const output: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isHealthy(address))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`the second process did not start:\n${output.join('')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    address,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function isHealthy(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/health`)).ok;
  } catch {
    return false;
  }
}

/** The same service, whose calls go to each of the processes in turn; its public address stays the first one's. */
export function spread(service: TestService, others: readonly string[]): TestService {
  const addresses = [service.address, ...others];
  let turn = 0;
  return {
    ...service,
    call(method: string, path: string, options?: CallOptions) {
      const address = addresses[turn++ % addresses.length] ?? service.address;
      const inside = path.startsWith(service.address) ? path.slice(service.address.length) : path;
      return service.call(method, address + inside, options);
    },
  };
}
