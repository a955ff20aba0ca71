import { retainAttempts } from '../../domain/sessions/refused-attempt.ts';
import { MOVES, type Session, type SessionEvent, type SessionOutcome } from '../../domain/sessions/session.ts';
import { updateOutcome } from '../../domain/sessions/session-change.ts';
import { needs } from '../needs.ts';
import { record } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';

const MAX_ATTEMPTS = 4;

/** Records the outcome of a session whose response was accepted. */
export class SessionOutcomes extends needs(TRANSACTION_PORTS) {
  /**
   * @param event absent to record something without changing the status.
   * @returns the session after the commit, or undefined when `event` is not possible any more.
   */
  async record(
    session: Session,
    event: Extract<SessionEvent, 'complete' | 'fail'> | undefined,
    result: SessionOutcome,
  ): Promise<Session | undefined> {
    const outcome = retainAttempts(session.outcome, result);
    const { store, clock } = this.ports;
    // No other response is accepted meanwhile, but the first fetch by a wallet may be recorded at any moment.
    let latest = session;
    for (let remainingAttempts = MAX_ATTEMPTS; remainingAttempts > 0; remainingAttempts--) {
      const version = await this.#apply(latest, event, outcome);
      if (version !== undefined) return { ...session, version, outcome, updatedAt: clock.now() };
      const current = (await store.read(session.tenantId).session(session.id))?.session;
      if (current === undefined || current.version === latest.version) return undefined;
      latest = current;
    }
    return undefined;
  }

  /** @returns the new version, or undefined when the session was changed meanwhile, or `event` is not possible. */
  async #apply(session: Session, event: 'complete' | 'fail' | undefined, outcome: SessionOutcome): Promise<number | undefined> {
    if (event !== undefined && !(MOVES[event].from as readonly string[]).includes(session.status)) return undefined;
    const change = { session: updateOutcome(session, outcome, event) };
    const committed = await record(this.ports, session.tenantId, change);
    return committed.done ? committed.session?.version : undefined;
  }
}
