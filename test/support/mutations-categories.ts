import type { RefusalReason } from '../../domain/shared/refusal.ts';
import type { Mutation } from './mutations.ts';

/** Why we say something else than a reader of other people: the first category that fits. */
export type Category = {
  readonly why: string;
  readonly reasons?: readonly RefusalReason[];
  readonly kinds?: RegExp;
  readonly count: number;
};

// biome-ignore format: a table
/** What @sd-jwt/sd-jwt-vc takes and we refuse. */
export const SD_JWT_STRICTER: readonly Category[] = [
  { why: 'base64url has one spelling and no padding (RFC 7515 section 2)', kinds: /spelling|extended/,
    reasons: ['malformed'], count: 24 },
  { why: 'JSON names a member once (RFC 8259 section 4)', kinds: /twice/, reasons: ['malformed'], count: 13 },
  { why: 'a disclosure comes once (RFC 9901 section 7.1 step 4)', reasons: ['duplicate_disclosure'], count: 6 },
  { why: 'dates of a binding are numbers (RFC 7519 section 2)', reasons: ['kb_claim_type'], count: 57 },
  { why: 'a binding is fresh (RFC 9901 section 7.3 step 5)', reasons: ['kb_iat_window'], count: 12 },
  { why: 'a binding is made for one verifier, who is us (OpenID4VP 1.0 appendix B.3.6)',
    reasons: ['aud_mismatch', 'aud_not_string'], count: 39 },
  { why: 'an algorithm is one that was offered, and that of the key (RFC 8725 section 3.1)',
    reasons: ['kb_alg', 'issuer_alg'], count: 32 },
  { why: 'transaction data is confirmed (OpenID4VP 1.0 appendix B.3.3.1)',
    reasons: ['transaction_data_missing', 'transaction_data_mismatch'], count: 11 },
  { why: 'digests and disclosures have their form and their place (RFC 9901 sections 4.2 and 7.1)',
    reasons: ['malformed_sd', 'malformed_array_digest', 'reserved_key', 'nested_sd_alg', 'wrong_disclosure_length',
      'malformed_disclosure', 'reserved_claim_name'], count: 13 },
  { why: 'a hash that is named is one that is known (RFC 9901 section 9.4)', reasons: ['unsupported_hash'], count: 8 },
  { why: 'some claims are never hidden (SD-JWT VC section 2.2.2.3)', reasons: ['forbidden_disclosure'], count: 5 },
  { why: 'disclosures nest to a limit (RFC 9901 section 9.5 leaves it to us)', reasons: ['too_deep'], count: 1 },
  { why: 'a credential says what it is (SD-JWT VC section 2.2.1)', reasons: ['issuer_typ'], count: 11 },
  { why: 'an extension that is not understood refuses (RFC 7515 section 4.1.11)',
    reasons: ['unsupported_crit'], count: 19 },
  { why: 'a path is validated whole (RFC 5280 section 6.1), which that reader leaves to its caller',
    reasons: ['untrusted_chain', 'certificate_profile', 'issuer_key_unresolved'], count: 4 },
  { why: 'claims of the type have their form (SD-JWT VC section 2.2.2)', reasons: ['malformed'], count: 39 },
  { why: 'a status is one that can be asked (Token Status List section 6.2)', reasons: ['status_invalid'], count: 10 },
];

