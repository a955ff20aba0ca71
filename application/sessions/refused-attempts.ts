import { withAttempt } from '../../domain/sessions/refused-attempt.ts';
import { Failure, type FailureCode } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { WORLD } from '../transactions/known.ts';
import { SessionNotes } from './session-notes.ts';

/** Steps that every wallet takes, and what says nothing of the request. */
const EXPECTED: readonly FailureCode[] = [
  'use_dpop_nonce',
  'use_attestation_challenge',
  'issuance_pending',
  'unavailable',
  'session_quota_exceeded',
  'not_found',
];

/** Says whose session a request is about, once its token was believed. */
export type Tell = (publicId: PublicId) => void;

/** Keeps with its session why a wallet was refused that came to collect: the wallet tells nobody, and the operator was not there. */
export class RefusedAttempts extends needs({ ...WORLD, sessionNotes: SessionNotes, log: Log }) {
  /** @param requestId of the request, which the log has, too. */
  async noting<T>(tenantId: TenantId, requestId: string | undefined, work: (tell: Tell) => Promise<T>): Promise<T> {
    let publicId: PublicId | undefined;
    try {
      return await work((told) => {
        publicId = told;
      });
    } catch (error) {
      await this.note(tenantId, requestId, error, async () => publicId);
      throw error;
    }
  }

  /**
   * Never throws: the wallet is told what was wrong with its request, whatever becomes of the note.
   * @param error anything but a `Failure` is not noted.
   * @param findSession undefined for a request that belongs to no session.
   */
  async note(
    tenantId: TenantId,
    requestId: string | undefined,
    error: unknown,
    findSession: () => Promise<PublicId | undefined>,
  ): Promise<void> {
    if (!(error instanceof Failure) || EXPECTED.includes(error.code)) return;
    const { code, message } = error;
    const { store, clock, sessionNotes, log } = this.ports;
    const at = clock.now().toISOString();
    const attempt = { at, code, reason: message, ...(requestId !== undefined && { requestId }) };
    try {
      const publicId = await findSession();
      if (publicId === undefined) return;
      const { session } = (await store.read(tenantId).sessionByPublicId(publicId)) ?? {};
      if (session !== undefined) await sessionNotes.note(session, (outcome) => withAttempt(outcome, attempt));
    } catch (fault) {
      log.error('a refused attempt was not noted', { tenantId, requestId }, fault);
    }
  }
}
