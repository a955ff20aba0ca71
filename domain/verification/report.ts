import type { SupportedFormat } from '../dcql/formats.ts';
import type { JsonObject } from '../shared/json.ts';
import type { RefusalReason } from '../shared/refusal.ts';

type Check = { readonly what: CheckName; readonly section: string; readonly reasons: readonly RefusalReason[] };

export type CheckName =
  | 'form'
  | 'holder binding present'
  | 'issuer header'
  | 'issuer signature'
  | 'issuer trust'
  | 'disclosures'
  | 'elements'
  | 'validity period'
  | 'key binding'
  | 'device signature'
  | 'transaction data'
  | 'certificate revocation'
  | 'status'
  | 'query'
  | 'type metadata';

/** The input of a check: names, numbers and addresses, never a claim's value. */
export type CheckInputs = { readonly [name in CheckName]?: string };

// biome-ignore format: a table
const QUERY_CHECK: Check =
  { what: 'query', section: 'OpenID4VP 1.0 section 6',
    reasons: ['type_mismatch', 'untrusted_authority', 'missing_claim', 'value_mismatch', 'claim_set_unsatisfied',
      'repeated_credential'] };
// biome-ignore format: a table
const FINAL_CHECKS: readonly Check[] = [
  { what: 'certificate revocation', section: 'RFC 5280 section 6.3',
    reasons: ['certificate_revoked', 'revocation_unavailable'] },
  { what: 'status', section: 'Token Status List section 8.3',
    reasons: ['status_revoked', 'status_suspended', 'status_unknown', 'status_unavailable', 'status_invalid'] },
];

/** Final checks that need network requests; they are skipped for presentations that accompany a response to another request. */
const ONLINE_CHECKS: ReadonlySet<CheckName> = new Set(['type metadata', 'certificate revocation', 'status']);
/** Checks that bind a presentation to a request and to its holder; a trial has no request and skips them. */
const BINDING_CHECKS: ReadonlySet<CheckName> = new Set(['holder binding present', 'key binding', 'device signature', 'transaction data']);
/** Optional checks, reported as passed only if the configuration enables them. */
const OPTIONAL_CHECKS: ReadonlySet<CheckName> = new Set(['type metadata', 'certificate revocation']);

// biome-ignore format: a table
/** The checks of one presentation in their order, with the refusals of each. */
const CHECKS: Readonly<Record<SupportedFormat, readonly Check[]>> = {
  'dc+sd-jwt': [
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
      reasons: ['credential_expired', 'credential_not_yet_valid', 'credential_audience'] },
    { what: 'key binding', section: 'RFC 9901 section 7.3',
      reasons: ['holder_key_missing', 'kb_typ', 'kb_alg', 'kb_signature', 'kb_claim_missing', 'kb_claim_type',
        'nonce_mismatch', 'aud_not_string', 'aud_mismatch', 'kb_iat_window', 'sd_hash_mismatch'] },
    { what: 'transaction data', section: 'OpenID4VP 1.0 section 8.4',
      reasons: ['transaction_data_missing', 'transaction_data_mismatch', 'transaction_data_alg',
        'strong_authentication'] },
    QUERY_CHECK,
    { what: 'type metadata', section: 'SD-JWT VC section 5.6',
      reasons: ['type_metadata_unavailable', 'type_metadata_invalid', 'type_metadata_broken'] },
    ...FINAL_CHECKS,
  ],
  mso_mdoc: [
    { what: 'form', section: 'ISO/IEC 18013-5 section 8.3.2.1.2.2',
      reasons: ['malformed', 'format_mismatch', 'response_status', 'multiple_documents', 'unsupported_version',
        'too_deep'] },
    { what: 'issuer header', section: 'ISO/IEC 18013-5 section 9.1.2.4',
      reasons: ['issuer_alg', 'unsupported_crit', 'issuer_key_unresolved'] },
    { what: 'issuer signature', section: 'ISO/IEC 18013-5 section 9.3.1', reasons: ['issuer_signature'] },
    { what: 'issuer trust', section: 'RFC 5280 section 6.1',
      reasons: ['untrusted_chain', 'certificate_expired', 'certificate_profile', 'x5c_contains_anchor'] },
    { what: 'validity period', section: 'ISO/IEC 18013-5 section 9.3.1',
      reasons: ['credential_expired', 'credential_not_yet_valid', 'signed_outside_certificate'] },
    { what: 'elements', section: 'ISO/IEC 18013-5 section 9.3.1',
      reasons: ['doctype_mismatch', 'unsupported_hash', 'digest_mismatch', 'duplicate_digest', 'duplicate_element',
        'issuer_country_mismatch'] },
    { what: 'device signature', section: 'ISO/IEC 18013-5 section 9.1.3',
      reasons: ['device_auth_missing', 'holder_key_missing', 'holder_binding_missing', 'device_alg',
        'device_signature', 'key_authorization'] },
    { what: 'transaction data', section: 'OpenID4VP 1.0 appendix B.2.1',
      reasons: ['transaction_data_missing', 'transaction_data_mismatch', 'transaction_data_alg'] },
    QUERY_CHECK,
    ...FINAL_CHECKS,
  ],
};

/** Limit in characters, because a wallet can influence names in details. */
const MAX_DETAIL = 1_000;

/** Position of a refusal among the checks of a format. A reason without a row belongs to the form. */
const POSITIONS = new Map(
  Object.entries(CHECKS).map(([format, checks]) => [
    format,
    new Map(checks.flatMap(({ reasons }, position) => reasons.map((reason) => [reason, position]))),
  ]),
);

export type ReportedPresentation = {
  readonly queryId: string;
  /** Position among the presentations of the query. */
  readonly index: number;
  readonly format: SupportedFormat;
  readonly inputs: CheckInputs;
  /** True if checks with network requests were skipped. */
  readonly isOffline?: boolean;
  /** True for a trial, which answers no request. */
  readonly isTrial?: true;
};

/**
 * The operator's report on one presentation: the checks in order, up to and including the failed one.
 * @param refusal its detail has names and numbers, never a claim's value.
 */
export function reportOf(
  { queryId: id, index, format, inputs, isOffline: isUnasked = false, isTrial }: ReportedPresentation,
  refusal?: { readonly reason: RefusalReason; readonly detail: string },
): JsonObject[] {
  const checks = CHECKS[format];
  const failed = refusal === undefined ? checks.length : (POSITIONS.get(format)?.get(refusal.reason) ?? 0);
  return checks.slice(0, failed + 1).flatMap(({ what, section }, position) => {
    const input = inputs[what];
    if (isUnasked && ONLINE_CHECKS.has(what)) return [];
    if (isTrial === true && BINDING_CHECKS.has(what)) return [];
    if (OPTIONAL_CHECKS.has(what) && input === undefined && position < failed) return [];
    const common = { id, index, check: what, ...(input !== undefined && { input }) };
    if (refusal === undefined || position < failed) return { ...common, result: 'passed', section };
    const { reason, detail } = refusal;
    return { ...common, result: 'failed', reason, detail: detail.slice(0, MAX_DETAIL), section };
  });
}

/** Checks of a format that a trial skips. */
export function skippedChecks(format: SupportedFormat): readonly CheckName[] {
  return CHECKS[format].map(({ what }) => what).filter((what) => BINDING_CHECKS.has(what));
}

/** A check of the whole response that refused it. */
export function responseFault(check: string, reason: string, section: string): JsonObject {
  return { check, result: 'failed', reason, section };
}
