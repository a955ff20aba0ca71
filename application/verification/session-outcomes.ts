import type { Session, SessionEvent, SessionOutcome } from '../../domain/sessions/session.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Store } from '../ports/store.ts';

type Ports = { readonly store: Store; readonly clock: Clock; readonly eventBus: EventBus };

/** Records what came of a session whose response was claimed, and wakes up whoever watches it. */
export class SessionOutcomes {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @param event absent to note something without changing the status.
   * @returns the session as it is to be recorded next, or undefined when `event` is not possible any more.
   */
  async record(
    session: Session,
    event: Extract<SessionEvent, 'complete' | 'fail'> | undefined,
    outcome: SessionOutcome,
  ): Promise<Session | undefined> {
    const { store, clock, eventBus } = this.#ports;
    const beats = store.beats(session.tenantId);
    const now = clock.now();
    let version = await beats.recordOutcome(session, event, outcome, now);
    if (version === undefined) {
      // The claim keeps other responses out, but a wallet that fetches once more still moves the version on.
      const current = await beats.findSession(session.id);
      if (current === undefined || current.version === session.version) return undefined;
      version = await beats.recordOutcome(current, event, outcome, now);
    }
    if (version === undefined) return undefined;
    eventBus.publish({ type: 'session', tenantId: session.tenantId, sessionId: session.id });
    return { ...session, version, outcome, updatedAt: now };
  }
}
