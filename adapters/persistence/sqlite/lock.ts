import { realpathSync } from 'node:fs';
import { keepToOwner } from './own-file.ts';

type Sqlite = { exec(statement: string): unknown; close(): unknown };

/**
 * Of two that ask at the same moment each would else find the other on its way, and both would be refused. One that has the lock
 * does not let go of it, so nobody waits in vain for longer.
 */
const PATIENCE_MS = 500;

/**
 * Keeps other services from an SQLite file as long as this process lives: what one of them remembers, another would change without its
 * knowledge. The lock is a file beside it, which the operating system lets go of with the process. Programs that only read need none.
 * @param native a connection of the driver, which knows how to make others.
 * @returns what lets go of it.
 * @throws Error when another service has the file.
 */
export function lockSqlite(file: string, native: object): () => void {
  const Connection = native.constructor as new (path: string) => Sqlite;
  // By whatever name or link somebody calls it.
  const beside = `${realpathSync(file)}-lock`;
  keepToOwner(beside);
  const lock = new Connection(beside);
  try {
    lock.exec(`pragma busy_timeout = ${PATIENCE_MS}; begin exclusive`);
    return () => lock.close();
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error;
    throw new Error(`another service has ${file}; several at once need PostgreSQL (DATABASE_URL)`, { cause: error });
  }
}

/** The same by its address; nothing of other databases. */
export function holdFile(url: string, native: object): () => void {
  return url.startsWith('sqlite:') ? lockSqlite(url.slice('sqlite:'.length), native) : () => {};
}
