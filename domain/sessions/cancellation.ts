import { Failure } from '../shared/failure.ts';
import { OPEN_STATUSES, type Session, statusAt } from './session.ts';
import { failSession, type SessionChange } from './session-change.ts';

/**
 * Cancels a session: its code, token and response address become invalid; issued credentials stay valid.
 * @throws Failure `conflict` for a session that has ended, or whose response is being processed.
 */
export function cancelSession(session: Session, now: Date): SessionChange {
  const { outcome, claimedAt } = session;
  const status = statusAt(session, now);
  if (!OPEN_STATUSES.includes(status)) throw new Failure('conflict', `the session is already ${status}`);
  if (claimedAt !== null) throw new Failure('conflict', 'a wallet has answered; the response is being processed');
  const failure = { code: 'cancelled', message: 'cancelled by a client of the tenant' } as const;
  return { ...failSession(session, { ...outcome, failure }), unanswered: true };
}
