import {
  MOVES,
  type Session,
  type SessionEvent,
  type SessionOutcome,
} from '../../domain/sessions/session.ts';
import { noted } from '../../domain/sessions/session-change.ts';
import { record } from '../attempt.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';

/** Records what came of a session whose response was claimed, and wakes up the one who watches it. */
export class SessionOutcomes extends needs(WORLD) {
  /**
   * @param event absent to note something without changing the status.
   * @returns the session as it is to be recorded next, or undefined when `event` is not possible any more.
   */
  async record(
    session: Session,
    event: Extract<SessionEvent, 'complete' | 'fail'> | undefined,
    outcome: SessionOutcome,
  ): Promise<Session | undefined> {
    const { store, clock } = this.ports;
    const { tenantId } = session;
    const recorded = await this.#apply(session, event, outcome);
    if (recorded !== undefined) return { ...session, version: recorded, outcome, updatedAt: clock.now() };
    // The claim keeps other responses out, but a wallet that fetches once more still moves the version on.
    const current = (await store.read(tenantId).session(session.id))?.session;
    if (current === undefined || current.version === session.version) return undefined;
    const version = await this.#apply(current, event, outcome);
    return version === undefined ? undefined : { ...session, version, outcome, updatedAt: clock.now() };
  }

  /** @returns the version afterwards, or undefined when the session is not as it is known, or `event` is not possible. */
  async #apply(
    session: Session,
    event: 'complete' | 'fail' | undefined,
    outcome: SessionOutcome,
  ): Promise<number | undefined> {
    if (event !== undefined && !(MOVES[event].from as readonly string[]).includes(session.status))
      return undefined;
    const change = { session: noted(session, outcome, event) };
    const committed = await record(this.ports, session.tenantId, change);
    return committed.done ? committed.session?.version : undefined;
  }
}
