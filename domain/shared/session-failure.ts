/** What a wallet may answer in place of a presentation (OpenID4VP 1.0 section 8.5, RFC 6749 section 4.1.2.1). */
const WALLET_ERRORS = [
  'access_denied',
  'invalid_client',
  'invalid_request',
  'invalid_request_uri_method',
  'invalid_scope',
  'invalid_transaction_data',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_response_type',
  'vp_formats_not_supported',
  'wallet_unavailable',
] as const;

/** Any error of a wallet that no specification names. */
const OTHER_WALLET_ERROR = 'wallet_error';

/**
 * Why a session failed, as operators and programs see it: the closed list that the API document publishes and
 * `docs/troubleshooting.md` explains.
 */
export const SESSION_FAILURE_CODES = [
  // issuance
  'code_replayed',
  'refresh_token_replayed',
  'tx_code_attempts',
  'claims_unavailable',
  'deferred_failed',
  // verification
  'decryption_failed',
  'malformed',
  'presentation_refused',
  'response_code_missing',
  'response_mode',
  'webhook_failed',
  // both
  'cancelled',
  'internal_error',
  // what the wallet said
  ...WALLET_ERRORS,
  OTHER_WALLET_ERROR,
] as const;
export type SessionFailureCode = (typeof SESSION_FAILURE_CODES)[number];

export type SessionFailure = {
  readonly code: SessionFailureCode;
  /** For the operator: names and numbers, never a claim's value. */
  readonly message: string;
};

/** The error of a wallet as one of the list; one that it does not have stands in the message. */
export function walletFailure(code: string | undefined, message: string): SessionFailure {
  const known = WALLET_ERRORS.find((name) => name === code);
  if (known !== undefined) return { code: known, message };
  return { code: OTHER_WALLET_ERROR, message: code === undefined ? message : `${code}: ${message}` };
}

/** What an earlier release stored may have the wallet's own word for its code. */
export function listedFailure({ code, message }: { readonly code: string; readonly message: string }) {
  const known = SESSION_FAILURE_CODES.find((name) => name === code);
  return known === undefined ? walletFailure(code, message) : { code: known, message };
}
