import type { Session } from '../../domain/sessions/session.ts';
import { overdue } from '../../domain/sessions/session-change.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { SessionKey } from '../ports/maintenance.ts';
import { record } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';

/**
 * Ends sessions with a response whose time is over: they failed where no browser brought the response code, and expired
 * where a process died before it could say what came of the response.
 */
export class EndOverdueAnswers extends needs({ ...WORLD, log: Log }) {
  /** @returns how many ended. A session that cannot be read keeps no other one from its end. */
  async execute(sessions: readonly SessionKey[]): Promise<number> {
    const { store, log } = this.ports;
    let count = 0;
    for (const { tenantId, id } of sessions) {
      try {
        const session = (await store.read(tenantId).session(id))?.session;
        if (session !== undefined && (await this.#end(session))) count++;
      } catch (error) {
        log.error('a session with a response could not be ended', { tenantId, sessionId: id }, error);
      }
    }
    return count;
  }

  async #end(session: Session): Promise<boolean> {
    return (await record(this.ports, session.tenantId, { session: overdue(session) })).done;
  }
}
