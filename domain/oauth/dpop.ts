import { hash } from 'node:crypto';
import { type CompactJws, fitsKey, parseCompactJws } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { type PublicJwk, parsePublicJwk, thumbprint } from '../shared/jwk.ts';

/** A proof whose form is right and whose signature has yet to be checked with `key`. */
export type OpenedDpopProof = CompactJws & { readonly key: PublicJwk };

export type AcceptedDpopProof = {
  /** RFC 7638 thumbprint of the key, for `cnf.jkt` (RFC 9449 section 6.1). */
  readonly thumbprint: string;
  /** SHA-256 that names this proof, to be remembered until `expiresAt`. */
  readonly hash: string;
  readonly expiresAt: Date;
};

const MAX_PROOF_LENGTH = 8192;
const MAX_JTI_LENGTH = 256;
const PAST_SECONDS = 300;

const refused = (message: string) => new Failure('invalid_dpop_proof', message);

/**
 * Takes a DPoP proof apart (RFC 9449 section 4.3, checks 1 to 6).
 * @param values every `DPoP` header field of the request as it came.
 * @throws Failure `invalid_dpop_proof`.
 */
export function parseDpopProof(values: readonly string[]): OpenedDpopProof {
  const [value] = values;
  // RFC 9449 section 4.3 check 1: exactly one field; a comma joins two.
  if (value === undefined) throw refused('the DPoP header is missing');
  if (values.length > 1 || value.includes(',')) throw refused('more than one DPoP header');
  const jws = value.length > MAX_PROOF_LENGTH ? undefined : parseCompactJws(value);
  if (jws === undefined) throw refused('the DPoP header is not a JWT');
  const { header } = jws;
  // RFC 9449 section 4.3 check 4
  if (header['typ'] !== 'dpop+jwt') throw refused('the typ of the proof must be dpop+jwt');
  // RFC 9449 section 4.3 checks 5 and 6: an asymmetric algorithm we know and a public key that fits it
  const key = parsePublicJwk(header['jwk']);
  if (key === undefined) throw refused('the jwk of the proof must be a public EC or OKP key');
  if (!fitsKey(header, key)) throw refused('the alg of the proof is not supported or does not fit its key');
  return { ...jws, key };
}

/**
 * Judges what the signature covers (RFC 9449 section 4.3, checks 8 to 12).
 * @param expected `url` is the external address; `accessToken` only at protected resources.
 * @throws Failure `invalid_dpop_proof`.
 */
export function assertDpopProofClaims(
  proof: OpenedDpopProof,
  expected: { readonly method: string; readonly url: string; readonly now: Date; readonly accessToken?: string },
): AcceptedDpopProof {
  const { jti, htm, htu, iat, ath, exp, nbf } = proof.payload;
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_JTI_LENGTH) throw refused('jti is missing or too long');
  // RFC 9449 section 4.3 check 8
  if (htm !== expected.method) throw refused('htm is not the method of this request');
  // RFC 9449 section 4.3 check 9
  if (typeof htu !== 'string' || !sameAddress(htu, expected.url)) throw refused('htu is not the address of this request');
  // RFC 9449 section 11.1
  const now = expected.now.getTime() / 1000;
  if (typeof iat !== 'number' || iat < now - PAST_SECONDS || iat > now + CLOCK_TOLERANCE_SECONDS) {
    throw refused('iat is missing or outside the accepted window; check the clock');
  }
  // RFC 7519 sections 4.1.4 and 4.1.5: proofs need neither, and what stands there counts
  if (exp !== undefined && !(typeof exp === 'number' && exp > now - CLOCK_TOLERANCE_SECONDS)) throw refused('the proof has expired');
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= now + CLOCK_TOLERANCE_SECONDS)) throw refused('the proof is not valid yet');
  if (expected.accessToken !== undefined) {
    // RFC 9449 section 4.3 check 12
    const digest = hash('sha256', expected.accessToken, 'base64url');
    if (ath !== digest) throw refused('ath is not the hash of the access token');
  }
  const jkt = thumbprint(proof.key);
  return {
    thumbprint: jkt,
    hash: hash('sha256', `${jkt} ${expected.url} ${jti}`, 'base64url'),
    expiresAt: new Date((iat + PAST_SECONDS + CLOCK_TOLERANCE_SECONDS) * 1000),
  };
}

/** RFC 9449 section 4.3: without query and fragment, after RFC 3986 section 6.2.2 and 6.2.3 normalization. */
function sameAddress(claimed: string, actual: string): boolean {
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
