import type { EventLog, LogBatch, LoggedEvent, RelayCursor } from '../ports/event-log.ts';
import type { EventPublisher, SessionNotice } from '../ports/event-publisher.ts';
import type { Log } from '../ports/log.ts';
import type { Random } from '../ports/random.ts';

/** Maximum number of events in flight to the broker. */
const BATCH = 500;
/** Each run renews the lease. A process that crashes delays the relay for so long. */
const LEASE_SECONDS = 5;
/** Number of rejections, at growing intervals, after which an event is given up for the rejecting queues. */
const MAX_REFUSALS = 5;

type Ports = { readonly eventLog: EventLog; readonly publisher: EventPublisher; readonly log: Log; readonly random: Pick<Random, 'token'> };

/** `elsewhere`: another process relays, or the broker is unavailable; `refused`: to be retried later. */
export type RelayResult = 'elsewhere' | 'refused' | 'all' | 'more';

/**
 * Relays the event log to other systems. The cursor moves after the broker confirmed that it stored the events, so each event
 * arrives at least once, and the events of a session in order.
 */
export class RelayEvents {
  readonly #ports: Ports;
  readonly #holder: string;
  #isHolder = false;
  #refusals = 0;
  #isUnsure = false;

  constructor(ports: Ports) {
    this.#ports = ports;
    this.#holder = ports.random.token();
  }

  /** Enables the log for the relay, as soon as there is a broker. */
  begin(): Promise<void> {
    return this.#ports.eventLog.startRelay();
  }

  /** Relays one batch. @throws Error when it is unknown what arrived; then the next call sends it again. */
  async execute(): Promise<RelayResult> {
    const { eventLog, publisher } = this.#ports;
    if (!publisher.isReady) {
      // Another process may still be connected to a broker.
      if (this.#isHolder) await this.release();
      return 'elsewhere';
    }
    const batch = await eventLog.nextEvents(this.#holder, LEASE_SECONDS, BATCH);
    this.#isHolder = batch !== undefined;
    if (batch === undefined) return 'elsewhere';
    if (batch.needsRenumbering) return this.#renumber();
    const { after: cursor, events } = batch;
    if (events.length === 0) return 'all';
    const notices = events.flatMap(noticeOf);
    const acceptedCount = await publisher.publish(notices);
    this.#logRecovery();
    if (acceptedCount < notices.length) return this.#handleRejection(batch, notices[acceptedCount]);
    this.#refusals = 0;
    const isMoved = await eventLog.advanceRelay(cursor, events[events.length - 1]?.cursor ?? cursor);
    // After a concurrent move of the cursor the next run finds out who holds the lease.
    return !isMoved || events.length >= BATCH ? 'more' : 'all';
  }

  /** Releases the lease, so that another process can continue. */
  async release(): Promise<void> {
    await this.#ports.eventLog.releaseRelay(this.#holder);
    this.#isHolder = false;
  }

  /** Logs the failure of a run, once until the next success. */
  logFailure(error: unknown): void {
    if (!this.#isUnsure) this.#ports.log.warn('events could not be published; they are sent again', reasonOf(error));
    this.#isUnsure = true;
  }

  #logRecovery(): void {
    if (this.#isUnsure) this.#ports.log.info('events are published again');
    this.#isUnsure = false;
  }

  /** Handles a rejection: a queue that is full may be declared to reject. */
  async #handleRejection(batch: LogBatch, rejectedNotice: SessionNotice | undefined): Promise<RelayResult> {
    const { eventLog, log } = this.#ports;
    const { after, events } = batch;
    const index = events.findIndex(
      ({ sessionId, version }) => sessionId === rejectedNotice?.sessionId && version === rejectedNotice.version,
    );
    const logFields = { tenantId: rejectedNotice?.tenantId, sessionId: rejectedNotice?.sessionId, version: rejectedNotice?.version };
    if (++this.#refusals >= MAX_REFUSALS) {
      // All later events of the batch were sent as often, so they are given up as well.
      log.error('events are skipped for the queues that reject them; the first one is named', logFields);
      this.#refusals = 0;
      await eventLog.advanceRelay(after, events[events.length - 1]?.cursor ?? after);
      return 'more';
    }
    log.warn('a queue rejects an event, which is sent again; see docs/reference/events.md', logFields);
    const cursor = cursorBefore(events, index);
    if (cursor !== undefined && (await eventLog.advanceRelay(after, cursor))) this.#refusals = 0;
    return 'refused';
  }

  async #renumber(): Promise<RelayResult> {
    const { eventLog, log } = this.#ports;
    const count = await eventLog.renumber(BATCH);
    if (count === 0) {
      log.warn('the database counts from lower numbers than before, as after a restore: published events may be repeated');
    }
    return 'more';
  }
}

/** @returns the last cursor before the event at `index` behind which no event is skipped. */
function cursorBefore(events: readonly LoggedEvent[], index: number): RelayCursor | undefined {
  const rejectedCursor = events[index]?.cursor;
  return events.slice(0, Math.max(0, index)).findLast(({ cursor }) => !isSame(cursor, rejectedCursor))?.cursor;
}

function isSame(cursor: RelayCursor, otherCursor: RelayCursor | undefined): boolean {
  return (
    cursor.position === otherCursor?.position &&
    cursor.tenantId === otherCursor.tenantId &&
    cursor.sessionId === otherCursor.sessionId &&
    cursor.version === otherCursor.version
  );
}

/** Sessions of a tenant that is being removed are not reported. */
function noticeOf({ kind, cursor: _place, ...event }: LoggedEvent): readonly SessionNotice[] {
  return kind === undefined ? [] : [{ ...event, kind }];
}

function reasonOf(error: unknown) {
  return { reason: error instanceof Error ? error.message.slice(0, 200) : String(error) };
}
