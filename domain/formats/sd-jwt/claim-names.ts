/** SD-JWT VC section 2.2.2.3: these claims and their properties are never selectively disclosable. */
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

/** Top-level claims that the issuer's protocol sets; subject data must not contain them. */
export const PROTOCOL_CLAIMS: ReadonlySet<string> = new Set([...NEVER_DISCLOSABLE, 'iat']);

/** Names reserved by SD-JWT (RFC 9901 section 4.1), and the name of the prototype. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(['_sd', '_sd_alg', '...', '__proto__']);

/** Nesting limit of a processed credential. */
export const MAX_DEPTH = 32;
