import { hash } from 'node:crypto';
import { type CompactJws, matchesKey, parseCompactJws } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { type PublicJwk, parsePublicJwk, thumbprint } from '../shared/jwk.ts';

/** A parsed proof whose signature must still be verified with `key`. */
export type ParsedDpopProof = CompactJws & { readonly key: PublicJwk };

export type VerifiedDpopProof = {
  /** RFC 7638 thumbprint of the key, for `cnf.jkt` (RFC 9449 section 6.1). */
  readonly thumbprint: string;
  /** SHA-256 that identifies this proof, to be stored until `expiresAt`. */
  readonly hash: string;
  readonly expiresAt: Date;
};

const MAX_PROOF_LENGTH = 8192;
const MAX_JTI_LENGTH = 256;
const PAST_SECONDS = 300;

const invalidDpopProofError = (message: string) => new Failure('invalid_dpop_proof', message);

/**
 * Parses a DPoP proof (RFC 9449 section 4.3, checks 1 to 6).
 * @param values every `DPoP` header field of the request as received.
 * @throws Failure `invalid_dpop_proof`.
 */
export function parseDpopProof(values: readonly string[]): ParsedDpopProof {
  const [value] = values;
  // RFC 9449 section 4.3 check 1: exactly one field; a comma joins two.
  if (value === undefined) throw invalidDpopProofError('the DPoP header is missing');
  if (values.length > 1 || value.includes(',')) throw invalidDpopProofError('more than one DPoP header');
  const jws = value.length > MAX_PROOF_LENGTH ? undefined : parseCompactJws(value);
  if (jws === undefined) throw invalidDpopProofError('the DPoP header is not a JWT');
  const { header } = jws;
  // RFC 9449 section 4.3 check 4
  if (header['typ'] !== 'dpop+jwt') throw invalidDpopProofError('the typ of the proof must be dpop+jwt');
  // RFC 9449 section 4.3 checks 5 and 6: a supported asymmetric algorithm and a public key that matches it
  const key = parsePublicJwk(header['jwk']);
  if (key === undefined) throw invalidDpopProofError('the jwk of the proof must be a public EC or OKP key');
  if (!matchesKey(header, key)) throw invalidDpopProofError('the alg of the proof is not supported or does not fit its key');
  return { ...jws, key };
}

/**
 * Validates the signed claims (RFC 9449 section 4.3, checks 8 to 12).
 * @param expected `url` is the external address; `accessToken` only at protected resources.
 * @throws Failure `invalid_dpop_proof`.
 */
export function assertDpopProofClaims(
  proof: ParsedDpopProof,
  expected: { readonly method: string; readonly url: string; readonly now: Date; readonly accessToken?: string },
): VerifiedDpopProof {
  const { jti, htm, htu, iat, ath, exp, nbf } = proof.payload;
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_JTI_LENGTH) throw invalidDpopProofError('jti is missing or too long');
  // RFC 9449 section 4.3 check 8
  if (htm !== expected.method) throw invalidDpopProofError('htm is not the method of this request');
  // RFC 9449 section 4.3 check 9
  if (typeof htu !== 'string' || !isSameAddress(htu, expected.url)) throw invalidDpopProofError('htu is not the address of this request');
  // RFC 9449 section 11.1
  const now = expected.now.getTime() / 1000;
  if (typeof iat !== 'number' || iat < now - PAST_SECONDS || iat > now + CLOCK_TOLERANCE_SECONDS) {
    throw invalidDpopProofError('iat is missing or outside the accepted window; check the clock');
  }
  // RFC 7519 sections 4.1.4 and 4.1.5: both are optional in proofs, and validated if present
  if (exp !== undefined && !(typeof exp === 'number' && exp > now - CLOCK_TOLERANCE_SECONDS))
    throw invalidDpopProofError('the proof has expired');
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= now + CLOCK_TOLERANCE_SECONDS))
    throw invalidDpopProofError('the proof is not valid yet');
  if (expected.accessToken !== undefined) {
    // RFC 9449 section 4.3 check 12
    const digest = hash('sha256', expected.accessToken, 'base64url');
    if (ath !== digest) throw invalidDpopProofError('ath is not the hash of the access token');
  }
  const jkt = thumbprint(proof.key);
  return {
    thumbprint: jkt,
    hash: hash('sha256', `${jkt} ${expected.url} ${jti}`, 'base64url'),
    expiresAt: new Date((iat + PAST_SECONDS + CLOCK_TOLERANCE_SECONDS) * 1000),
  };
}

/** RFC 9449 section 4.3: without query and fragment, after RFC 3986 section 6.2.2 and 6.2.3 normalization. */
function isSameAddress(claimed: string, actual: string): boolean {
  return claimed === actual || normalize(claimed) === normalize(actual);
}

function normalize(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  url.search = '';
  url.hash = '';
  // RFC 3986 section 6.2.2.2: escapes of unreserved characters mean the characters themselves.
  return url.href.replaceAll(/%[0-9A-Fa-f]{2}/g, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : encoded.toUpperCase();
  });
}
