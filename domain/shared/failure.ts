import failures from './errors/failures.json' with { type: 'json' };

/**
 * Errors that end a request: the codes of `errors/failures.json`, which explains them. Each surface (administrative, OAuth, issuance,
 * presentation) renders them in `adapters/http/output/failures.ts`. `internal_error` is a fault of the service, not of a request.
 */
export type FailureCode = Exclude<keyof typeof failures, 'internal_error'>;
export const FAILURE_CODES = Object.keys(failures).filter((code): code is FailureCode => code !== 'internal_error');

/** One problem of one field of a request. `path` is a dotted path. */
export type FieldError = { readonly path: string; readonly message: string };

/** Details for the caller. Never a secret, a token or a claim. */
export type FailureDetails = {
  /** One sentence that tells the caller how to fix the request. */
  readonly message?: string;
  readonly errors?: readonly FieldError[];
  readonly retryAfterSeconds?: number;
  /** Delay until a wallet shall ask again. */
  readonly intervalSeconds?: number;
  /** Value for a `DPoP-Nonce` header (RFC 9449 section 8). */
  readonly dpopNonce?: string;
  /** Value for an `OAuth-Client-Attestation-Challenge` header (attestation-based client authentication section 6.2). */
  readonly attestationChallenge?: string;
  /** The link back to the wallet with the error, for a page for users. `place` is the part of the address that users recognize. */
  readonly wayBack?: { readonly url: string; readonly place: string };
  /** Methods that the address supports (RFC 9110 section 10.2.1). */
  readonly allow?: readonly string[];
  /** True if the client could have used HTTP Basic (RFC 6749 section 5.2). */
  readonly basic?: boolean;
  /** True if access tokens without key binding are accepted as well (RFC 6750 section 3). */
  readonly bearer?: boolean;
};

export class Failure extends Error {
  readonly code: FailureCode;
  readonly details: FailureDetails;

  /** @param options `cause` is for the log only and never reaches the caller. */
  constructor(code: FailureCode, details: FailureDetails | string = {}, options?: { cause?: unknown }) {
    const parsedDetails = typeof details === 'string' ? { message: details } : details;
    super(parsedDetails.message ?? code, options);
    this.name = 'Failure';
    this.code = code;
    this.details = parsedDetails;
  }
}

/** A reason for the log: the message contains no secret, no token and no claim. */
export class OperatorReason extends Error {}

/** Limit of problems in the message of a failure; `errors` contains all of them. */
const MAX_FAULTS_IN_MESSAGE = 5;

/** An error for fields. The message names the first problems, because a missing property may be present under a misspelt name. */
export function invalidFields(errors: readonly FieldError[]): Failure {
  return new Failure('invalid_input', { message: messageOf(errors), errors });
}

export function messageOf(errors: readonly FieldError[]): string {
  if (errors.length === 0) return 'invalid';
  const faults = errors.slice(0, MAX_FAULTS_IN_MESSAGE).map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  const remainingCount = errors.length - faults.length;
  return [...faults, ...(remainingCount > 0 ? [`${remainingCount} more in errors`] : [])].join('. Also ');
}

/** The field errors that `work` throws, by their paths below `root`; none if it succeeds. */
export function collectFieldErrors(work: () => unknown, root = ''): readonly FieldError[] {
  try {
    work();
    return [];
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const errors = error.details.errors ?? [];
    return errors.map((fault) => ({ ...fault, path: fault.path.slice(root.length) }));
  }
}

/** An error of one field, by its path in the caller's document. */
export function invalidInput(path: string, message: string): Failure {
  return new Failure('invalid_input', { message, errors: [{ path, message }] });
}
