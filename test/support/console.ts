import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Builds the browser's part of the console, which a service that runs from its sources serves. */
export function buildConsole(): void {
  const program = fileURLToPath(new URL('../../tools/build.mjs', import.meta.url));
  execFileSync(process.execPath, [program, '--console'], { stdio: ['ignore', 'ignore', 'inherit'] });
}
