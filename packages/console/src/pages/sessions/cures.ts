export type Cure = {
  readonly what: string;
  readonly at?: 'question' | 'anchors';
  /** A section of docs/reference/troubleshooting.md: a test looks for it. */
  readonly section?: string;
};

const SIGNATURES = 'A signature is not trusted';
const ISSUER = { what: 'Nothing here: the issuer has to issue it anew. Tell it the reason.' };
const WALLET = { what: 'Nothing here: update the wallet, or report it to its maker with this session.' };
const CHANGED = {
  what: 'Do not go by it: it is not what the issuer signed. Ask again; if it comes again, have the holder collect a new one, and report the wallet to its maker.',
};
const AGAIN = { what: 'Make another request: each is answered once, and soon.' };
const CERTIFICATE: Cure = { what: 'The issuer needs another certificate of its authority, and issues anew.', section: SIGNATURES };
const LISTS: Cure = {
  what: 'See whether this service reaches the list that the certificate or the credential names.',
  section: SIGNATURES,
};
const OTHER_QUERY: Cure = {
  what: 'Compare type, format and paths of the question with what the wallet has, or ask for less.',
  at: 'question',
};

const GROUPS: readonly (readonly [string, Cure])[] = [
  [
    'untrusted_chain',
    { what: 'Add the authority of the issuer to the trust anchors, if you trust it.', at: 'anchors', section: SIGNATURES },
  ],
  ['untrusted_authority', { what: 'Name this authority in trusted_authorities, or leave them out.', at: 'question' }],
  ['issuer_key_unresolved', { ...CERTIFICATE, at: 'anchors' }],
  [
    'certificate_expired certificate_profile certificate_revoked x5c_contains_anchor issuer_country_mismatch signed_outside_certificate',
    CERTIFICATE,
  ],
  ['revocation_unavailable status_unknown status_unavailable status_invalid', LISTS],
  ['status_revoked status_suspended', { what: 'Nothing here: the holder asks the issuer why.' }],
  [
    'type_metadata_unavailable type_metadata_invalid type_metadata_broken',
    { what: 'The issuer mends the metadata of the type, or the question enforces them no more.', at: 'question' },
  ],
  ['format_mismatch type_mismatch doctype_mismatch missing_claim value_mismatch claim_set_unsatisfied strong_authentication', OTHER_QUERY],
  [
    'transaction_data_missing transaction_data_mismatch transaction_data_alg',
    { what: 'Compare type and hash algorithms of the transaction with what the wallet knows.', at: 'question' },
  ],
  ['issuer_signature digest_mismatch unreferenced_disclosure', CHANGED],
  ['nonce_mismatch repeated_credential kb_iat_window', AGAIN],
  [
    'credential_expired credential_not_yet_valid',
    { what: 'The holder collects a new one. If it is not out of its time, look at the clock of this service.' },
  ],
  [
    'issuer_typ issuer_alg unsupported_crit credential_audience holder_key_missing unsupported_hash duplicate_element duplicate_digest malformed_sd malformed_array_digest nested_sd_alg reserved_key claim_exists reserved_claim_name forbidden_disclosure malformed too_deep key_authorization',
    ISSUER,
  ],
];

const CURES: ReadonlyMap<string, Cure> = new Map(
  GROUPS.flatMap(([reasons, cure]) => reasons.split(' ').map((reason): [string, Cure] => [reason, cure])),
);

export const cureOf = (reason: string): Cure => CURES.get(reason) ?? (reason.startsWith('missing ') ? OTHER_QUERY : WALLET);

export const FAILURE_PLACES: Readonly<Record<string, Omit<Cure, 'what'>>> = {
  claims_unavailable: { section: 'The webhook never comes' },
  webhook_failed: { section: 'A webhook failed' },
  invalid_client: { section: SIGNATURES },
  access_denied: { at: 'question' },
  invalid_request: { at: 'question' },
  invalid_scope: { at: 'question' },
  invalid_request_uri_method: { at: 'question' },
  invalid_transaction_data: { at: 'question' },
  vp_formats_not_supported: { at: 'question' },
  response_mode: { at: 'question' },
};

export const CURED_REASONS = [...CURES.keys()];
