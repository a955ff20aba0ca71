import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from './compile-cache.ts';

export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };
type Environment = Readonly<Record<string, string>>;

const addressOf = (command: string) => new URL(`../../bootstrap/${command}.ts`, import.meta.url);

/** A program of `bootstrap/` as a process of its own. */
export function runProcess(
  command: string,
  args: readonly string[],
  environment: Environment,
): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { ...bareEnvironment(), ...environment };
    const script = fileURLToPath(addressOf(command));
    execFile(process.execPath, [script, ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

class Exit {
  readonly code: number;

  constructor(code: number) {
    this.code = code;
  }
}

let runs = 0;
let before: Promise<unknown> = Promise.resolve();

/**
 * The same within this process, which has loaded all that it needs: another process would take most of a second for that.
 * That a command works as a process is to be shown by `runProcess` once.
 */
export function runCommand(
  command: string,
  args: readonly string[],
  environment: Environment,
): Promise<Ended> {
  const run = before.then(() => runHere(command, args, environment));
  before = run.catch(() => {});
  return run;
}

async function runHere(command: string, args: readonly string[], environment: Environment): Promise<Ended> {
  const { argv, env, exitCode, exit } = process;
  const { log, error } = console;
  const said = { stdout: '', stderr: '' };
  const address = addressOf(command);
  try {
    process.argv = [process.execPath, fileURLToPath(address), ...args];
    process.env = { ...bareEnvironment(), ...environment };
    process.exitCode = undefined;
    process.exit = (code) => {
      throw new Exit(Number(code));
    };
    console.log = (text: string) => {
      said.stdout += `${text}\n`;
    };
    console.error = (text: string) => {
      said.stderr += `${text}\n`;
    };
    // Another address is another module: its statements run again, those of what it imports do not.
    await import(`${address}?run=${++runs}`);
    return { code: Number(process.exitCode ?? 0), ...said };
  } catch (thrown) {
    if (thrown instanceof Exit) return { code: thrown.code, ...said };
    throw thrown;
  } finally {
    Object.assign(process, { argv, env, exitCode, exit });
    Object.assign(console, { log, error });
  }
}
