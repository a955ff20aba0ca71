import { type CompactJws, matchesKey, parseCompactJws } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { type JsonObject, MAX_UNTRUSTED_PROPERTIES } from '../shared/json.ts';
import { type PublicJwk, parsePublicJwk, thumbprint } from '../shared/jwk.ts';
import { attestedKey, firstKey, KeyAttestationCache, MAX_ATTESTATION_LENGTH } from './key-attestation.ts';

export type ParsedProof = CompactJws & {
  readonly key: PublicJwk;
  /** `key_attestation` of the header, not yet parsed. */
  readonly keyAttestation: string | undefined;
};

const PAST_SECONDS = 300;
const MAX_PROOF_LENGTH = 16_384;
/** The header may contain an attestation, which base64 encodes a second time. */
const LIMITS = {
  length: 2 * MAX_ATTESTATION_LENGTH,
  headerBytes: MAX_ATTESTATION_LENGTH + MAX_PROOF_LENGTH,
  members: MAX_UNTRUSTED_PROPERTIES,
};

const invalidProofError = (message: string) => new Failure('invalid_proof', message);

/**
 * Parses a `jwt` proof (OpenID4VCI 1.0 appendix F.1); the caller verifies its signature with `key`.
 * @throws Failure `invalid_proof`.
 */
export function parseJwtProof(text: string, attestations = new KeyAttestationCache()): ParsedProof {
  const jws = parseCompactJws(text, LIMITS);
  if (jws === undefined) throw invalidProofError('the proof is not a JWT');
  const { header } = jws;
  // OpenID4VCI 1.0 appendix F.1
  if (header['typ'] !== 'openid4vci-proof+jwt') throw invalidProofError('the typ of the proof must be openid4vci-proof+jwt');
  const keyAttestation = keyAttestationOf(header);
  if (keyAttestation === undefined && text.length > MAX_PROOF_LENGTH) throw invalidProofError('the proof is too long');
  const key = keyOf(header, keyAttestation, attestations);
  if (!matchesKey(header, key)) throw invalidProofError('the alg of the proof is not supported or does not fit its key');
  return { ...jws, key, keyAttestation };
}

function keyAttestationOf(header: JsonObject): string | undefined {
  const { key_attestation: value } = header;
  if (value === undefined || typeof value === 'string') return value;
  throw invalidProofError('key_attestation must be a JWT');
}

/**
 * Determines the key of the proof (OpenID4VCI 1.0 appendix F.1). With a key attestation it must be an attested key: `jwk` may be any of
 * them, so N proofs can share one attestation; `kid` refers to one; without both it is the key at index 0 (TS3 1.5 section 2.2.2.2).
 */
function keyOf(header: JsonObject, keyAttestation: string | undefined, attestations: KeyAttestationCache): PublicJwk {
  for (const parameter of ['x5c', 'trust_chain']) {
    if (Object.hasOwn(header, parameter)) throw invalidProofError(`the header ${parameter} is not supported; put the key into jwk`);
  }
  const { jwk, kid } = header;
  const attestation = keyAttestation === undefined ? undefined : attestations.parse(keyAttestation);
  if (kid !== undefined) {
    if (jwk !== undefined || typeof kid !== 'string' || attestation === undefined) {
      throw invalidProofError('put the key into jwk, or name one of key_attestation by kid');
    }
    const key = attestedKey(attestation, kid);
    if (key === undefined) throw invalidProofError('kid names no key of key_attestation');
    return key;
  }
  if (jwk === undefined && attestation !== undefined) return firstKey(attestation);
  const key = parsePublicJwk(jwk);
  if (key === undefined) throw invalidProofError('the jwk of the proof must be a public EC or OKP key');
  if (attestation !== undefined && !attestation.keys.has(thumbprint(key))) {
    throw invalidProofError('the jwk of the proof is not in attested_keys of its key_attestation');
  }
  return key;
}

/** RFC 7519 sections 4.1.4 and 4.1.5: both claims are optional in proofs, and validated if present. */
function assertWithinTimes({ exp, nbf }: JsonObject, now: number): void {
  if (exp !== undefined && !(typeof exp === 'number' && exp > now - CLOCK_TOLERANCE_SECONDS))
    throw invalidProofError('the proof has expired');
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= now + CLOCK_TOLERANCE_SECONDS))
    throw invalidProofError('the proof is not valid yet');
}

/**
 * Validates the signed claims, except the freshness of the nonce.
 * @returns the nonce of the proof.
 * @throws Failure `invalid_proof`.
 */
export function assertJwtProofClaims(
  proof: ParsedProof,
  expected: { readonly audience: string; readonly clientId: string | undefined; readonly now: Date },
): string {
  const { aud, iat, nonce, iss } = proof.payload;
  // OpenID4VCI 1.0 appendix F.1: the Credential Issuer Identifier itself
  if (aud !== expected.audience) throw invalidProofError('aud is not the credential issuer identifier');
  const now = expected.now.getTime() / 1000;
  if (typeof iat !== 'number' || iat < now - PAST_SECONDS || iat > now + CLOCK_TOLERANCE_SECONDS) {
    throw invalidProofError('iat is missing or outside the accepted window; check the clock');
  }
  assertWithinTimes(proof.payload, now);
  // OpenID4VCI 1.0 appendix F.1: the client id. An anonymous token has no client to compare with, and some wallets send a name with it, so
  // any string is accepted.
  const isOther = expected.clientId === undefined ? typeof iss !== 'string' : iss !== expected.clientId;
  if (iss !== undefined && isOther) throw invalidProofError('iss is not the client of this access token');
  if (typeof nonce !== 'string' || nonce === '') throw invalidProofError('nonce is missing; get one from the nonce endpoint');
  return nonce;
}
