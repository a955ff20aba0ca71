import failures from './errors/failures.json' with { type: 'json' };
import refusals from './errors/refusals.json' with { type: 'json' };
import sessionFailures from './errors/session-failures.json' with { type: 'json' };
import webhookFaults from './errors/webhook-faults.json' with { type: 'json' };
import type { FailureCode } from './failure.ts';
import type { RefusalReason } from './refusal.ts';
import type { SessionFailureCode } from './session-failure.ts';
import type { WebhookFault } from './webhook-fault.ts';

/**
 * The explanation of one error code. Code, field and setting names are in backticks. The texts are in `errors/*.json`; the console and
 * docs/reference/errors.md (`npm run docs:errors`) show them.
 */
export type ErrorExplanation = {
  /** A short phrase without a full stop. The API sends that of a failure as `title`. */
  readonly meaning: string;
  /** Empty if the meaning says it. */
  readonly cause: string;
  readonly fix: string;
  /** Interfaces or flows in which the code occurs. */
  readonly where?: string;
  /** A page of docs/reference, with an optional anchor. */
  readonly page?: string;
};

type Explanations<Code extends string> = Readonly<Record<Code, ErrorExplanation>>;

/** Errors that end a request; `internal_error` is a fault of the service. */
export const FAILURE_REFERENCE: Explanations<FailureCode | 'internal_error'> = failures;

/** Reasons for the failure of a session. */
export const SESSION_FAILURE_REFERENCE: Explanations<SessionFailureCode> = sessionFailures;

/** Reasons of a failed webhook delivery. */
export const WEBHOOK_FAULT_REFERENCE: Explanations<WebhookFault> = webhookFaults;

/** Reasons for rejecting a presented credential. */
export const REFUSAL_REFERENCE: Explanations<RefusalReason> = refusals;
