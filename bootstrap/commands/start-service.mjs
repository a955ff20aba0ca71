/**
 * Starts the service with its operating options, in plain JavaScript: `npm start`, `npx vidimus start`, the image, Compose, the chart
 * and the systemd unit all use this file.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';

export const START_OPTIONS = {
  // The memory of a password hash is returned to the system when the hash is done, in any thread.
  environment: { MALLOC_MMAP_THRESHOLD_: '1048576', MALLOC_ARENA_MAX: '2' },
  // Requests fit into a young generation of this size; a larger one would only use more memory.
  nodeOptions: ['--max-semi-space-size=8'],
};

const ENV_FILE = '--env-file=';
const FORWARDED_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/**
 * The service replaces this process, so that signals reach it and no launcher uses memory. Where a process cannot be replaced, such as on
 * Windows, the service is a child process.
 * @param args `--env-file=<file>` is passed to Node, which reads the file: a list of processes does not show its secrets.
 */
export function startService(node, program, args, environment = {}) {
  const files = args.filter((arg) => arg.startsWith(ENV_FILE));
  const serviceArgs = args.filter((arg) => !files.includes(arg));
  for (const file of files.map((arg) => arg.slice(ENV_FILE.length))) assertReadable(file);
  const nodeArgs = [...START_OPTIONS.nodeOptions, ...files, program, ...serviceArgs];
  const env = { ...START_OPTIONS.environment, ...process.env, ...environment };
  if (process.platform === 'win32' || process.execve === undefined) runAsChild(node, nodeArgs, env);
  else process.execve(node, [node, ...nodeArgs], env);
}

/** Node itself would report neither the option nor the remedy. */
function assertReadable(file) {
  try {
    accessSync(file, constants.R_OK);
  } catch {
    console.error(`--env-file=${file}: this file cannot be read. Use a file with a line NAME=value for each setting.`);
    process.exit(2);
  }
}

/** Passes signals to the child, and ends after it with its exit code. */
export function runAsChild(node, args, env) {
  const child = spawn(node, args, { stdio: 'inherit', env });
  for (const signal of FORWARDED_SIGNALS)
    process.on(signal, () => {
      // A terminal signals both processes.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    });
  child.once('error', (error) => {
    console.error(error.message);
    process.exit(2);
  });
  child.once('exit', (code) => process.exit(code ?? 2));
}
