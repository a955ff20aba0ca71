import type { SessionFailureCode } from '../../domain/sessions/failure-code.ts';
import {
  OPEN_STATUSES,
  type Session,
  type SessionOutcome,
  statusAt,
  type VerificationRequest,
} from '../../domain/sessions/session.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import { responseFault } from '../../domain/verification/report.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';

/** A session that waits for a response, with what it asked for. */
export type Answerable = { readonly session: Session; readonly request: VerificationRequest };

export function refusedOutcome({ reasons, report }: Verdict): SessionOutcome {
  return { failure: { code: 'presentation_refused', message: reasons.join('; ') }, report };
}

export function faulty(code: SessionFailureCode, message: string): SessionOutcome {
  return {
    failure: { code, message },
    report: [responseFault('response', message, 'OpenID4VP 1.0 section 8')],
  };
}

/** @throws Failure `not_found`, `gone` after expiry, `invalid_request` when it was answered already. */
export function answerable(session: Session | undefined, now: Date): Answerable {
  if (session?.kind !== 'verification') throw new Failure('not_found', 'unknown address');
  const status = statusAt(session, now);
  if (status === 'expired') throw new Failure('gone', 'the request has expired');
  const { request } = session;
  const isOpen = OPEN_STATUSES.includes(status);
  if (!isOpen || session.claimedAt !== null || request?.kind !== 'verification') throw alreadyAnswered();
  return { session, request };
}

export function alreadyAnswered(): Failure {
  return new Failure('invalid_request', 'this request was answered already, or was cancelled');
}

export function ended(): Failure {
  return new Failure('gone', 'the request has ended');
}

/** @param reason for the log; the wallet learns none. Names and numbers, never a claim's value. */
export function refusedResponse(reason: string): Failure {
  return new Failure('invalid_request', 'the response was not accepted', {
    cause: new OperatorReason(reason),
  });
}