// biome-ignore format: a table
/** What @owf/mdoc takes and we refuse. */
export const MDOC_STRICTER: readonly Category[] = [
  { why: 'a map names a key once (RFC 8949 section 5.6)', kinds: /twice/, reasons: ['malformed'], count: 78 },
  { why: 'keys are integers or text (ISO/IEC 18013-5 section 8.3.2.1.2.2)', kinds: /key of bytes/,
    reasons: ['malformed'], count: 15 },
  { why: 'a namespace that is there has items (ISO/IEC 18013-5 section 8.3.2.1.2.2)', kinds: /CBOR|items/,
    reasons: ['malformed'], count: 4 },
  { why: 'a device signs or makes a MAC, and signs what is detached (ISO/IEC 18013-5 section 9.1.3)', kinds: /device/,
    reasons: ['malformed'], count: 2 },
  { why: 'a response has one document (HAIP 1.0 section 5.3.1)', reasons: ['multiple_documents'], count: 4 },
  { why: 'an element comes once (ISO/IEC 18013-5 section 9.1.2.4)', reasons: ['duplicate_element'], count: 9 },
  { why: 'digests and signatures cover what was sent (ISO/IEC 18013-5 sections 9.1.2.5 and 9.1.3.4)',
    reasons: ['digest_mismatch', 'device_signature'], count: 23 },
  { why: 'the version is one we know (ISO/IEC 18013-5 section 8.3.2.1.2.2)', reasons: ['unsupported_version'], count: 9 },
  { why: 'the status is OK (ISO/IEC 18013-5 section 8.3.2.1.2.3)', reasons: ['response_status'], count: 7 },
  { why: 'an algorithm is one that was offered, and that of the key (RFC 9053 section 2)',
    reasons: ['device_alg', 'issuer_alg'], count: 16 },
  { why: 'a device vouches for what it was allowed to (ISO/IEC 18013-5 section 9.3.2)',
    reasons: ['key_authorization'], count: 2 },
  { why: 'an extension that is not understood refuses (RFC 9052 section 3.1)', reasons: ['unsupported_crit'], count: 1 },
  { why: 'certificates stand unprotected and are DER to the last byte (ISO/IEC 18013-5 section 9.1.2.4)',
    reasons: ['issuer_key_unresolved'], count: 4 },
  { why: 'a path is validated whole (RFC 5280 section 6.1), which that reader leaves to its caller',
    reasons: ['certificate_profile', 'untrusted_chain'], count: 1 },
  { why: 'the issuer means this type (ISO/IEC 18013-5 section 9.3.1)', reasons: ['doctype_mismatch'], count: 3 },
  { why: 'nothing is signed tomorrow (ISO/IEC 18013-5 section 9.3.1)', reasons: ['credential_not_yet_valid'], count: 1 },
];

// biome-ignore format: a table
/** What @owf/mdoc refuses and we take. */
export const MDOC_LOOSER: readonly Category[] = [
  { why: 'strings may come in chunks (RFC 8949 section 3.2.3)', kinds: /in chunks/, count: 24 },
  { why: 'labels of headers may be text (RFC 9052 section 1.4)', kinds: /an entry more/, count: 6 },
  { why: 'a signature may be tagged (RFC 9052 section 4.2)', kinds: /the device changed/, count: 1 },
  { why: 'a wallet may show no element (ISO/IEC 18013-5 section 8.3.2.1.2.2)', kinds: /left out|a bit flipped/, count: 5 },
  { why: 'the second number of a version is free (ISO/IEC 18013-5 section 8.3.2.1.2.2)', kinds: /security object/, count: 1 },
];

/**
 * Bent mdocs that are taken, by what was done to them. What no signature covers may be written in any way that CBOR
 * allows (RFC 8949 section 3), may hold members that nobody reads, and need not show all elements: a holder withholds
 * what he likes.
 */
export const HARMLESS: Readonly<Record<string, number>> = {
  'CBOR: a float of the value': 3,
  'CBOR: a long head': 63,
  'CBOR: an indefinite length': 36,
  'CBOR: in chunks': 24,
  'CBOR: entries in another order': 12,
  'CBOR: members in another order': 6,
  // A list of one certificate (RFC 9360 section 2 writes one certificate without a list).
  'CBOR: a list around it': 3,
  'CBOR: an entry more': 21,
  'CBOR: an entry left out': 6,
  'CBOR: a member left out': 8,
  // Once it is not called `nameSpaces` any more, the elements are withheld.
  'a bit flipped': 2,
  // The tag of a signature.
  'the device changed': 1,
};

/** The category that explains a disagreement. @throws Error when there is none. */
export function explain(
  categories: readonly Category[],
  { kind, what, base }: Mutation,
  reason: string | undefined,
): string {
  const fits = ({ kinds, reasons }: Category) =>
    (kinds === undefined || kinds.test(kind)) &&
    (reasons === undefined || reasons.some((one) => one === reason));
  const found = categories.find(fits);
  if (found === undefined)
    throw new Error(`unexplained: ${base}: ${kind}, ${what}: ${reason ?? 'taken by us'}`);
  return found.why;
}
