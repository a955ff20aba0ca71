/**
 * What ends a request. One closed union, named as the protocols name things; each surface (administrative,
 * OAuth, issuance, presentation) renders it in `adapters/http/output/failures.ts`.
 */
export const FAILURE_CODES = [
  // administrative
  'invalid_input',
  'unauthenticated',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'conflict',
  'session_quota_exceeded',
  'gone',
  'too_large',
  'unsupported_media_type',
  'too_many_requests',
  'unavailable',
  // OAuth 2.0 (RFC 6749, RFC 6750, RFC 9449, RFC 9396)
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unsupported_grant_type',
  'unauthorized_client',
  'unsupported_response_type',
  'request_not_supported',
  'invalid_target',
  'invalid_client_attestation',
  'use_attestation_challenge',
  'use_fresh_attestation',
  'invalid_scope',
  'invalid_authorization_details',
  'invalid_dpop_proof',
  'use_dpop_nonce',
  'missing_token',
  'invalid_token',
  'insufficient_scope',
  // Interactive authorization (OpenID4VCI 1.1, OAuth 2.0 for First-Party Applications)
  'missing_interaction_type',
  'redirect_to_web',
  'invalid_session',
  'access_denied',
  // OpenID4VCI 1.0
  'invalid_credential_request',
  'unknown_credential_configuration',
  'unknown_credential_identifier',
  'invalid_proof',
  'invalid_nonce',
  'invalid_encryption_parameters',
  'credential_request_denied',
  'invalid_transaction_id',
  'issuance_pending',
  'invalid_notification_id',
  'invalid_notification_request',
] as const;
export type FailureCode = (typeof FAILURE_CODES)[number];

/** One fault of one field of a request. `path` is a JSON pointer-like dotted path. */
export type FieldError = { readonly path: string; readonly message: string };

/** What the caller may know. Never a secret, a token or a claim. */
export type FailureDetails = {
  /** One sentence that tells the caller what to do differently. */
  readonly message?: string;
  readonly errors?: readonly FieldError[];
  readonly retryAfterSeconds?: number;
  /** When a wallet shall ask again. */
  readonly intervalSeconds?: number;
  /** Value for a `DPoP-Nonce` header (RFC 9449 section 8). */
  readonly dpopNonce?: string;
  /** Value for an `OAuth-Client-Attestation-Challenge` header (attestation-based client authentication section 6.2). */
  readonly attestationChallenge?: string;
  /** On a page for users: leads back to the wallet with the error. `place` is what users know the address by. */
  readonly wayBack?: { readonly url: string; readonly place: string };
  /** Methods that the address does serve (RFC 9110 section 10.2.1). */
  readonly allow?: readonly string[];
  /** The client could have used HTTP Basic (RFC 6749 section 5.2). */
  readonly basic?: boolean;
  /** Access tokens that are bound to no key are taken here, too (RFC 6750 section 3). */
  readonly bearer?: boolean;
};

export class Failure extends Error {
  readonly code: FailureCode;
  readonly details: FailureDetails;

  /** @param options `cause` is for the log only and never reaches the caller. */
  constructor(code: FailureCode, details: FailureDetails | string = {}, options?: { cause?: unknown }) {
    const known = typeof details === 'string' ? { message: details } : details;
    super(known.message ?? code, options);
    this.name = 'Failure';
    this.code = code;
    this.details = known;
  }
}

/** Why something failed, for the log: the message holds no secret, no token and no claim. */
export class OperatorReason extends Error {}

/** Faults in the message of a failure; `errors` has all of them. */
const MAX_FAULTS_IN_MESSAGE = 5;

/** Faults of fields; the message names the first ones: a member that is missing may be there under a misspelt name. */
export function invalidFields(errors: readonly FieldError[]): Failure {
  return new Failure('invalid_input', { message: messageOf(errors), errors });
}

export function messageOf(errors: readonly FieldError[]): string {
  if (errors.length === 0) return 'invalid';
  const faults = errors.slice(0, MAX_FAULTS_IN_MESSAGE).map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  const left = errors.length - faults.length;
  return [...faults, ...(left > 0 ? [`${left} more in errors`] : [])].join('. Also ');
}

/** The faults of fields that `work` refuses, by their paths below `root`; none when it goes well. */
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

/** A fault of one field, as the caller's own document names it. */
export function invalidInput(path: string, message: string): Failure {
  return new Failure('invalid_input', { message, errors: [{ path, message }] });
}
