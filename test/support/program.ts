import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { PATIENCE_MS } from './patience.ts';

export type Running = {
  readonly child: ChildProcess;
  /** All that it has said so far, on both ways. */
  output(): string;
  /** @returns its exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>;
};

const running = new Set<ChildProcess>();

/** A program of a package, an image or a unit, with nothing in its environment but what is given. */
export function startProgram(
  command: string,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly user?: number;
  },
): Running {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...options.environment },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.user === undefined ? {} : { uid: options.user, gid: options.user }),
  });
  running.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  }
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  ended.catch(() => running.delete(child));
  return { child, ended, output: () => said };
}

/** @returns the exit code and all that was said. */
export async function runProgram(
  ...given: Parameters<typeof startProgram>
): Promise<{ readonly code: number | null; readonly output: string }> {
  const program = startProgram(...given);
  const code = await program.ended;
  return { code, output: program.output() };
}

/** @returns when `address` answers with `status`, or throws with what the program has said. */
export async function answers(
  program: Running,
  address: string,
  {
    status = 200,
    seconds = PATIENCE_MS / 1000,
  }: { readonly status?: number; readonly seconds?: number } = {},
): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const response = await fetch(address).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.status === status) return;
    if (program.child.exitCode !== null || performance.now() > deadline)
      throw new Error(`${address} does not answer with ${status}:\n${program.output()}`);
    await setTimeout(50);
  }
}

/** What a test that failed left running. */
export async function endPrograms(): Promise<void> {
  for (const child of running) child.kill('SIGKILL');
  while (running.size > 0) await setTimeout(20);
}
