import { describeShownSession } from '../../domain/audit/describe-change.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { CachedCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import type { SessionSnapshot } from './sessions.ts';
import { assertVisible } from './visibility.ts';

/** Shows a session with personal data; each access is recorded in the audit log. */
export class ShowSession extends needs({ ...TRANSACTION_PORTS, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `not_found`. Nothing is shown unless the audit entry is committed. */
  execute(caller: CachedCaller, id: SessionId): Promise<SessionSnapshot> {
    return attemptFor(this.ports, caller, async (transaction, currentCaller) => {
      const { now } = transaction;
      await this.ports.fetchedSessions.flushTenant(transaction.tenantId);
      const result = await transaction.confirm(transaction.reads.sessionWithAuthorization(id));
      const session = assertVisible(currentCaller, result.session);
      const tenant = await transaction.tenant.tenant();
      await transaction.commit({ audit: { by: currentCaller, change: describeShownSession(id) } });
      return { session, authorization: result.authorization, tenant, now };
    });
  }
}
