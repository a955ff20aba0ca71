import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

/**
 * The file of SQLite that is yet to be made. A mistyped `DATABASE_URL` begins with an empty service, so the log says it.
 * @returns undefined where there is one, and for other databases.
 */
export function newFileOf(url: string): string | undefined {
  const file = url.startsWith('sqlite:') && url !== 'sqlite::memory:' ? url.slice('sqlite:'.length) : '';
  return file === '' || existsSync(file) ? undefined : resolve(file);
}
