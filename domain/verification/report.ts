import type { JsonObject } from '../shared/json.ts';
import type { RefusalReason } from '../shared/refusal.ts';

type Check = { readonly what: string; readonly section: string; readonly reasons: readonly RefusalReason[] };

// biome-ignore format: a table
/** The checks of one SD-JWT VC in the order in which they are made, and the refusals that each can end in. */
const CHECKS: readonly Check[] = [
  { what: 'form', section: 'RFC 9901 section 4', reasons: ['malformed', 'format_mismatch'] },
  { what: 'holder binding present', section: 'RFC 9901 section 9.5', reasons: ['holder_binding_missing'] },
  { what: 'issuer header', section: 'SD-JWT VC section 2.2.1',
    reasons: ['issuer_typ', 'issuer_alg', 'unsupported_crit', 'issuer_key_unresolved'] },
  { what: 'issuer signature', section: 'RFC 9901 section 7.1', reasons: ['issuer_signature'] },
  { what: 'issuer trust', section: 'RFC 5280 section 6.1',
    reasons: ['untrusted_chain', 'certificate_expired', 'certificate_profile', 'x5c_contains_anchor'] },
  { what: 'disclosures', section: 'RFC 9901 section 7.1',
    reasons: ['unsupported_hash', 'duplicate_digest', 'duplicate_disclosure', 'unreferenced_disclosure',
      'wrong_disclosure_length', 'malformed_disclosure', 'reserved_claim_name', 'claim_exists', 'malformed_sd',
      'malformed_array_digest', 'nested_sd_alg', 'reserved_key', 'too_deep', 'forbidden_disclosure'] },
  { what: 'validity period', section: 'SD-JWT VC section 2.2.2',
    reasons: ['credential_expired', 'credential_not_yet_valid'] },
  { what: 'key binding', section: 'RFC 9901 section 7.3',
    reasons: ['holder_key_missing', 'kb_typ', 'kb_alg', 'kb_signature', 'kb_claim_missing', 'kb_claim_type',
      'nonce_mismatch', 'aud_not_string', 'aud_mismatch', 'kb_iat_window', 'sd_hash_mismatch'] },
  { what: 'transaction data', section: 'OpenID4VP 1.0 section 8.4',
    reasons: ['transaction_data_missing', 'transaction_data_mismatch', 'transaction_data_alg'] },
  { what: 'status', section: 'Token Status List section 8.3',
    reasons: ['status_revoked', 'status_suspended', 'status_unknown', 'status_unavailable', 'status_invalid'] },
  { what: 'query', section: 'OpenID4VP 1.0 section 6',
    reasons: ['type_mismatch', 'untrusted_authority', 'missing_claim', 'value_mismatch', 'claim_set_unsatisfied'] },
];

const CHECK_OF_REASON = new Map(CHECKS.flatMap((check, at) => check.reasons.map((reason) => [reason, at])));

/**
 * The operator's report on one presentation: what was looked at, in order, up to and including what refused it.
 * @param index position among the presentations of the query.
 * @param detail names and numbers, never a claim's value.
 */
export function reportOf(
  id: string,
  index: number,
  refusal?: { readonly reason: RefusalReason; readonly detail: string },
): JsonObject[] {
  const failed = refusal === undefined ? CHECKS.length : (CHECK_OF_REASON.get(refusal.reason) ?? 0);
  const passed = CHECKS.slice(0, failed).map(({ what, section }) => ({
    id,
    index,
    check: what,
    result: 'passed',
    section,
  }));
  const check = CHECKS[failed];
  if (refusal === undefined || check === undefined) return passed;
  const { reason, detail } = refusal;
  return [
    ...passed,
    { id, index, check: check.what, result: 'failed', reason, detail, section: check.section },
  ];
}

/** A check of the response as a whole that refused it. */
export function responseFault(check: string, reason: string, section: string): JsonObject {
  return { check, result: 'failed', reason, section };
}
