import type { SessionKind, SessionStatus } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** A position in the event log of all sessions, in relay order. */
export type RelayCursor = { readonly position: number; readonly tenantId: string; readonly sessionId: string; readonly version: number };

export type LoggedEvent = {
  readonly tenantId: TenantId;
  readonly sessionId: SessionId;
  /** Undefined while a tenant is being removed: the session was already removed. */
  readonly kind: SessionKind | undefined;
  readonly version: number;
  readonly status: SessionStatus;
  readonly at: Date;
  /** The log is relayed up to this cursor once this event and all earlier ones of the same cursor are relayed. */
  readonly cursor: RelayCursor;
};

export type LogBatch = {
  readonly after: RelayCursor;
  /** Events after the cursor; those of one session in order. */
  readonly events: readonly LoggedEvent[];
  /** The database reuses sequence numbers: it was restored from a dump. `renumber` fixes that. */
  readonly needsRenumbering: boolean;
};

/**
 * Relays the event log of all sessions: one process at a time, every event at least once, those of a session in order.
 * An event that is committed late is not skipped.
 */
export type EventLog = {
  /** Events are logged for the relay from now on. Idempotent. */
  startRelay(): Promise<void>;
  /**
   * Acquires or renews the lease for the relay.
   * @param limit number of events, exceeded only for events that must not be relayed after one of them.
   * @returns undefined when another process holds the lease.
   */
  nextEvents(holder: string, leaseSeconds: number, limit: number): Promise<LogBatch | undefined>;
  /** @returns false, with nothing changed, when another process moved the cursor meanwhile. */
  advanceRelay(from: RelayCursor, to: RelayCursor): Promise<boolean>;
  /** Gives events sequence numbers that the database issues from now on; in bounded batches. @returns the number of changed events. */
  renumber(limit: number): Promise<number>;
  /** Releases the lease, so that another process can acquire it now. */
  releaseRelay(holder: string): Promise<void>;
};
