import type { RefusalReason } from '../../domain/shared/refusal.ts';

/** A mutation of a valid presentation. */
export type Mutation = {
  /** Name of the valid presentation. */
  readonly base: string;
  /** Kind of mutation, by which mutations are counted. */
  readonly kind: string;
  readonly description: string;
  readonly text: string;
  /**
   * `same`: it must be accepted. `issuer`: the issuer signed another content, which decides. `bad`: if it is accepted, its
   * claims must equal those of the valid presentation.
   */
  readonly nature: 'same' | 'issuer' | 'bad';
};

/** A reproducible random number generator for [0, 1) (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `count` distinct positions below `length`, evenly spread. */
export function spreadPositions(length: number, count: number, random: () => number): readonly number[] {
  const chunkCount = Math.min(length, count);
  return Array.from({ length: chunkCount }, (_, index) => {
    const from = Math.floor((index * length) / chunkCount);
    const until = Math.floor(((index + 1) * length) / chunkCount);
    return from + Math.floor(random() * (until - from));
  });
}

/** Copies with one flipped bit. */
export function flipBits(
  bytes: Buffer,
  count: number,
  random: () => number,
): readonly { readonly description: string; readonly bytes: Buffer }[] {
  return spreadPositions(bytes.length, count, random).map((position) => {
    const bit = Math.floor(random() * 8);
    const copy = Buffer.from(bytes);
    copy.writeUInt8(copy.readUInt8(position) ^ (1 << bit), position);
    return { description: `bit ${bit} of byte ${position} of ${bytes.length}`, bytes: copy };
  });
}

/** Replacements of a value: absent, and values of every type. */
export const REPLACEMENT_VALUES: readonly (readonly [string, unknown])[] = [
  ['left out', undefined],
  ['null', null],
  ['true', true],
  ['zero', 0],
  ['a number', 7],
  ['a fraction', 0.5],
  ['empty text', ''],
  ['text', 'x'],
  ['an empty list', []],
  ['a list of text', ['x']],
  ['an empty object', {}],
];

/** Removes duplicate mutations and mutations that equal a valid presentation. */
export function deduplicate(mutations: readonly Mutation[], validTexts: readonly string[]): readonly Mutation[] {
  const byText = new Map(mutations.map((one) => [one.text, one]));
  for (const text of validTexts) byText.delete(text);
  return [...byText.values()];
}

/** Reason of a disagreement with an independent library; the first matching category counts. */
export type Category = {
  readonly explanation: string;
  readonly reasons?: readonly RefusalReason[];
  readonly kinds?: RegExp;
  readonly count: number;
};

// biome-ignore format: a table
/** Presentations that @sd-jwt/sd-jwt-vc accepts and the service rejects. */
export const SD_JWT_STRICTER: readonly Category[] = [
  { explanation: 'base64url has one spelling and no padding (RFC 7515 section 2)', kinds: /spelling|extended/,
    reasons: ['malformed'], count: 24 },
  { explanation: 'JSON has each property once (RFC 8259 section 4)', kinds: /twice/, reasons: ['malformed'], count: 13 },
  { explanation: 'a disclosure occurs once (RFC 9901 section 7.1 step 4)', reasons: ['duplicate_disclosure'], count: 6 },
  { explanation: 'dates of a key binding are numbers (RFC 7519 section 2)', reasons: ['kb_claim_type'], count: 57 },
  { explanation: 'a key binding is fresh (RFC 9901 section 7.3 step 5)', reasons: ['kb_iat_window'], count: 12 },
  { explanation: 'a key binding is for one verifier, the service (OpenID4VP 1.0 appendix B.3.6)',
    reasons: ['aud_mismatch', 'aud_not_string'], count: 39 },
  { explanation: 'the algorithm was offered and fits the key (RFC 8725 section 3.1)',
    reasons: ['kb_alg', 'issuer_alg'], count: 32 },
  { explanation: 'transaction data is confirmed (OpenID4VP 1.0 appendix B.3.3.1)',
    reasons: ['transaction_data_missing', 'transaction_data_mismatch'], count: 11 },
  { explanation: 'digests and disclosures have their format and position (RFC 9901 sections 4.2 and 7.1)',
    reasons: ['malformed_sd', 'malformed_array_digest', 'reserved_key', 'nested_sd_alg', 'wrong_disclosure_length',
      'malformed_disclosure', 'reserved_claim_name'], count: 13 },
  { explanation: 'a named hash algorithm is supported (RFC 9901 section 9.4)', reasons: ['unsupported_hash'], count: 8 },
  { explanation: 'some claims are never selectively disclosable (SD-JWT VC section 2.2.2.3)', reasons: ['forbidden_disclosure'], count: 5 },
  { explanation: 'disclosures nest up to a limit (RFC 9901 section 9.5 leaves it open)', reasons: ['too_deep'], count: 1 },
  { explanation: 'a credential has its type (SD-JWT VC section 2.2.1)', reasons: ['issuer_typ'], count: 11 },
  { explanation: 'an unknown critical extension is rejected (RFC 7515 section 4.1.11)',
    reasons: ['unsupported_crit'], count: 19 },
  { explanation: 'the whole path is validated (RFC 5280 section 6.1), which that library leaves to its caller',
    reasons: ['untrusted_chain', 'certificate_profile', 'issuer_key_unresolved'], count: 4 },
  { explanation: 'registered claims have their format (SD-JWT VC section 2.2.2)', reasons: ['malformed'], count: 39 },
  { explanation: 'a status reference is usable (Token Status List section 6.2)', reasons: ['status_invalid'], count: 10 },
];

