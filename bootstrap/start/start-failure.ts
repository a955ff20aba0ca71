import { FOREIGN_SECRET } from '../../adapters/persistence/opening/foreign-secret.ts';
import { SettingsError } from '../../config/settings.ts';
import type { FirstStart } from './first-start.ts';

/** A worker could not start; the message is for the operator as it is. */
export class WorkerFailure extends Error {}

/**
 * What an operator is told of a start that failed.
 * @param master where the master secret of this start stands.
 */
export function startFailure(error: unknown, master?: FirstStart['master']): string {
  const failure = failureOf(error);
  if (master === undefined || !failure.includes(FOREIGN_SECRET)) return failure;
  const { file, isNew } = master;
  // Whoever was just told to keep these secrets would look for the fault in them.
  return isNew
    ? `${failure}.\nThe secrets in ${file} were generated just now and are not those of this database. Set MASTER_SECRET to ` +
        'that of the other processes on it, and AUTH_CLIENT_ID, AUTH_CLIENT_SECRET and PUBLIC_URL as well; ' +
        `${file} may be deleted`
    : `${failure}.\nThis start took its MASTER_SECRET from ${file}; set the one of the other processes on this database`;
}

function failureOf(error: unknown): string {
  if (error instanceof WorkerFailure) return error.message;
  return error instanceof SettingsError ? error.message : `Vidimus could not start: ${explain(error)}`;
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  if (code === 'EADDRINUSE') {
    const { port, setting = 'PORT' } = error as { port?: unknown; setting?: string };
    return `port ${port} is taken; set ${setting} to another one`;
  }
  if (code === 'ENOTFOUND' || code === 'EADDRNOTAVAIL') return `${error.message}; check HOST`;
  if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'EACCES' || code === 'EROFS') return `${error.message}; check DATA_FOLDER`;
  return error.message;
}
