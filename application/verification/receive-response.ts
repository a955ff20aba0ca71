import { withAttempt } from '../../domain/sessions/refused-attempt.ts';
import { OPEN_STATUSES, statusAt } from '../../domain/sessions/session.ts';
import { attempted } from '../../domain/sessions/session-change.ts';
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
import { WORLD } from '../transactions/known.ts';
import { ResponseIntake } from './response-intake.ts';
import type { ResponseReply } from './return-to.ts';

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
  async note(tenantId: TenantId, publicId: PublicId, requestId: string | undefined, error: unknown): Promise<void> {
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

const PORTS = { responseIntake: ResponseIntake, unreadResponses: UnreadResponses };

/** Takes in what a wallet posts to the response address (OpenID4VP 1.0 section 8.2). */
export class ReceiveResponse extends needs(PORTS) {
  /**
   * @param requestId of the HTTP request, for the session and the log.
   * @throws Failure as `ResponseIntake.take`; what leaves the session open is recorded in its `attempts`.
   */
  async execute(tenantId: TenantId, publicId: PublicId, form: ResponseForm, requestId?: string): Promise<ResponseReply> {
    const { responseIntake, unreadResponses } = this.ports;
    try {
      return await responseIntake.take(tenantId, publicId, {
        open: (request) => parseForm(form, posted(request)),
        openPlaintext: (plaintext, request, outerState) => parsePlaintext(plaintext, posted(request), outerState),
      });
    } catch (error) {
      await unreadResponses.note(tenantId, publicId, requestId, error);
      throw error;
    }
  }

  /** Records a body that could not be read at all. */
  unread(tenantId: TenantId, publicId: PublicId, requestId: string, error: unknown): Promise<void> {
    return this.ports.unreadResponses.note(tenantId, publicId, requestId, error);
  }
}

/** @throws Failure `not_found`: a request of a page has no such address. */
function posted(request: VerificationRequest): PostedVerification {
  if (isDcApi(request)) throw new Failure('not_found', 'unknown address');
  return request;
}

/** Takes in what a page got from the Digital Credentials API (OpenID4VP 1.0 appendix A.4). */
export class ReceiveDcApiResponse extends needs(PORTS) {
  /**
   * @param data of the credential object. @param requestId of the HTTP request, for the session and the log.
   * @throws Failure as `ResponseIntake.take`; what leaves the session open is recorded in its `attempts`.
   */
  async execute(tenantId: TenantId, publicId: PublicId, data: JsonObject, requestId?: string): Promise<void> {
    const { responseIntake, unreadResponses } = this.ports;
    try {
      await responseIntake.take(tenantId, publicId, {
        open: (request) => parseDcApiData(data, ofPage(request)),
        openPlaintext: (plaintext, request) => {
          ofPage(request);
          return parsePlaintext(plaintext);
        },
      });
    } catch (error) {
      await unreadResponses.note(tenantId, publicId, requestId, error);
      throw error;
    }
  }

  /** Records a body that could not be read at all. */
  unread(tenantId: TenantId, publicId: PublicId, requestId: string, error: unknown): Promise<void> {
    return this.ports.unreadResponses.note(tenantId, publicId, requestId, error);
  }
}

/** @throws Failure `not_found`: a request of a wallet has no such address. */
function ofPage(request: VerificationRequest): DcApiVerification {
  if (!isDcApi(request)) throw new Failure('not_found', 'unknown address');
  return request;
}
