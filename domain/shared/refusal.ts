/**
 * Reasons for rejecting a presented credential. The closed list is shared by the code, its tests and the operator's report; the wallet
 * never learns more than the protocol allows.
 */
export const REFUSAL_REASONS = [
  'malformed',
  'issuer_typ',
  'issuer_alg',
  'issuer_key_unresolved',
  'issuer_signature',
  'untrusted_chain',
  'certificate_expired',
  'certificate_profile',
  'x5c_contains_anchor',
  'certificate_revoked',
  'revocation_unavailable',
  'unsupported_crit',
  'unsupported_hash',
  'duplicate_digest',
  'duplicate_disclosure',
  'unreferenced_disclosure',
  'wrong_disclosure_length',
  'malformed_disclosure',
  'reserved_claim_name',
  'claim_exists',
  'forbidden_disclosure',
  'malformed_sd',
  'malformed_array_digest',
  'nested_sd_alg',
  'reserved_key',
  'too_deep',
  'credential_expired',
  'credential_not_yet_valid',
  'holder_binding_missing',
  'holder_key_missing',
  'kb_typ',
  'kb_alg',
  'kb_signature',
  'kb_iat_window',
  'kb_claim_missing',
  'kb_claim_type',
  'credential_audience',
  'aud_mismatch',
  'aud_not_string',
  'nonce_mismatch',
  'sd_hash_mismatch',
  'transaction_data_missing',
  'transaction_data_mismatch',
  'transaction_data_alg',
  'strong_authentication',
  'digest_mismatch',
  'duplicate_element',
  'doctype_mismatch',
  'signed_outside_certificate',
  'issuer_country_mismatch',
  'repeated_credential',
  'unsupported_version',
  'device_auth_missing',
  'device_alg',
  'device_signature',
  'key_authorization',
  'response_status',
  'multiple_documents',
  'format_mismatch',
  'type_mismatch',
  'missing_claim',
  'value_mismatch',
  'claim_set_unsatisfied',
  'untrusted_authority',
  'type_metadata_unavailable',
  'type_metadata_invalid',
  'type_metadata_broken',
  'status_revoked',
  'status_suspended',
  'status_unknown',
  'status_unavailable',
  'status_invalid',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Thrown during the check of a presentation; the caller discards that presentation and continues. */
export class Refusal extends Error {
  readonly reason: RefusalReason;

  /** @param detail for the operator's report: names and numbers, never a claim's value. */
  constructor(reason: RefusalReason, detail?: string) {
    super(detail === undefined ? reason : `${reason}: ${detail}`);
    this.name = 'Refusal';
    this.reason = reason;
  }
}

/** The presentation belongs to another request: nothing of the whole response may be used (OpenID4VP 1.0 sections 14.1 and 14.2.2). */
export class NonceRefusal extends Refusal {
  constructor(reason: RefusalReason, detail = 'nonce') {
    super(reason, detail);
    this.name = 'NonceRefusal';
  }
}
