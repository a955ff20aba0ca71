import {
  isTerminal,
  type Session,
  type SessionEvent,
  type SessionOutcome,
  transition,
} from '../../domain/sessions/session.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Store } from '../ports/store.ts';

type Ports = { readonly store: Store; readonly clock: Clock; readonly eventBus: EventBus };

/** Attempts to meet a session that others write to at the same time. */
const MAX_ATTEMPTS = 20;

/**
 * Notes what happens to an issuance session: deliveries, notifications, the reason of a failure. Requests for other
 * credentials of the same session may write in between; then it is read again.
 */
export class SessionNotes {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @param change makes the next outcome of the present one; undefined when there is nothing to note any more.
   * @param event happens too if it still can: a completed session keeps its status.
   * @returns the session afterwards, or undefined when it failed, expired or went meanwhile, or nothing was to note.
   */
  async note(
    session: Session,
    change: (outcome: SessionOutcome | null) => SessionOutcome | undefined,
    event?: Extract<SessionEvent, 'fail'>,
  ): Promise<Session | undefined> {
    const { store, clock, eventBus } = this.#ports;
    const beats = store.beats(session.tenantId);
    let current: Session | undefined = session;
    for (let attempt = 0; attempt < MAX_ATTEMPTS && current !== undefined; attempt++) {
      const outcome = change(current.outcome);
      if (outcome === undefined) return undefined;
      const possible =
        event !== undefined && transition(event).from.includes(current.status) ? event : undefined;
      const now = clock.now();
      const version = await beats.recordOutcome(current, possible, outcome, now);
      if (version !== undefined) {
        if (possible !== undefined) {
          eventBus.publish({ type: 'session', tenantId: session.tenantId, sessionId: session.id });
        }
        const status = possible === undefined ? current.status : transition(possible).to;
        return { ...current, outcome, version, status };
      }
      current = await beats.findSession(session.id);
      if (current !== undefined && current.status !== 'completed' && isTerminal(current.status)) break;
    }
    return undefined;
  }
}
