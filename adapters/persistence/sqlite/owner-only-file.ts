import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates the database file if there is none, and makes it and its `-wal` and `-shm` files readable and writable by their owner only.
 * @throws Error of the file system if the file cannot be created.
 */
export function restrictToOwner(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  createFile(file);
  // SQLite creates both files with the mode of the database file, which was wider in earlier releases.
  for (const path of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(path)) restrict(path);
}

/**
 * An existing file is not opened: closing it would release all POSIX locks (`fcntl`) that SQLite holds on it in this process. The next
 * program that opens the database would then consider itself the only user, and remove the WAL when it closes.
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
