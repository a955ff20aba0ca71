import { MOVES, type Session } from '../../domain/sessions/session.ts';
import type { SessionChange } from '../../domain/sessions/session-change.ts';

/** The simplest change of a session: a wallet fetched the offer or the request for the first time. */
export function fetchedChange({ id }: Pick<Session, 'id'>): SessionChange {
  return { id, running: MOVES.fetch.from, to: MOVES.fetch.to };
}
