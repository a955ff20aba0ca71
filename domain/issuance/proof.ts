import { type CompactJws, fitsKey, parseCompactJws } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { type JsonObject, MAX_STRANGER_MEMBERS } from '../shared/json.ts';
import { type PublicJwk, parsePublicJwk, thumbprint } from '../shared/jwk.ts';
import { attestedKey, firstKey, MAX_ATTESTATION_LENGTH, OpenedKeyAttestations } from './key-attestation.ts';

export type OpenedProof = CompactJws & {
  readonly key: PublicJwk;
  /** What the header says about the key, unread. */
  readonly keyAttestation: string | undefined;
};

const PAST_SECONDS = 300;
const MAX_PROOF_LENGTH = 16_384;
/** With an attestation, which stands in the header once more in base64. */
const LIMITS = {
  length: 2 * MAX_ATTESTATION_LENGTH,
  headerBytes: MAX_ATTESTATION_LENGTH + MAX_PROOF_LENGTH,
  members: MAX_STRANGER_MEMBERS,
};

const refused = (message: string) => new Failure('invalid_proof', message);

/**
 * Takes a `jwt` proof apart (OpenID4VCI 1.0 appendix F.1); its signature is checked with `key` afterwards.
 * @throws Failure `invalid_proof`.
 */
export function parseJwtProof(text: string, attestations = new OpenedKeyAttestations()): OpenedProof {
  const jws = parseCompactJws(text, LIMITS);
  if (jws === undefined) throw refused('the proof is not a JWT');
  const { header } = jws;
  // OpenID4VCI 1.0 appendix F.1
  if (header['typ'] !== 'openid4vci-proof+jwt') throw refused('the typ of the proof must be openid4vci-proof+jwt');
  const keyAttestation = keyAttestationOf(header);
  if (keyAttestation === undefined && text.length > MAX_PROOF_LENGTH) throw refused('the proof is too long');
  const key = keyOf(header, keyAttestation, attestations);
  if (!fitsKey(header, key)) throw refused('the alg of the proof is not supported or does not fit its key');
  return { ...jws, key, keyAttestation };
}

function keyAttestationOf(header: JsonObject): string | undefined {
  const { key_attestation: value } = header;
  if (value === undefined || typeof value === 'string') return value;
  throw refused('key_attestation must be a JWT');
}

/**
 * Determines the key that signed the proof (OpenID4VCI 1.0 appendix F.1). With a key attestation it has to be an attested
 * key: `jwk` may be any of them, so N proofs with a `jwk` each can share one attestation, `kid` refers to one, and without
 * both it is the key at index 0 (TS3 1.5 section 2.2.2.2).
 */
function keyOf(header: JsonObject, keyAttestation: string | undefined, attestations: OpenedKeyAttestations): PublicJwk {
  for (const other of ['x5c', 'trust_chain']) {
    if (Object.hasOwn(header, other)) throw refused(`the header ${other} is not supported; put the key into jwk`);
  }
  const { jwk, kid } = header;
  const attestation = keyAttestation === undefined ? undefined : attestations.open(keyAttestation);
  if (kid !== undefined) {
    if (jwk !== undefined || typeof kid !== 'string' || attestation === undefined) {
      throw refused('put the key into jwk, or name one of key_attestation by kid');
    }
    const key = attestedKey(attestation, kid);
    if (key === undefined) throw refused('kid names no key of key_attestation');
    return key;
  }
  if (jwk === undefined && attestation !== undefined) return firstKey(attestation);
  const key = parsePublicJwk(jwk);
  if (key === undefined) throw refused('the jwk of the proof must be a public EC or OKP key');
  if (attestation !== undefined && !attestation.keys.has(thumbprint(key))) {
    throw refused('the jwk of the proof is not in attested_keys of its key_attestation');
  }
  return key;
}

/** RFC 7519 sections 4.1.4 and 4.1.5: proofs need neither, and what stands there counts. */
function assertWithinTimes({ exp, nbf }: JsonObject, now: number): void {
  if (exp !== undefined && !(typeof exp === 'number' && exp > now - CLOCK_TOLERANCE_SECONDS)) throw refused('the proof has expired');
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= now + CLOCK_TOLERANCE_SECONDS)) throw refused('the proof is not valid yet');
}

/**
 * Judges what the signature covers, except whether the nonce is fresh.
 * @returns the nonce that the proof carries.
 * @throws Failure `invalid_proof`.
 */
export function assertJwtProofClaims(
  proof: OpenedProof,
  expected: { readonly audience: string; readonly clientId: string | undefined; readonly now: Date },
): string {
  const { aud, iat, nonce, iss } = proof.payload;
  // OpenID4VCI 1.0 appendix F.1: the Credential Issuer Identifier itself
  if (aud !== expected.audience) throw refused('aud is not the credential issuer identifier');
  const now = expected.now.getTime() / 1000;
  if (typeof iat !== 'number' || iat < now - PAST_SECONDS || iat > now + CLOCK_TOLERANCE_SECONDS) {
    throw refused('iat is missing or outside the accepted window; check the clock');
  }
  assertWithinTimes(proof.payload, now);
  // OpenID4VCI 1.0 appendix F.1: the client id. A token of nobody is used by whoever has its key, so that there is no client
  // whose name this could be: wallets that call themselves something there are in use.
  const isOther = expected.clientId === undefined ? typeof iss !== 'string' : iss !== expected.clientId;
  if (iss !== undefined && isOther) throw refused('iss is not the client of this access token');
  if (typeof nonce !== 'string' || nonce === '') throw refused('nonce is missing; get one from the nonce endpoint');
  return nonce;
}
