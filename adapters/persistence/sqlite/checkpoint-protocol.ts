import { statSync } from 'node:fs';

/** Identities of a database file and of its write-ahead log. A path is not enough: another file can take it while a connection is open. */
export type DatabaseFiles = { readonly database: string; readonly log: string };

export type CheckpointThreadData = { readonly file: string; readonly files: DatabaseFiles };

export type CheckpointRequest = 'checkpoint' | 'close';
export type CheckpointReply = 'done';

/** Reads the identities without opening the files, since closing a file would release the locks that SQLite has on it (POSIX). */
export function filesOf(file: string): DatabaseFiles {
  const identityOf = (path: string) => {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}/${ino}`;
  };
  return { database: identityOf(file), log: identityOf(`${file}-wal`) };
}

export const isSameFiles = (a: DatabaseFiles, b: DatabaseFiles): boolean => a.database === b.database && a.log === b.log;
