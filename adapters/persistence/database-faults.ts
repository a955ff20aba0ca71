import { StoreUnavailableError, StoreUnwritableError } from '../../application/ports/store.ts';

/** Network error codes of a server that cannot be reached. */
export const UNREACHABLE = ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'];

/**
 * Codes of a database that cannot be written. SQLite: the disk is full, the database is locked or read-only (also extended result codes).
 * SQLSTATE (PostgreSQL appendix A): the disk is full, or the transaction is read-only, as on a standby.
 */
const UNWRITABLE = /^(SQLITE_(FULL|BUSY|READONLY)|53100|25006)/;
/**
 * Codes of a database that cannot be reached. SQLite: an I/O error, or a file that cannot be opened. SQLSTATE: connection exceptions (08),
 * shutdown, start-up or an idle session (57P0x), an idle transaction that timed out (25P03), no memory or connection slot left (53). Node:
 * a closed connection (EPIPE).
 */
const UNAVAILABLE = /^(SQLITE_(IOERR|CANTOPEN)|08...$|57P0[1-5]$|25P03$|53...$|EPIPE$)/;
/** SQLSTATE of a statement that exceeded its timeout. */
const STATEMENT_TIMEOUT = '57014';
/** Messages of the PostgreSQL driver for errors without a code. */
const LOST_CONNECTION =
  /Connection terminated|connection error and is not queryable|Client was closed|timeout exceeded when trying to connect/;

/** SQLSTATE with which `commit_change_1` reports the part of a change whose expectation failed. */
const EXPECTATION_FAILED = 'VC001';

/** Returns true if a change was rejected because its expectation failed: nothing of it was applied, and the connection is still usable. */
export function isExpectationFailure(error: unknown): boolean {
  return (error as { code?: unknown }).code === EXPECTATION_FAILED;
}

/** SQLSTATEs of a rejected statement: all except those of a lost connection (08, 57P) and of faults of the server (58, F0, XX). */
const STATEMENT_ERROR = /^(?!08|57P|58|F0|XX)[0-9A-Z]{5}$/;

/** Deadlock and serialization failure. */
const CONCURRENCY_FAILURES = ['40P01', '40001'];

/** Returns true if the transaction was rolled back because of a concurrent change and may be retried. */
export function isConcurrencyFailure(error: unknown): boolean {
  return CONCURRENCY_FAILURES.includes(String((error as { readonly code?: unknown }).code)) || isStalePlan(error);
}

/**
 * Returns true if a prepared statement was rejected because a migration changed the columns of its result, as when a newer release starts
 * beside this process ("cached plan must not change result type"). The message may be translated, the function that reports it is not.
 */
export function isStalePlan(error: unknown): boolean {
  const { code, routine } = error as { readonly code?: unknown; readonly routine?: unknown };
  return code === '0A000' && routine === 'RevalidateCachedQuery';
}

/** Returns true if the server rejected the statement: nothing of it was applied, and the connection is still usable. */
export function isStatementError(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && STATEMENT_ERROR.test(code);
}

/**
 * Runs `work` on the database.
 * @throws StoreUnavailableError in place of the driver's error if the database cannot be reached or written.
 */
export async function mapDatabaseErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toStoreError(error);
  }
}

/** Runs synchronous work like `mapDatabaseErrors`. */
export function mapDatabaseErrorsSync<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toStoreError(error);
  }
}

/**
 * @returns StoreUnwritableError if the database cannot be written, StoreUnavailableError if it cannot be reached or a statement exceeded
 * its timeout, any other error unchanged.
 */
export function toStoreError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailableError) return error;
  const { code } = error as { readonly code?: unknown };
  const errorCode = typeof code === 'string' ? code : '';
  if (UNWRITABLE.test(errorCode)) return new StoreUnwritableError('the database cannot be written', { cause: error });
  if (errorCode === STATEMENT_TIMEOUT) return new StoreUnavailableError('the database takes too long', { cause: error });
  if (UNAVAILABLE.test(errorCode) || UNREACHABLE.includes(errorCode) || LOST_CONNECTION.test(error.message)) {
    return new StoreUnavailableError('the database cannot be reached', { cause: error });
  }
  return error;
}
