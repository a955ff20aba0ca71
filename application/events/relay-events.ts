import type { EventLog, LogBatch, LoggedEvent, LogPlace } from '../ports/event-log.ts';
import type { EventPublisher, SessionNotice } from '../ports/event-publisher.ts';
import type { Log } from '../ports/log.ts';
import type { Random } from '../ports/random.ts';

/** Events that are under way to the broker. */
const BATCH = 500;
/** Each look renews it. A process that ends without a word holds the others up for so long. */
const LEASE_SECONDS = 5;
/** So often an event is refused, at growing intervals, before it is given up for those who refuse it. */
const MAX_REFUSALS = 5;

type Ports = { readonly eventLog: EventLog; readonly publisher: EventPublisher; readonly log: Log; readonly random: Pick<Random, 'token'> };

/** `elsewhere`: another process hands on, or nothing can be; `refused`: to be tried again later. */
export type Relayed = 'elsewhere' | 'refused' | 'all' | 'more';

/**
 * Hands the event log on to other systems. The place moves when the broker has said that it keeps what was sent, so
 * everything arrives at least once, and the events of a session in their order.
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

  /** What is logged from now on is handed on, as soon as there is a broker. */
  begin(): Promise<void> {
    return this.#ports.eventLog.beginHandingOn();
  }

  /** Hands on one batch. @throws Error when it is not known what arrived; then the next call sends it again. */
  async execute(): Promise<Relayed> {
    const { eventLog, publisher } = this.#ports;
    if (!publisher.isReady) {
      // Another process may still have a broker.
      if (this.#isHolder) await this.leave();
      return 'elsewhere';
    }
    const batch = await eventLog.nextEvents(this.#holder, LEASE_SECONDS, BATCH);
    this.#isHolder = batch !== undefined;
    if (batch === undefined) return 'elsewhere';
    if (batch.isBehind) return this.#renumber();
    const { after, events } = batch;
    if (events.length === 0) return 'all';
    const notices = events.flatMap(noticeOf);
    const taken = await publisher.publish(notices);
    this.#tell();
    if (taken < notices.length) return this.#refused(batch, notices[taken]);
    this.#refusals = 0;
    const moved = await eventLog.handedOn(after, events[events.length - 1]?.place ?? after);
    // Where somebody else moved it, the next look tells whose turn it is.
    return !moved || events.length >= BATCH ? 'more' : 'all';
  }

  /** What this process was doing, another one may do. */
  async leave(): Promise<void> {
    await this.#ports.eventLog.leaveEvents(this.#holder);
    this.#isHolder = false;
  }

  /** The look did not succeed. */
  failed(error: unknown): void {
    if (!this.#isUnsure) this.#ports.log.warn('events could not be handed on; they are sent again', reasonOf(error));
    this.#isUnsure = true;
  }

  #tell(): void {
    if (this.#isUnsure) this.#ports.log.info('events are handed on again');
    this.#isUnsure = false;
  }

  /** A queue refuses by its own wish: it is full, and was declared so that this is told. */
  async #refused(batch: LogBatch, refused: SessionNotice | undefined): Promise<Relayed> {
    const { eventLog, log } = this.#ports;
    const { after, events } = batch;
    const at = events.findIndex(({ sessionId, version }) => sessionId === refused?.sessionId && version === refused.version);
    const about = { tenantId: refused?.tenantId, sessionId: refused?.sessionId, version: refused?.version };
    if (++this.#refusals >= MAX_REFUSALS) {
      // All that follows was sent as well, and by now as often.
      log.error('events are given up for the queues that refuse them; the first is named', about);
      this.#refusals = 0;
      await eventLog.handedOn(after, events[events.length - 1]?.place ?? after);
      return 'more';
    }
    log.warn('a queue refuses an event, which is sent again; see docs/events.md', about);
    const place = placeBefore(events, at);
    if (place !== undefined && (await eventLog.handedOn(after, place))) this.#refusals = 0;
    return 'refused';
  }

  async #renumber(): Promise<Relayed> {
    const { eventLog, log } = this.#ports;
    const count = await eventLog.renumber(BATCH);
    if (count === 0) {
      log.warn('the database counts from lower numbers than before, as after a restore: events that were handed on may come again');
    }
    return 'more';
  }
}

/** @returns the last place at which nothing is left over before the event at `index`. */
function placeBefore(events: readonly LoggedEvent[], index: number): LogPlace | undefined {
  const refused = events[index]?.place;
  return events.slice(0, Math.max(0, index)).findLast(({ place }) => !isSame(place, refused))?.place;
}

function isSame(one: LogPlace, other: LogPlace | undefined): boolean {
  return (
    one.position === other?.position &&
    one.tenantId === other.tenantId &&
    one.sessionId === other.sessionId &&
    one.version === other.version
  );
}

/** Nothing is told of sessions whose tenant is being removed. */
function noticeOf({ kind, place: _place, ...event }: LoggedEvent): readonly SessionNotice[] {
  return kind === undefined ? [] : [{ ...event, kind }];
}

function reasonOf(error: unknown) {
  return { reason: error instanceof Error ? error.message.slice(0, 200) : String(error) };
}
