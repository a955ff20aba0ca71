import { realpathSync } from 'node:fs';
import { restrictToOwner } from './owner-only-file.ts';

type Sqlite = { exec(statement: string): unknown; close(): unknown };

/**
 * Two processes that start at the same moment would each find the other's lock on its way, and both would fail. A process that has the lock
 * never releases it, so waiting for longer is in vain.
 */
const PATIENCE_MS = 500;

/**
 * Locks other services out of an SQLite file for the lifetime of this process: each caches state that another would change unnoticed. The
 * lock is a file beside it, which the operating system releases with the process. Programs that only read need no lock.
 * @param native a connection of the driver, whose constructor opens the lock file.
 * @returns a function that releases the lock.
 * @throws Error if another service has the file.
 */
export function lockSqlite(file: string, native: object): () => void {
  const Connection = native.constructor as new (path: string) => Sqlite;
  // The lock is the same for every name and link of the file.
  const lockFile = `${realpathSync(file)}-lock`;
  restrictToOwner(lockFile);
  const lock = new Connection(lockFile);
  try {
    lock.exec(`pragma busy_timeout = ${PATIENCE_MS}; begin exclusive`);
    return () => lock.close();
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error;
    throw new Error(`another service uses ${file}; several processes require PostgreSQL (DATABASE_URL)`, { cause: error });
  }
}

/** Locks the file of an SQLite address; does nothing for other databases. */
export function lockDatabaseFile(url: string, native: object): () => void {
  return url.startsWith('sqlite:') ? lockSqlite(url.slice('sqlite:'.length), native) : () => {};
}
