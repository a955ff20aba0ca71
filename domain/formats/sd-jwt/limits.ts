import { MAX_UNTRUSTED_PROPERTIES } from '../../shared/json.ts';

/** Limit per SD-JWT. */
export const MAX_DISCLOSURES = 1000;

/**
 * Limit of properties and entries of the issuer-signed payload: a digest for each disclosure, decoys, and visible claims. The payload is
 * parsed, and thus counted, before the signature is verified.
 */
export const MAX_ISSUER_MEMBERS = 5_000;

/** Limit of properties and entries of a disclosed value. */
export const MAX_DISCLOSURE_MEMBERS = MAX_UNTRUSTED_PROPERTIES;
