import { ISSUING_STATUSES, statusAt } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { FetchedSessions } from '../sessions/fetched-sessions.ts';
import { attempt } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';

/** A wallet fetches an offer by reference (OpenID4VCI 1.0 section 4.1.3). */
export class FetchOffer extends needs({ ...WORLD, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `not_found`, alike for an offer that never was and one that is over. */
  execute(tenantId: TenantId, publicId: PublicId): Promise<JsonObject> {
    return attempt(this.ports, tenantId, async (known) => {
      const session = await known.presentSession(publicId);
      const isOpen = session !== undefined && ISSUING_STATUSES.includes(statusAt(session, known.now));
      // A wallet that began by itself has a session, and no offer.
      if (!isOpen || session.request?.kind !== 'issuance' || session.request.offerUrl === '') throw unknown();
      this.ports.fetchedSessions.note(session);
      return session.request.offer;
    });
  }
}

function unknown(): Failure {
  return new Failure('not_found', 'unknown or expired offer');
}
