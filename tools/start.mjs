/**
 * `npm start`: checks Node and the packages, builds `dist` if a source has changed, and runs the service with the options of
 * operation (the Dockerfile says why they are what they are). It needs no shell, so it works on Windows as well.
 */
import '../bootstrap/check-node.mjs';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

const FORWARDED_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'];

// Loaded after the check: an older Node could not load it, and its error would not say what to do.
const { findProgram } = await import('./program.mjs');
const optionsFile = new URL('./start-options.json', import.meta.url);
const { environment, nodeOptions } = JSON.parse(readFileSync(optionsFile, 'utf8'));
const program = await findProgram();
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
