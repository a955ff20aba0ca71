import { describeCancellation } from '../../domain/audit/describe-change.ts';
import { cancelled } from '../../domain/sessions/cancellation.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { RememberedCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import type { SeenSession } from './sessions.ts';
import { visible } from './visibility.ts';

/** Times that a wallet may be quicker: each fetch and each note makes another version. */
const MAX_ATTEMPTS = 20;

/** Ends a session before its wallet does. Of a redemption, a response and this exactly one comes first. */
export class CancelSession extends needs({ ...WORLD, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `not_found`, `conflict` for a session that has ended or is being answered. */
  execute(caller: RememberedCaller, id: SessionId): Promise<SeenSession> {
    return attemptFor(this.ports, caller, async (known, present) => {
      const { now, configured } = known;
      const audit = { by: present, change: describeCancellation(id) };
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        await this.ports.fetchedSessions.settled(known.tenantId);
        const read = await known.confirm(known.reads.seenSession(id));
        const session = visible(present, read.session);
        const change = cancelled(session, now);
        if ((await known.tryCommit({ session: change, audit }, {})) === 'session') continue;
        const { outcome = null, to: status = session.status } = change;
        const ended = { ...session, status, outcome, version: session.version + 1, updatedAt: now };
        return { session: ended, asked: read.asked, tenant: await configured.tenant(), now };
      }
      throw new Failure('conflict', 'the session changes all the time; try again');
    });
  }
}
