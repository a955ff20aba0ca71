import type { SessionOutcome } from '../../domain/sessions/session.ts';
import { Failure, type FailureCode } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { SessionNotes } from '../sessions/session-notes.ts';

/** More are not kept of a session, so that a wallet that tries without end writes no more either. */
const MAX_ATTEMPTS = 20;

/** Steps that every wallet takes, and what says nothing of the request. */
const EXPECTED: readonly FailureCode[] = ['use_dpop_nonce', 'issuance_pending', 'unavailable', 'not_found'];

/** Says whose session a request is about, once its token was believed. */
export type Tell = (publicId: PublicId) => void;

/** Keeps with its session why a wallet was refused that came to collect: the wallet tells nobody, and the operator was not there. */
export class RefusedAttempts extends needs({ ...WORLD, sessionNotes: SessionNotes, log: Log }) {
  /** @param requestId of the request, which the log has, too. */
  async noting<T>(
    tenantId: TenantId,
    requestId: string | undefined,
    work: (tell: Tell) => Promise<T>,
  ): Promise<T> {
    let publicId: PublicId | undefined;
    try {
      return await work((told) => {
        publicId = told;
      });
    } catch (error) {
      if (error instanceof Failure && publicId !== undefined && !EXPECTED.includes(error.code)) {
        await this.#note(tenantId, publicId, requestId, error);
      }
      throw error;
    }
  }

  /** Whatever becomes of the note, the wallet is told what was wrong with its request. */
  async #note(
    tenantId: TenantId,
    publicId: PublicId,
    requestId: string | undefined,
    { code, message }: Failure,
  ): Promise<void> {
    const { store, clock, sessionNotes, log } = this.ports;
    const at = clock.now().toISOString();
    const attempt = { at, code, reason: message, ...(requestId !== undefined && { requestId }) };
    try {
      const { session } = (await store.read(tenantId).sessionByPublicId(publicId)) ?? {};
      if (session !== undefined) await sessionNotes.note(session, (outcome) => withAttempt(outcome, attempt));
    } catch (error) {
      log.error('a refused attempt was not noted', { tenantId, requestId }, error);
    }
  }
}

function withAttempt(
  outcome: SessionOutcome | null,
  attempt: NonNullable<SessionOutcome['attempts']>[number],
): SessionOutcome | undefined {
  const { attempts = [] } = outcome ?? {};
  return attempts.length < MAX_ATTEMPTS ? { ...outcome, attempts: [...attempts, attempt] } : undefined;
}
