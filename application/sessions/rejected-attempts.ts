import { appendAttempt } from '../../domain/sessions/refused-attempt.ts';
import { Failure, type FailureCode } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { SessionNotes } from './session-notes.ts';

/** Failures that are a normal part of the protocol, or say nothing about the request. */
const UNRECORDED_CODES: readonly FailureCode[] = [
  'use_dpop_nonce',
  'use_attestation_challenge',
  'issuance_pending',
  'unavailable',
  'session_quota_exceeded',
  'not_found',
];

/** Called with the session of a request, after the token of the request was verified. */
export type ReportSession = (publicId: PublicId) => void;

/** Records in the session why a request of a wallet was rejected, since users rarely report that to the operator. */
export class RejectedAttempts extends needs({ ...TRANSACTION_PORTS, sessionNotes: SessionNotes, log: Log }) {
  /** Runs `work`, and records its failure in the session that `work` reports. @param requestId as in the log. */
  async recordFailures<T>(
    tenantId: TenantId,
    requestId: string | undefined,
    work: (reportSession: ReportSession) => Promise<T>,
  ): Promise<T> {
    let publicId: PublicId | undefined;
    try {
      return await work((reportedId) => {
        publicId = reportedId;
      });
    } catch (error) {
      await this.recordFailure(tenantId, requestId, error, async () => publicId);
      throw error;
    }
  }

  /**
   * Never throws: the wallet gets the failure of its request even if the record fails.
   * @param error anything but a `Failure` is ignored.
   * @param findSession returns undefined for a request that belongs to no session.
   */
  async recordFailure(
    tenantId: TenantId,
    requestId: string | undefined,
    error: unknown,
    findSession: () => Promise<PublicId | undefined>,
  ): Promise<void> {
    if (!(error instanceof Failure) || UNRECORDED_CODES.includes(error.code)) return;
    const { code, message } = error;
    const { store, clock, sessionNotes, log } = this.ports;
    const timestamp = clock.now().toISOString();
    const attempt = { at: timestamp, code, reason: message, ...(requestId !== undefined && { requestId }) };
    try {
      const publicId = await findSession();
      if (publicId === undefined) return;
      const { session } = (await store.read(tenantId).sessionByPublicId(publicId)) ?? {};
      if (session !== undefined) await sessionNotes.note(session, (outcome) => appendAttempt(outcome, attempt));
    } catch (fault) {
      log.error('a rejected attempt was not recorded', { tenantId, requestId }, fault);
    }
  }
}
