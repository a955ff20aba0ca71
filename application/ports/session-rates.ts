import type { SessionKind, SessionOutcome, SessionStatus } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';

/** Of the sessions that were made last. */
export type CountQuery = {
  readonly kinds: readonly SessionKind[];
  readonly since: Date;
  /** As of when an open session has expired. */
  readonly now: Date;
  /** Sessions that are read at most, the newest ones, of whatever kind: those of one kind may be rare among many others. */
  readonly limit: number;
};

export type SessionCount = {
  readonly kind: SessionKind;
  readonly status: SessionStatus;
  readonly count: number;
  /** When the oldest of them was made. */
  readonly oldest: Date;
};

export type CountedSessions = {
  readonly counts: readonly SessionCount[];
  /** When the oldest that was read was made, of whatever kind; undefined where all since then were read. */
  readonly from?: Date;
};

/** What came of the sessions that were made last, the newest first; of those of which something is on record. */
export type OutcomeQuery = {
  readonly kinds: readonly SessionKind[];
  readonly since: Date;
  /** Only of those that failed. */
  readonly failed: boolean;
  readonly limit: number;
  readonly after?: { readonly createdAt: Date; readonly id: string };
};

/** How the sessions of one tenant went. */
export type SessionRateReads = {
  sessionCounts(query: CountQuery): Promise<CountedSessions>;
  sessionOutcomes(query: OutcomeQuery): Promise<{ readonly id: SessionId; readonly createdAt: Date; readonly outcome: SessionOutcome }[]>;
};
