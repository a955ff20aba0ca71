import type { SessionKind, SessionStatus } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** A place in the event log of all sessions, in the order in which it is handed on. */
export type LogPlace = { readonly position: number; readonly tenantId: string; readonly sessionId: string; readonly version: number };

/** One change of a session's status. */
export type LoggedEvent = {
  readonly tenantId: TenantId;
  readonly sessionId: SessionId;
  /** Undefined while a tenant is being removed: its session has gone already. */
  readonly kind: SessionKind | undefined;
  /** Of the session after the change. */
  readonly version: number;
  readonly status: SessionStatus;
  readonly at: Date;
  /** The log is handed on up to here when this event and all before it of the same place are. */
  readonly place: LogPlace;
};

export type LogBatch = {
  /** Up to where the log was handed on. */
  readonly after: LogPlace;
  /** What follows; the events of a session in their order. */
  readonly events: readonly LoggedEvent[];
  /** The database gives numbers that it gave before: it was restored from a dump. `renumber` mends that. */
  readonly isBehind: boolean;
};

/**
 * Hands on the event log of all sessions: by one process at a time, every event at least once, those of a session in their
 * order. An event that is committed late is not passed over.
 */
export type EventLog = {
  /** What is logged from now on is to be handed on; nothing happens when this was said before. */
  beginHandingOn(): Promise<void>;
  /**
   * Takes or keeps the lease for handing on.
   * @param limit of events, but for those which must not come later than one of them.
   * @returns undefined when another process has the lease.
   */
  nextEvents(holder: string, leaseSeconds: number, limit: number): Promise<LogBatch | undefined>;
  /** @returns false when another process moved the place meanwhile; then nothing changed. */
  handedOn(from: LogPlace, to: LogPlace): Promise<boolean>;
  /** Gives events numbers that the database gives from now on; in bounded batches. @returns how many got another one. */
  renumber(limit: number): Promise<number>;
  /** Lets another process take the lease now. */
  leaveEvents(holder: string): Promise<void>;
};