// biome-ignore format: a table
/** Presentations that @owf/mdoc accepts and the service rejects. */
export const MDOC_STRICTER: readonly Category[] = [
  { explanation: 'a map has each key once (RFC 8949 section 5.6)', kinds: /twice/, reasons: ['malformed'], count: 78 },
  { explanation: 'keys are integers or text (ISO/IEC 18013-5 section 8.3.2.1.2.2)', kinds: /key of bytes/,
    reasons: ['malformed'], count: 15 },
  { explanation: 'a namespace that is there has items (ISO/IEC 18013-5 section 8.3.2.1.2.2)', kinds: /CBOR|items/,
    reasons: ['malformed'], count: 4 },
  { explanation: 'a device signs or makes a MAC, and signs what is detached (ISO/IEC 18013-5 section 9.1.3)', kinds: /device/,
    reasons: ['malformed'], count: 2 },
  { explanation: 'a response has one document (HAIP 1.0 section 5.3.1)', reasons: ['multiple_documents'], count: 4 },
  { explanation: 'an element occurs once (ISO/IEC 18013-5 section 9.1.2.4)', reasons: ['duplicate_element'], count: 9 },
  { explanation: 'digests and signatures cover what was sent (ISO/IEC 18013-5 sections 9.1.2.5 and 9.1.3.4)',
    reasons: ['digest_mismatch', 'device_signature'], count: 23 },
  { explanation: 'the version is supported (ISO/IEC 18013-5 section 8.3.2.1.2.2)', reasons: ['unsupported_version'], count: 9 },
  { explanation: 'the status is OK (ISO/IEC 18013-5 section 8.3.2.1.2.3)', reasons: ['response_status'], count: 7 },
  { explanation: 'the algorithm was offered and fits the key (RFC 9053 section 2)',
    reasons: ['device_alg', 'issuer_alg'], count: 16 },
  { explanation: 'a device signs only authorized elements (ISO/IEC 18013-5 section 9.3.2)',
    reasons: ['key_authorization'], count: 2 },
  { explanation: 'an unknown critical extension is rejected (RFC 9052 section 3.1)', reasons: ['unsupported_crit'], count: 1 },
  { explanation: 'certificates are in the unprotected header and complete DER (ISO/IEC 18013-5 section 9.1.2.4)',
    reasons: ['issuer_key_unresolved'], count: 4 },
  { explanation: 'the whole path is validated (RFC 5280 section 6.1), which that library leaves to its caller',
    reasons: ['certificate_profile', 'untrusted_chain'], count: 1 },
  { explanation: 'the document type is that of the issuer (ISO/IEC 18013-5 section 9.3.1)', reasons: ['doctype_mismatch'], count: 3 },
  { explanation: 'a signature is not from the future (ISO/IEC 18013-5 section 9.3.1)', reasons: ['credential_not_yet_valid'], count: 1 },
];

// biome-ignore format: a table
/** Presentations that @owf/mdoc rejects and the service accepts. */
export const MDOC_LOOSER: readonly Category[] = [
  { explanation: 'strings may come in chunks (RFC 8949 section 3.2.3)', kinds: /in chunks/, count: 24 },
  { explanation: 'labels of headers may be text (RFC 9052 section 1.4)', kinds: /an additional entry/, count: 6 },
  { explanation: 'a signature may be tagged (RFC 9052 section 4.2)', kinds: /the device changed/, count: 1 },
  { explanation: 'a wallet may disclose no element (ISO/IEC 18013-5 section 8.3.2.1.2.2)', kinds: /left out|a bit flipped/, count: 5 },
  { explanation: 'the minor version is arbitrary (ISO/IEC 18013-5 section 8.3.2.1.2.2)', kinds: /security object/, count: 1 },
];

/**
 * Accepted mutations of mdocs by kind. Unsigned parts may use any CBOR encoding (RFC 8949 section 3), may contain unknown
 * properties, and need not disclose all elements.
 */
export const HARMLESS_MDOC_MUTATIONS: Readonly<Record<string, number>> = {
  'CBOR: a float of the value': 3,
  'CBOR: a long head': 63,
  'CBOR: an indefinite length': 36,
  'CBOR: in chunks': 24,
  'CBOR: entries in another order': 12,
  'CBOR: elements in another order': 6,
  // A list of one certificate (RFC 9360 section 2 writes one certificate without a list).
  'CBOR: a list around it': 3,
  'CBOR: an additional entry': 21,
  'CBOR: an entry left out': 6,
  'CBOR: an element left out': 8,
  // Without the name `nameSpaces`, the elements are not disclosed.
  'a bit flipped': 2,
  // The tag of a signature.
  'the device changed': 1,
};

/** The explanation of a disagreement. @throws Error when no category matches. */
export function explain(categories: readonly Category[], { kind, description, base }: Mutation, reason: string | undefined): string {
  const matches = ({ kinds, reasons }: Category) =>
    (kinds === undefined || kinds.test(kind)) && (reasons === undefined || reasons.some((one) => one === reason));
  const category = categories.find(matches);
  if (category === undefined) throw new Error(`unexplained: ${base}: ${kind}, ${description}: ${reason ?? 'accepted by the service'}`);
  return category.explanation;
}
