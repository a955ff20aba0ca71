import type { SessionKind, SessionOutcome, SessionStatus } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';

export type CountQuery = {
  readonly kinds: readonly SessionKind[];
  readonly since: Date;
  /** Reference time for the expiry of open sessions. */
  readonly now: Date;
  /** Maximum number of sessions that are read, newest first and of any kind: sessions of one kind may be rare among others. */
  readonly limit: number;
};

export type SessionCount = {
  readonly kind: SessionKind;
  readonly status: SessionStatus;
  readonly count: number;
  /** Creation time of the oldest of them. */
  readonly oldest: Date;
};

export type CountedSessions = {
  readonly counts: readonly SessionCount[];
  /** Creation time of the oldest session that was read, of any kind; undefined if all since then were read. */
  readonly from?: Date;
};

/** A query for the recorded outcomes of the most recent sessions, newest first. */
export type OutcomeQuery = {
  readonly kinds: readonly SessionKind[];
  readonly since: Date;
  readonly failed: boolean;
  readonly limit: number;
  readonly after?: { readonly createdAt: Date; readonly id: string };
};

/** Outcome statistics of the sessions of one tenant. */
export type SessionRateReads = {
  sessionCounts(query: CountQuery): Promise<CountedSessions>;
  sessionOutcomes(query: OutcomeQuery): Promise<{ readonly id: SessionId; readonly createdAt: Date; readonly outcome: SessionOutcome }[]>;
};
