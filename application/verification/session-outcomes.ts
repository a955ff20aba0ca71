import { keepingAttempts } from '../../domain/sessions/refused-attempt.ts';
import { MOVES, type Session, type SessionEvent, type SessionOutcome } from '../../domain/sessions/session.ts';
import { noted } from '../../domain/sessions/session-change.ts';
import { needs } from '../needs.ts';
import { record } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';

/** So often the session is read anew when it moved meanwhile. */
const TRIES = 4;

/** Records what came of a session whose response was claimed, and wakes up the one who watches it. */
export class SessionOutcomes extends needs(WORLD) {
  /**
   * @param event absent to note something without changing the status.
   * @returns the session as it is to be recorded next, or undefined when `event` is not possible any more.
   */
  async record(
    session: Session,
    event: Extract<SessionEvent, 'complete' | 'fail'> | undefined,
    result: SessionOutcome,
  ): Promise<Session | undefined> {
    const outcome = keepingAttempts(session.outcome, result);
    const { store, clock } = this.ports;
    // The claim keeps other responses out, but that a wallet fetched the request may be noted at any moment.
    let present = session;
    for (let left = TRIES; left > 0; left--) {
      const version = await this.#apply(present, event, outcome);
      if (version !== undefined) return { ...session, version, outcome, updatedAt: clock.now() };
      const current = (await store.read(session.tenantId).session(session.id))?.session;
      if (current === undefined || current.version === present.version) return undefined;
      present = current;
    }
    return undefined;
  }

  /** @returns the version afterwards, or undefined when the session is not as it is known, or `event` is not possible. */
  async #apply(session: Session, event: 'complete' | 'fail' | undefined, outcome: SessionOutcome): Promise<number | undefined> {
    if (event !== undefined && !(MOVES[event].from as readonly string[]).includes(session.status)) return undefined;
    const change = { session: noted(session, outcome, event) };
    const committed = await record(this.ports, session.tenantId, change);
    return committed.done ? committed.session?.version : undefined;
  }
}
