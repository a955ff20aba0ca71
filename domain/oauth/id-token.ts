import { createHash, timingSafeEqual } from 'node:crypto';
import type { Json, JsonObject } from '../shared/json.ts';
import { type ForeignAlgorithm, ForeignTokenError, parseAudiences } from './foreign-token.ts';

/** OpenID Connect Core 1.0 section 2 does not define `typ`; some providers write the generic value. */
export const ID_TOKEN_TYPES: readonly (string | undefined)[] = [undefined, 'jwt'];

/** OpenID Connect Core 1.0 section 2 */
const MAX_SUBJECT_LENGTH = 255;

/**
 * Validates the claims specific to ID tokens (OpenID Connect Core 1.0 section 3.1.3.7).
 * @throws ForeignTokenError `authorized_party`, `not_yet_valid`, `nonce`, `access_token_hash`, `subject`.
 */
export function assertIdTokenClaims(
  token: { readonly algorithm: ForeignAlgorithm; readonly claims: JsonObject },
  expected: { readonly clientId: string; readonly nonce: string; readonly accessToken: string | undefined },
): void {
  const { aud, azp, iat, nonce, sub, at_hash } = token.claims;
  // items 4 and 5
  if ((azp !== undefined || parseAudiences(aud).length > 1) && azp !== expected.clientId) throw new ForeignTokenError('authorized_party');
  // section 2: `iat` is required here
  if (typeof iat !== 'number') throw new ForeignTokenError('not_yet_valid');
  // item 11
  if (!isSame(nonce, expected.nonce)) throw new ForeignTokenError('nonce');
  // section 3.1.3.8
  if (at_hash !== undefined && !isHashOf(at_hash, expected.accessToken, token.algorithm)) throw new ForeignTokenError('access_token_hash');
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_SUBJECT_LENGTH) throw new ForeignTokenError('subject');
}

/** Section 3.1.3.6: the left half of a hash, whose function follows from the signature algorithm. */
function isHashOf(hash: Json, accessToken: string | undefined, algorithm: ForeignAlgorithm): boolean {
  if (accessToken === undefined) return false;
  const bits = /256|384|512/.exec(algorithm)?.[0];
  // RFC 8032 section 5.1: Ed25519 hashes with SHA-512.
  const name = algorithm === 'EdDSA' || algorithm === 'Ed25519' ? 'sha512' : `sha${bits}`;
  const digest = createHash(name).update(accessToken, 'ascii').digest();
  return isSame(hash, digest.subarray(0, digest.length / 2).toString('base64url'));
}

/** Compares in constant time, also texts of different lengths. */
function isSame(received: Json | undefined, expected: string): boolean {
  if (typeof received !== 'string') return false;
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(received), digest(expected));
}
