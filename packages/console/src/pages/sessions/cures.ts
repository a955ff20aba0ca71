import { explainReason } from './explanations.ts';

export type Cure = {
  readonly what: string;
  readonly at?: 'question' | 'anchors';
  /** A page of the documentation, and a heading of it. */
  readonly page?: { readonly file: 'troubleshooting' | 'errors'; readonly section: string };
};
type FixLocation = Omit<Cure, 'what'>;

const SIGNATURES: FixLocation = { page: { file: 'troubleshooting', section: 'A signature is not trusted' } };
const QUESTION: FixLocation = { at: 'question' };

const GROUPS: readonly (readonly [string, FixLocation])[] = [
  ['untrusted_chain issuer_key_unresolved', { at: 'anchors', ...SIGNATURES }],
  [
    'certificate_expired certificate_profile certificate_revoked x5c_contains_anchor issuer_country_mismatch signed_outside_certificate revocation_unavailable status_unknown status_unavailable status_invalid',
    SIGNATURES,
  ],
  [
    'untrusted_authority type_metadata_unavailable type_metadata_invalid type_metadata_broken format_mismatch type_mismatch doctype_mismatch missing_claim value_mismatch claim_set_unsatisfied transaction_data_missing transaction_data_mismatch transaction_data_alg',
    QUESTION,
  ],
];

const REASON_PLACES: ReadonlyMap<string, FixLocation> = new Map(
  GROUPS.flatMap(([reasons, place]) => reasons.split(' ').map((reason): [string, FixLocation] => [reason, place])),
);

export function cureOf(reason: string): Cure {
  const explanation = explainReason(reason);
  if (explanation !== undefined) return { what: explanation.fix, ...REASON_PLACES.get(reason) };
  if (!reason.startsWith('missing ')) return { what: 'See docs/reference/errors.md.' };
  return { what: explainReason('missing_claim')?.fix ?? '', ...QUESTION };
}

export const FAILURE_PLACES: Readonly<Record<string, FixLocation>> = {
  claims_unavailable: { page: { file: 'troubleshooting', section: 'The webhook is not called' } },
  webhook_failed: { page: { file: 'errors', section: 'Failed webhooks' } },
  invalid_client: SIGNATURES,
  access_denied: QUESTION,
  invalid_request: QUESTION,
  invalid_scope: QUESTION,
  invalid_request_uri_method: QUESTION,
  invalid_transaction_data: QUESTION,
  vp_formats_not_supported: QUESTION,
  response_mode: QUESTION,
};

export const PLACED_REASONS = [...REASON_PLACES.keys()];
