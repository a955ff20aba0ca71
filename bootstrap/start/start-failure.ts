import { FOREIGN_SECRET } from '../../adapters/persistence/opening/foreign-secret.ts';
import { SettingsError } from '../../config/settings.ts';
import type { FirstStart } from './first-start.ts';

/** A worker could not start. The message is complete, and is meant for the operator. */
export class WorkerError extends Error {}

/**
 * @param master the location of the master secret of this start.
 * @returns the message for an operator whose start failed.
 */
export function startFailureMessage(error: unknown, master?: FirstStart['master']): string {
  const message = messageOf(error);
  if (master === undefined || !message.includes(FOREIGN_SECRET)) return message;
  const { file, isNew } = master;
  // Otherwise an operator who was just told to keep these secrets would search for a fault in them.
  return isNew
    ? `${message}.\nThe secrets in ${file} were just generated and are not those of this database. Set MASTER_SECRET to ` +
        'that of the other processes on it, and AUTH_CLIENT_ID, AUTH_CLIENT_SECRET and PUBLIC_URL as well; ' +
        `${file} may be deleted`
    : `${message}.\nThis start took its MASTER_SECRET from ${file}; set the one of the other processes on this database`;
}

function messageOf(error: unknown): string {
  if (error instanceof WorkerError) return error.message;
  return error instanceof SettingsError ? error.message : `Vidimus could not start: ${explain(error)}`;
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  if (code === 'EADDRINUSE') {
    const { port, setting = 'PORT' } = error as { port?: unknown; setting?: string };
    return `port ${port} is in use; set ${setting} to another one`;
  }
  if (code === 'ENOTFOUND' || code === 'EADDRNOTAVAIL') return `${error.message}; check HOST`;
  if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'EACCES' || code === 'EROFS') return `${error.message}; check DATA_FOLDER`;
  return error.message;
}
