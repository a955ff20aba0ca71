import { SettingsError } from '../config/settings.ts';

/** A worker could not start; the message is for the operator as it is. */
export class WorkerFailure extends Error {}

/** What an operator is told of a start that failed. */
export function startFailure(error: unknown): string {
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
  if (code === 'ENOTFOUND' || code === 'EADDRNOTAVAIL') {
    return `${error.message}; check HOST`;
  }
  if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'EACCES' || code === 'EROFS') {
    return `${error.message}; check DATA_FOLDER`;
  }
  return error.message;
}
