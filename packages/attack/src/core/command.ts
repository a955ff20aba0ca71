import { execFile } from 'node:child_process';

const PATIENCE_MS = 30_000;

/** Runs a command of the operator. @returns its last line of output. */
export function runCommand(command: string, environment: Readonly<Record<string, string>> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: PATIENCE_MS, maxBuffer: 1024 * 1024, env: { ...process.env, ...environment } };
    execFile('/bin/sh', ['-c', command], options, (error, stdout) => {
      // Command and output may contain secrets, so only the failure is reported.
      if (error !== null) reject(new Error(`a command that was given failed (${error.code ?? error.signal})`));
      else resolve(stdout.trim().split('\n').at(-1)?.trim() ?? '');
    });
  });
}
