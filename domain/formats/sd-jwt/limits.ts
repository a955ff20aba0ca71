import { MAX_STRANGER_MEMBERS } from '../../shared/json.ts';

/** Disclosures of one SD-JWT. */
export const MAX_DISCLOSURES = 1000;

/**
 * Members and entries of the issuer-signed payload: a digest for each disclosure, decoys, and visible claims. They are
 * counted before the signature is verified, because the payload is parsed before.
 */
export const MAX_ISSUER_MEMBERS = 5_000;

/** Members and entries of the value of one disclosure. */
export const MAX_DISCLOSURE_MEMBERS = MAX_STRANGER_MEMBERS;
