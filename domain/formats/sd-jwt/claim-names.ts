/** SD-JWT VC section 2.2.2.3: never selectively disclosable, nor are their members. */
export const NEVER_DISCLOSABLE: ReadonlySet<string> = new Set([
  'iss',
  'nbf',
  'exp',
  'cnf',
  'vct',
  'vct#integrity',
  'aka_vcts',
  'status',
  'aud',
  '_sd_alg',
]);

/** Top-level claims that the issuer's protocol sets; data about the subject may not bring them along. */
export const PROTOCOL_CLAIMS: ReadonlySet<string> = new Set([...NEVER_DISCLOSABLE, 'iat']);

/** Names that an SD-JWT uses for itself (RFC 9901 section 4.1), and the name that reaches a prototype. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(['_sd', '_sd_alg', '...', '__proto__']);

/** Deepest nesting of a processed credential. */
export const MAX_DEPTH = 32;
