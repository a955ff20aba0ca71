import { join } from 'node:path';
import { build, isBuilt, ROOT } from './build.mjs';

/**
 * `npm start` asks for the program that it is to run: `dist`, which is made anew when a source has changed since. Where
 * that cannot be, in a folder that is read-only or without the packages of developers, the sources run as they are.
 */
const QUIET = ['ERR_MODULE_NOT_FOUND', 'EROFS', 'EACCES', 'EPERM'];

async function program() {
  try {
    if (!isBuilt()) await build();
    return join(ROOT, 'dist/bootstrap/main.js');
  } catch (error) {
    if (!QUIET.includes(error.code)) console.error(`The sources run as they are: ${error.message}`);
    return join(ROOT, 'bootstrap/main.ts');
  }
}

console.log(await program());
