import { appendAttempt } from '../../domain/sessions/refused-attempt.ts';
import { OPEN_STATUSES, statusAt } from '../../domain/sessions/session.ts';
import { recordAttempt } from '../../domain/sessions/session-change.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, type FailureCode, OperatorReason } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { parseDcApiData, parseForm, parsePlaintext, type ResponseForm } from '../../domain/verification/envelope.ts';
import {
  type DcApiVerification,
  isDcApi,
  type PostedVerification,
  type VerificationRequest,
} from '../../domain/verification/verification-request.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { record } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import type { ResponseReply } from './redirect-after-response.ts';
import { ResponseIntake } from './response-intake.ts';

/** Limit of retries after concurrent changes of the session. */
const MAX_ATTEMPTS = 3;

/** Failures that say nothing about the response, or without a request. */
const NOT_RECORDED: readonly FailureCode[] = ['unavailable', 'too_many_requests', 'not_found'];

/**
 * Records in the session why a response was rejected that left the session open: it could not be read, decrypted or parsed, or has
 * another `state`. An attacker who saw the address can send such a response, so it does not end the session.
 */
export class RejectedResponses extends needs({ ...TRANSACTION_PORTS, log: Log }) {
  /**
   * Nothing is recorded for an unknown request, one that was answered or has ended, and after the first 20 attempts.
   * @param error of the rejected response. A failure to record does not replace it.
   */
  async note(tenantId: TenantId, publicId: PublicId, requestId: string | undefined, error: unknown): Promise<void> {
    if (!(error instanceof Failure) || NOT_RECORDED.includes(error.code)) return;
    const { store, clock, log } = this.ports;
    const { code, message, cause } = error;
    const reason = cause instanceof OperatorReason ? cause.message : message;
    const now = clock.now();
    const attempt = { at: now.toISOString(), code, reason, ...defined({ requestId }) };
    try {
      for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
        const { session } = (await store.read(tenantId).sessionByPublicId(publicId)) ?? {};
        if (session?.kind !== 'verification' || session.claimedAt !== null) return;
        if (!OPEN_STATUSES.includes(statusAt(session, now))) return;
        const outcome = appendAttempt(session.outcome, attempt);
        if (outcome === undefined) return;
        const change = { session: recordAttempt(session, outcome) };
        if ((await record(this.ports, tenantId, change)).done) return;
      }
    } catch (fault) {
      log.error('a rejected response was not recorded with its session', { tenantId, requestId }, fault);
    }
  }
}

const PORTS = { responseIntake: ResponseIntake, unreadResponses: RejectedResponses };

/** Receives the response that a wallet posts (OpenID4VP 1.0 section 8.2). */
export class ReceiveResponse extends needs(PORTS) {
  /**
   * @param requestId of the HTTP request, for the session and the log.
   * @throws Failure as `ResponseIntake.accept`; a failure that leaves the session open is recorded in its `attempts`.
   */
  async execute(tenantId: TenantId, publicId: PublicId, form: ResponseForm, requestId?: string): Promise<ResponseReply> {
    const { responseIntake, unreadResponses } = this.ports;
    try {
      return await responseIntake.accept(tenantId, publicId, {
        open: (request) => parseForm(form, assertPosted(request)),
        openPlaintext: (plaintext, request, outerState) => parsePlaintext(plaintext, assertPosted(request), outerState),
      });
    } catch (error) {
      await unreadResponses.note(tenantId, publicId, requestId, error);
      throw error;
    }
  }

  /** Records a body that could not be read. */
  recordUnreadable(tenantId: TenantId, publicId: PublicId, requestId: string, error: unknown): Promise<void> {
    return this.ports.unreadResponses.note(tenantId, publicId, requestId, error);
  }
}

/** @throws Failure `not_found`: a request for the Digital Credentials API has no such address. */
function assertPosted(request: VerificationRequest): PostedVerification {
  if (isDcApi(request)) throw new Failure('not_found', 'unknown address');
  return request;
}

/** Receives the response of the Digital Credentials API (OpenID4VP 1.0 appendix A.4). */
export class ReceiveDcApiResponse extends needs(PORTS) {
  /**
   * @param data of the credential object. @param requestId of the HTTP request, for the session and the log.
   * @throws Failure as `ResponseIntake.accept`; a failure that leaves the session open is recorded in its `attempts`.
   */
  async execute(tenantId: TenantId, publicId: PublicId, data: JsonObject, requestId?: string): Promise<void> {
    const { responseIntake, unreadResponses } = this.ports;
    try {
      await responseIntake.accept(tenantId, publicId, {
        open: (request) => parseDcApiData(data, assertDcApi(request)),
        openPlaintext: (plaintext, request) => {
          assertDcApi(request);
          return parsePlaintext(plaintext);
        },
      });
    } catch (error) {
      await unreadResponses.note(tenantId, publicId, requestId, error);
      throw error;
    }
  }

  /** Records a body that could not be read. */
  recordUnreadable(tenantId: TenantId, publicId: PublicId, requestId: string, error: unknown): Promise<void> {
    return this.ports.unreadResponses.note(tenantId, publicId, requestId, error);
  }
}

/** @throws Failure `not_found`: a request for a wallet has no such address. */
function assertDcApi(request: VerificationRequest): DcApiVerification {
  if (!isDcApi(request)) throw new Failure('not_found', 'unknown address');
  return request;
}
