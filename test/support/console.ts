import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isBuilt } from '../../tools/build.mjs';

/** Builds the browser's part of the console, which a service that runs from its sources serves, unless `dist` has that of these sources. */
export function buildConsole(): void {
  if (isBuilt()) return;
  const program = fileURLToPath(new URL('../../tools/build.mjs', import.meta.url));
  execFileSync(process.execPath, [program, '--console'], { stdio: ['ignore', 'ignore', 'inherit'] });
}
