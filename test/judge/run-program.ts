import { spawn } from 'node:child_process';

export type Ended = { readonly code: number | undefined; readonly output: string };

/** Runs a program to its end, or for so long. @returns no code where it was ended. */
export function runProgram(
  program: string,
  options: readonly string[],
  seconds: number,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, options, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment,
      detached: true,
    });
    // It may have started others, which end with it.
    const timer = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), seconds * 1000);
    let output = '';
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-MAX_OUTPUT);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code: signal === null ? (code ?? 1) : undefined, output });
    });
  });
}

/** The end of it says what went wrong. */
const MAX_OUTPUT = 100_000;
