import { StoreUnavailable, StoreUnwritable } from '../../application/ports/store.ts';

/** What the network says of a server that is not there, or not any more. */
export const UNREACHABLE = ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'];

/**
 * Result codes of SQLite, with their extended ones, and classes of SQLSTATE (PostgreSQL appendix A): connection exceptions, shut down or
 * starting, no such room or memory or place for a connection; a standby; a transaction that nobody went on with.
 */
const UNWRITABLE = /^(SQLITE_(FULL|BUSY|READONLY)|53100|25006)/;
const UNAVAILABLE = /^(SQLITE_(IOERR|CANTOPEN)|08...$|57P0[1-5]$|25P03$|53...$|EPIPE$)/;
/** PostgreSQL gave up a statement that took longer than it may. */
const TOO_SLOW = '57014';
/** The driver for PostgreSQL says these without a code. */
const LOST = /Connection terminated|connection error and is not queryable|Client was closed|timeout exceeded when trying to connect/;

/** By which `commit_change_1` names the part that did not find what it expects. */
const UNEXPECTED = 'VC001';

/** Whether a change was refused; nothing of it has happened then, and the connection is as good as before. */
export function isUnexpected(error: unknown): boolean {
  return (error as { code?: unknown }).code === UNEXPECTED;
}

/** SQLSTATE of a statement that failed; not those with which a server ends a connection, or stands there broken itself. */
const REFUSAL = /^(?!08|57P|58|F0|XX)[0-9A-Z]{5}$/;

/** Two transactions that wait for each other, or cannot have come one after the other. */
const IN_EACH_OTHERS_WAY = ['40P01', '40001'];

/** Whether it was undone for the sake of another one, and may be tried again. */
export function isInTheWay(error: unknown): boolean {
  return IN_EACH_OTHERS_WAY.includes(String((error as { readonly code?: unknown }).code));
}

/** Whether the server refused a statement, of which nothing has happened then, and goes on with the connection. */
export function isRefusal(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && REFUSAL.test(code);
}

/**
 * Runs `work` on the database.
 * @throws StoreUnavailable in place of what the driver throws when the database cannot be reached or written.
 */
export async function reaching<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw unavailableFor(error);
  }
}

/** Like `reaching`, for what does not give up the thread. */
export function reachingAtOnce<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw unavailableFor(error);
  }
}

/** @returns StoreUnavailable for such a fault, anything else as it is. */
export function unavailableFor(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  const { code } = error as { readonly code?: unknown };
  const known = typeof code === 'string' ? code : '';
  if (UNWRITABLE.test(known)) return new StoreUnwritable('the database cannot be written', { cause: error });
  if (known === TOO_SLOW) return new StoreUnavailable('the database takes too long', { cause: error });
  if (UNAVAILABLE.test(known) || UNREACHABLE.includes(known) || LOST.test(error.message)) {
    return new StoreUnavailable('the database cannot be reached', { cause: error });
  }
  return error;
}
