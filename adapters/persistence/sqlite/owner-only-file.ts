import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates the database file, and restricts it and the files that SQLite has beside it to their owner.
 * @throws Error of the file system if the file cannot be created.
 */
export function restrictToOwner(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  createFile(file);
  // SQLite gives new files the mode of the database; files of an earlier release had another.
  for (const path of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(path)) restrict(path);
}

/**
 * Does not open an existing file: closing it would release every lock that SQLite in this process has on it (POSIX, `fcntl`), and the next
 * program that opens the database would take itself for the last one and remove the log.
 */
function createFile(file: string): void {
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
    // The file belongs to another account, which decides who may read it.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
  }
}
