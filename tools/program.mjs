import { join } from 'node:path';
import { build, isBuilt, ROOT } from './build.mjs';

const EXPECTED_FAILURES = ['ERR_MODULE_NOT_FOUND', 'EROFS', 'EACCES', 'EPERM'];

/**
 * Builds `dist` if a source has changed since the last build.
 * @returns the path of the program that `npm start` runs: `dist`, or the sources when `dist` cannot be built, such as in a read-only
 *   folder or without the development packages.
 */
export async function findProgram() {
  try {
    if (!isBuilt()) await build();
    return join(ROOT, 'dist/bootstrap/main.js');
  } catch (error) {
    if (!EXPECTED_FAILURES.includes(error.code)) console.error(`dist cannot be built, so the sources run as they are: ${error.message}`);
    return join(ROOT, 'bootstrap/main.ts');
  }
}

if (process.argv[1]?.endsWith('program.mjs')) console.log(await findProgram());
