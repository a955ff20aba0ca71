import { StoreUnavailableError, StoreUnwritableError } from '../../application/ports/store.ts';

/** Network error codes of a server that cannot be reached. */
export const UNREACHABLE = ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'];

/**
 * Result codes of SQLite, with their extended codes, and classes of SQLSTATE (PostgreSQL appendix A): connection exceptions, shutdown or
 * start-up; no disk space, memory or connection slot left; a standby; an idle transaction that timed out.
 */
const UNWRITABLE = /^(SQLITE_(FULL|BUSY|READONLY)|53100|25006)/;
const UNAVAILABLE = /^(SQLITE_(IOERR|CANTOPEN)|08...$|57P0[1-5]$|25P03$|53...$|EPIPE$)/;
/** SQLSTATE of a statement that exceeded its timeout. */
const STATEMENT_TIMEOUT = '57014';
/** Messages of the PostgreSQL driver for errors without a code. */
const LOST_CONNECTION =
  /Connection terminated|connection error and is not queryable|Client was closed|timeout exceeded when trying to connect/;

/** SQLSTATE with which `commit_change_1` reports the part of a change whose expectation failed. */
const EXPECTATION_FAILED = 'VC001';

/** Returns true if a change was rejected: nothing of it was applied, and the connection is still usable. */
export function isExpectationFailure(error: unknown): boolean {
  return (error as { code?: unknown }).code === EXPECTATION_FAILED;
}

/** SQLSTATE of a failed statement, without those by which a server ends a connection or reports an internal failure. */
const STATEMENT_ERROR = /^(?!08|57P|58|F0|XX)[0-9A-Z]{5}$/;

/** Deadlock and serialization failure. */
const CONCURRENCY_FAILURES = ['40P01', '40001'];

/** Returns true if the transaction was rolled back because of a concurrent one and may be retried. */
export function isConcurrencyFailure(error: unknown): boolean {
  return CONCURRENCY_FAILURES.includes(String((error as { readonly code?: unknown }).code));
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

/** @returns StoreUnavailableError for a connection fault, any other error unchanged. */
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
