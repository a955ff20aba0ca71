import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes the database file, and keeps it and what SQLite has beside it from every other account of the machine.
 * @throws Error of the file system where the file cannot be made.
 */
export function keepToOwner(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  makeFile(file);
  // SQLite gives new ones the mode of the database; those of an earlier release had another.
  for (const path of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(path)) restrict(path);
}

/**
 * One that is there is not opened: to close it again would take every lock from the process that SQLite has on it (POSIX, `fcntl`),
 * and the next program that looks at the database would take itself for the last one and remove the log.
 */
function makeFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function restrict(path: string): void {
  try {
    chmodSync(path, 0o600);
  } catch (error) {
    // It belongs to another account, which has decided who may read it.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
  }
}
