import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { minimalEnvironment } from './compile-cache.ts';
import { WAIT_TIMEOUT_MS } from './patience.ts';
import { builtProgram } from './start-options.ts';

/** Prints the missing programs of a page in one line; with `CI=true` that throws. */
export function hasPrograms(page: string, names: readonly string[]): boolean {
  const missingPrograms = names.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
  if (missingPrograms.length === 0) return true;
  if (process.env['CI'] === 'true') throw new Error(`install what ${page} uses: ${missingPrograms.join(' ')}`);
  console.log(`    skipped: commands of ${page} (needs ${missingPrograms.join(' ')})`);
  return false;
}

export type ProcessResult = { readonly code: number; readonly stdout: string; readonly stderr: string };
type Environment = Readonly<Record<string, string>>;

const moduleUrl = (command: string) => new URL(`../../bootstrap/${command}.ts`, import.meta.url);

/** Runs a program of `bootstrap/` as a separate process. */
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

/** Runs a command within this process, which saves most of a second. One test of each command uses `runProcess` instead. */
export function runCommand(command: string, args: readonly string[], environment: Environment): Promise<ProcessResult> {
  const run = previousRun.then(() => runInProcess(command, args, environment));
  previousRun = run.catch(() => {});
  return run;
}

async function runInProcess(command: string, args: readonly string[], environment: Environment): Promise<ProcessResult> {
  const { argv, env, exitCode, exit } = process;
  const { log, error } = console;
  const output = { stdout: '', stderr: '' };
  const address = moduleUrl(command);
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
    // A new query in the module URL runs the module again, but not its imports.
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
  /** Its output so far, standard output and error. */
  output(): string;
  /** @returns its exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>;
};

const runningPrograms = new Set<ChildProcess>();

/** Starts a program with exactly the given environment. */
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

/** @returns the exit code and the output. */
export async function runProgram(
  ...parameters: Parameters<typeof startProgram>
): Promise<{ readonly code: number | null; readonly output: string }> {
  const program = startProgram(...parameters);
  const code = await program.ended;
  return { code, output: program.output() };
}

/** Waits until `address` answers with `status`. @throws Error with the output of the program. */
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

/** Stops programs that a failed test left running. */
export async function stopPrograms(): Promise<void> {
  for (const child of runningPrograms) child.kill('SIGKILL');
  while (runningPrograms.size > 0) await setTimeout(20);
}
