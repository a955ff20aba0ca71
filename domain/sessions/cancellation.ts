import { Failure } from '../shared/failure.ts';
import { OPEN_STATUSES, type Session, statusAt } from './session.ts';
import { failed, type SessionChange } from './session-change.ts';

/**
 * Whoever opened a session ends it. Nothing of it is redeemed, issued or answered any more; what was issued stays.
 * @throws Failure `conflict` for one that has ended, and for one whose response is being taken in.
 */
export function cancelled(session: Session, now: Date): SessionChange {
  const { outcome, claimedAt } = session;
  const status = statusAt(session, now);
  if (!OPEN_STATUSES.includes(status)) throw new Failure('conflict', `the session is ${status} already`);
  if (claimedAt !== null) throw new Failure('conflict', 'a wallet has answered; the answer is being taken in');
  const failure = { code: 'cancelled', message: 'cancelled by a client of the tenant' } as const;
  return { ...failed(session, { ...outcome, failure }), unanswered: true };
}
