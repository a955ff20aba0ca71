/**
 * Starts the service with the options that it is operated with, in plain JavaScript: `npm start`, `npx vidimus start`, the image,
 * Compose, the chart and the systemd unit all start it here.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';

export const START_OPTIONS = {
  // Memory for a password hash goes back to the system when the hash is done, whichever thread made it.
  environment: { MALLOC_MMAP_THRESHOLD_: '1048576', MALLOC_ARENA_MAX: '2' },
  // A young generation that requests fit into: a larger one saves nothing more, and takes memory.
  nodeOptions: ['--max-semi-space-size=8'],
};

const ENV_FILE = '--env-file=';
const FORWARDED_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/**
 * The service takes the place of this process, so that signals reach it and no memory is spent on a launcher. Where a process cannot be
 * replaced, as on Windows, it is a child.
 * @param args `--env-file=<file>` is for Node, which reads the file for the service alone: a list of processes does not show its secrets.
 */
export function startService(node, program, args, environment = {}) {
  const files = args.filter((arg) => arg.startsWith(ENV_FILE));
  const rest = args.filter((arg) => !files.includes(arg));
  for (const file of files.map((arg) => arg.slice(ENV_FILE.length))) assertReadable(file);
  const all = [...START_OPTIONS.nodeOptions, ...files, program, ...rest];
  const env = { ...START_OPTIONS.environment, ...process.env, ...environment };
  if (process.platform === 'win32' || process.execve === undefined) runAsChild(node, all, env);
  else process.execve(node, [node, ...all], env);
}

/** Node names neither the option nor what to do. */
function assertReadable(file) {
  try {
    accessSync(file, constants.R_OK);
  } catch {
    console.error(`--env-file=${file}: this file cannot be read. Name a file that has a line NAME=value for each setting.`);
    process.exit(2);
  }
}

/** Passes signals to the child, and ends when it has ended, with its exit code. */
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
