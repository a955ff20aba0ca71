import type { Session } from '../../domain/sessions/session.ts';
import { endOverdueSession } from '../../domain/sessions/session-change.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { SessionKey } from '../ports/maintenance.ts';
import { record } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';

/**
 * Ends overdue sessions with a response: as failed if no browser brought the response code, and as expired if a process ended
 * before it recorded the outcome.
 */
export class EndOverdueResponses extends needs({ ...TRANSACTION_PORTS, log: Log }) {
  /** @returns the number of ended sessions. A session that cannot be read does not affect the others. */
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
    return (await record(this.ports, session.tenantId, { session: endOverdueSession(session) })).done;
  }
}
