import { describeShownSession } from '../../domain/audit/describe-change.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { RememberedCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import type { SeenSession } from './sessions.ts';
import { visible } from './visibility.ts';

/** A session with the values of persons, for somebody who is on record for it. */
export class ShowSession extends needs({ ...WORLD, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `not_found`; without an entry in the audit log nothing is shown. */
  execute(caller: RememberedCaller, id: SessionId): Promise<SeenSession> {
    return attemptFor(this.ports, caller, async (known, present) => {
      const { now, configured } = known;
      await this.ports.fetchedSessions.settled(known.tenantId);
      const read = await known.confirm(known.reads.seenSession(id));
      const session = visible(present, read.session);
      const tenant = await configured.tenant();
      await known.commit({ audit: { by: present, change: describeShownSession(id) } });
      return { session, asked: read.asked, tenant, now };
    });
  }
}
