import { withAttempt } from '../../domain/sessions/refused-attempt.ts';
import { OPEN_STATUSES, statusAt } from '../../domain/sessions/session.ts';
import { attempted } from '../../domain/sessions/session-change.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, type FailureCode, OperatorReason } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import { record } from '../attempt.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';

/** Times that the session is read again when it was changed concurrently. */
const MAX_TRIES = 3;

/** These say nothing about the response, or there is no such request. */
const NOT_RECORDED: readonly FailureCode[] = ['unavailable', 'too_many_requests', 'not_found'];

/**
 * Records with its session why a response was rejected that left the session open: it could not be read, decrypted or
 * parsed, or has another `state`. Such a response may come from anybody who saw the address, so it does not end the session.
 */
export class UnreadResponses extends needs({ ...WORLD, log: Log }) {
  /**
   * Nothing is recorded for an unknown request, one that was answered or has ended, and after the first 20 attempts.
   * @param error thrown to the sender. Whatever becomes of the record, the sender gets it.
   */
  async note(
    tenantId: TenantId,
    publicId: PublicId,
    requestId: string | undefined,
    error: unknown,
  ): Promise<void> {
    if (!(error instanceof Failure) || NOT_RECORDED.includes(error.code)) return;
    const { store, clock, log } = this.ports;
    const { code, message, cause } = error;
    const reason = cause instanceof OperatorReason ? cause.message : message;
    const now = clock.now();
    const attempt = { at: now.toISOString(), code, reason, ...defined({ requestId }) };
    try {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const { session } = (await store.read(tenantId).sessionByPublicId(publicId)) ?? {};
        if (session?.kind !== 'verification' || session.claimedAt !== null) return;
        if (!OPEN_STATUSES.includes(statusAt(session, now))) return;
        const outcome = withAttempt(session.outcome, attempt);
        if (outcome === undefined) return;
        const change = { session: attempted(session, outcome) };
        if ((await record(this.ports, tenantId, change)).done) return;
      }
    } catch (fault) {
      log.error('a rejected response was not recorded with its session', { tenantId, requestId }, fault);
    }
  }
}
