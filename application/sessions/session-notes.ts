import { isTerminal, type Session, type SessionEvent, type SessionOutcome } from '../../domain/sessions/session.ts';
import { noted } from '../../domain/sessions/session-change.ts';
import { needs } from '../needs.ts';
import { record } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';

/** Attempts to meet a session that others write to at the same time. */
const MAX_ATTEMPTS = 20;

/**
 * Notes what happens to an issuance session: deliveries, notifications, the reason of a failure. Requests for other
 * credentials of the same session may write in between; then it is read again.
 */
export class SessionNotes extends needs(WORLD) {
  /**
   * @param change makes the next outcome of the present one; undefined when there is nothing to note any more.
   * @param event happens too if it still can: a completed session keeps its status.
   * @returns the session afterwards, or undefined when it failed, expired or went meanwhile, or nothing was to note.
   */
  async note(
    session: Session,
    change: (outcome: SessionOutcome | null) => SessionOutcome | undefined,
    event?: Extract<SessionEvent, 'complete' | 'fail'>,
  ): Promise<Session | undefined> {
    let current: Session | undefined = session;
    for (let attempt = 0; attempt < MAX_ATTEMPTS && current !== undefined; attempt++) {
      const outcome = change(current.outcome);
      if (outcome === undefined) return undefined;
      const committed = await record(this.ports, session.tenantId, { session: noted(current, outcome, event) });
      if (committed.done) return { ...current, outcome, ...committed.session };
      current = (await this.ports.store.read(session.tenantId).session(session.id))?.session;
      if (current !== undefined && current.status !== 'completed' && isTerminal(current.status)) break;
    }
    return undefined;
  }
}
