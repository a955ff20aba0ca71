import { ISSUING_STATUSES, statusAt } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { FetchedSessions } from '../sessions/fetched-sessions.ts';
import { attempt } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';

/** A wallet fetches an offer by reference (OpenID4VCI 1.0 section 4.1.3). */
export class FetchOffer extends needs({ ...TRANSACTION_PORTS, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `not_found` for an unknown and for a finished offer. */
  execute(tenantId: TenantId, publicId: PublicId): Promise<JsonObject> {
    return attempt(this.ports, tenantId, async (transaction) => {
      const session = await transaction.currentSession(publicId);
      const isOpen = session !== undefined && ISSUING_STATUSES.includes(statusAt(session, transaction.now));
      // The session of a wallet-initiated issuance has no offer.
      if (!isOpen || session.request?.kind !== 'issuance' || session.request.offerUrl === '') throw offerNotFoundError();
      this.ports.fetchedSessions.note(session);
      return session.request.offer;
    });
  }
}

function offerNotFoundError(): Failure {
  return new Failure('not_found', 'unknown or expired offer');
}
