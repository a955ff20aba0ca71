import { hash, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from '../shared/base64url.ts';

/** RFC 7636 sections 4.1 and 4.2. */
const VERIFIER = /^[A-Za-z0-9\-._~]{43,128}$/;
/** The S256 form of a verifier: 32 bytes in base64url (RFC 7636 section 4.2). */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

export function isChallenge(text: string | undefined): text is string {
  return text !== undefined && CHALLENGE.test(text) && decodeBase64url(text) !== undefined;
}

/** RFC 7636 section 4.6, S256 only: `plain` does not protect against an attacker who reads the request. */
export function verifyPkce(verifier: string | undefined, challenge: string): boolean {
  if (verifier === undefined || !VERIFIER.test(verifier)) return false;
  const digest = hash('sha256', verifier, 'buffer');
  const expected = decodeBase64url(challenge);
  return expected?.length === digest.length && timingSafeEqual(digest, expected);
}
