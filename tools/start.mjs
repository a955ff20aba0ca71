/**
 * `npm start`: checks Node and the packages, builds `dist` if a source has changed, and runs the service with the options of
 * operation (the Dockerfile says why they are what they are). In package.json a POSIX shell replaces itself by this program (`exec`), so that
 * npm signals the service and waits for its end; the shell of Windows does not know `exec` and runs the second half.
 */
import '../bootstrap/check-node.mjs';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FORWARDED_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'];

const optionsFile = new URL('./start-options.json', import.meta.url);
const { environment, nodeOptions } = JSON.parse(readFileSync(optionsFile, 'utf8'));
// In a process of its own: the bundler leaves a child process behind.
const program = execFileSync(process.execPath, [fileURLToPath(new URL('./program.mjs', import.meta.url))], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
}).trim();
const args = [...nodeOptions, program, ...process.argv.slice(2)];
const env = { ...environment, ...process.env };

if (process.platform === 'win32' || process.execve === undefined) runAsChild();
// The service takes the place of this process, so that signals reach it and no memory is spent on a launcher.
else process.execve(process.execPath, [process.execPath, ...args], env);

function runAsChild() {
  const child = spawn(process.execPath, args, { stdio: 'inherit', env });
  for (const signal of FORWARDED_SIGNALS) process.on(signal, () => child.kill(signal));
  child.once('error', (error) => {
    console.error(error.message);
    process.exit(2);
  });
  child.once('exit', (code) => process.exit(code ?? 2));
}
