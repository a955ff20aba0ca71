/** Errors that a wallet may send in place of a presentation (OpenID4VP 1.0 section 8.5, RFC 6749 section 4.1.2.1). */
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

/** Replaces unspecified errors of wallets. */
const OTHER_WALLET_ERROR = 'wallet_error';

/** Reasons for the failure of a session: the closed list that the API document publishes and `error-reference.ts` explains. */
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
  // errors of wallets
  ...WALLET_ERRORS,
  OTHER_WALLET_ERROR,
] as const;
export type SessionFailureCode = (typeof SESSION_FAILURE_CODES)[number];

export type SessionFailure = {
  readonly code: SessionFailureCode;
  /** Names and numbers for the operator, never a claim's value. */
  readonly message: string;
};

/** Maps a wallet's error to the list; an unlisted code becomes part of the message. */
export function walletFailure(code: string | undefined, message: string): SessionFailure {
  const listedCode = WALLET_ERRORS.find((name) => name === code);
  if (listedCode !== undefined) return { code: listedCode, message };
  return { code: OTHER_WALLET_ERROR, message: code === undefined ? message : `${code}: ${message}` };
}

/** Maps a stored failure to the list, because an earlier release stored the wallet's code unchanged. */
export function listedFailure({ code, message }: { readonly code: string; readonly message: string }) {
  const listedCode = SESSION_FAILURE_CODES.find((name) => name === code);
  return listedCode === undefined ? walletFailure(code, message) : { code: listedCode, message };
}
