import { isTerminal, type Session, type SessionEvent, type SessionOutcome } from '../../domain/sessions/session.ts';
import { updateOutcome } from '../../domain/sessions/session-change.ts';
import { needs } from '../needs.ts';
import { record } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';

/** Limit of retries after concurrent writes to the session. */
const MAX_ATTEMPTS = 20;

/**
 * Records events of an issuance session: deliveries, notifications, the reason of a failure. After a concurrent change, such as a request
 * for another credential, the session is read again.
 */
export class SessionNotes extends needs(TRANSACTION_PORTS) {
  /**
   * @param change creates the next outcome from the current one; undefined when there is nothing to record any more.
   * @param event is applied if it is still possible: a completed session keeps its status.
   * @returns the session after the commit, or undefined when it failed, expired or was removed meanwhile, or nothing was recorded.
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
      const committed = await record(this.ports, session.tenantId, { session: updateOutcome(current, outcome, event) });
      if (committed.done) return { ...current, outcome, ...committed.session };
      current = (await this.ports.store.read(session.tenantId).session(session.id))?.session;
      if (current !== undefined && current.status !== 'completed' && isTerminal(current.status)) break;
    }
    return undefined;
  }
}
