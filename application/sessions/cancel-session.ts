import { describeCancellation } from '../../domain/audit/describe-change.ts';
import { cancelSession } from '../../domain/sessions/cancellation.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { CachedCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import type { SessionSnapshot } from './sessions.ts';
import { assertVisible } from './visibility.ts';

/** Limit of retries after concurrent changes by the wallet: each fetch and each note creates another version. */
const MAX_ATTEMPTS = 20;

/** Ends a session before its wallet does. Of a redemption, a response and a cancellation exactly one succeeds. */
export class CancelSession extends needs({ ...TRANSACTION_PORTS, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `not_found`, `conflict` for a session that has ended or is being answered. */
  execute(caller: CachedCaller, id: SessionId): Promise<SessionSnapshot> {
    return attemptFor(this.ports, caller, async (transaction, currentCaller) => {
      const { now, tenant } = transaction;
      const audit = { by: currentCaller, change: describeCancellation(id) };
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        await this.ports.fetchedSessions.flushTenant(transaction.tenantId);
        const result = await transaction.confirm(transaction.reads.sessionWithAuthorization(id));
        const session = assertVisible(currentCaller, result.session);
        const change = cancelSession(session, now);
        if ((await transaction.tryCommit({ session: change, audit }, {})) === 'session') continue;
        const { outcome = null, to: status = session.status } = change;
        const cancelledSession = { ...session, status, outcome, version: session.version + 1, updatedAt: now };
        return { session: cancelledSession, authorization: result.authorization, tenant: await tenant.tenant(), now };
      }
      throw new Failure('conflict', 'the session is changed repeatedly; try again');
    });
  }
}
