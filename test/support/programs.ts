import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { minimalEnvironment } from './compile-cache.ts';
import { WAIT_TIMEOUT_MS } from './patience.ts';
import { builtProgram } from './start-options.ts';

/** Says in one line what the commands of a page want that is not here; with `CI=true` that is a failure. */
export function hasPrograms(page: string, names: readonly string[]): boolean {
  const missingPrograms = names.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
  if (missingPrograms.length === 0) return true;
  if (process.env['CI'] === 'true') throw new Error(`install what ${page} uses: ${missingPrograms.join(' ')}`);
  console.log(`    skipped: commands of ${page} (needs ${missingPrograms.join(' ')})`);
  return false;
}

export type ProcessResult = { readonly code: number; readonly stdout: string; readonly stderr: string };
type Environment = Readonly<Record<string, string>>;

const addressOf = (command: string) => new URL(`../../bootstrap/${command}.ts`, import.meta.url);

/** A program of `bootstrap/` as a process of its own. */
export function runProcess(command: string, args: readonly string[], environment: Environment): Promise<ProcessResult> {
  return new Promise((resolve) => {
    const env = { ...minimalEnvironment(), ...environment };
    execFile(process.execPath, [builtProgram(command), ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

class ProcessExit {
  readonly code: number;

  constructor(code: number) {
    this.code = code;
  }
}

let runs = 0;
let previousRun: Promise<unknown> = Promise.resolve();

/**
 * The same within this process, which has loaded all that it needs: another process would take most of a second for that.
 * That a command works as a process is to be shown by `runProcess` once.
 */
export function runCommand(command: string, args: readonly string[], environment: Environment): Promise<ProcessResult> {
  const run = previousRun.then(() => runInProcess(command, args, environment));
  previousRun = run.catch(() => {});
  return run;
}

async function runInProcess(command: string, args: readonly string[], environment: Environment): Promise<ProcessResult> {
  const { argv, env, exitCode, exit } = process;
  const { log, error } = console;
  const output = { stdout: '', stderr: '' };
  const address = addressOf(command);
  try {
    process.argv = [process.execPath, fileURLToPath(address), ...args];
    process.env = { ...minimalEnvironment(), ...environment };
    process.exitCode = undefined;
    process.exit = (code) => {
      throw new ProcessExit(Number(code));
    };
    console.log = (text: string) => {
      output.stdout += `${text}\n`;
    };
    console.error = (text: string) => {
      output.stderr += `${text}\n`;
    };
    // Another address is another module: its statements run again, those of what it imports do not.
    await import(`${address}?run=${++runs}`);
    return { code: Number(process.exitCode ?? 0), ...output };
  } catch (thrownError) {
    if (thrownError instanceof ProcessExit) return { code: thrownError.code, ...output };
    throw thrownError;
  } finally {
    Object.assign(process, { argv, env, exitCode, exit });
    Object.assign(console, { log, error });
  }
}

export type RunningProgram = {
  readonly child: ChildProcess;
  /** All that it has said so far, on both ways. */
  output(): string;
  /** @returns its exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>;
};

const runningPrograms = new Set<ChildProcess>();

/** A program of a package, an image or a unit, with nothing in its environment but what is given. */
export function startProgram(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly environment: Readonly<Record<string, string | undefined>>; readonly user?: number },
): RunningProgram {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...options.environment },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.user === undefined ? {} : { uid: options.user, gid: options.user }),
  });
  runningPrograms.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      runningPrograms.delete(child);
      resolve(code);
    });
  });
  ended.catch(() => runningPrograms.delete(child));
  return { child, ended, output: () => output };
}

/** @returns the exit code and all that was said. */
export async function runProgram(
  ...parameters: Parameters<typeof startProgram>
): Promise<{ readonly code: number | null; readonly output: string }> {
  const program = startProgram(...parameters);
  const code = await program.ended;
  return { code, output: program.output() };
}

/** @returns when `address` answers with `status`, or throws with what the program has said. */
export async function waitForAnswer(
  program: RunningProgram,
  address: string,
  { status = 200, seconds = WAIT_TIMEOUT_MS / 1000 }: { readonly status?: number; readonly seconds?: number } = {},
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
export async function stopPrograms(): Promise<void> {
  for (const child of runningPrograms) child.kill('SIGKILL');
  while (runningPrograms.size > 0) await setTimeout(20);
}
