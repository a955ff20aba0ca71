import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import { isChallenge, verifies } from '../../../domain/oauth/pkce.ts';
import { makeRefreshToken, readRefreshToken } from '../../../domain/oauth/refresh-token.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** 32 bytes leave two bits of the 43rd character unused: these texts decode to the same bytes leniently. */
function otherSpellings(text: string): string[] {
  const last = ALPHABET.indexOf(text.at(-1) ?? '');
  return [1, 2, 3].map((bits) => text.slice(0, -1) + ALPHABET[last | bits]);
}

describe('a value in base64url has one spelling', () => {
  it('as a refresh token', () => {
    const keys = [createSecretKey(Buffer.alloc(32, 7))];
    const token = { grantId: 'a-grant-of-sixteen-or-more', generation: 3 };
    const text = makeRefreshToken(keys[0] as (typeof keys)[0], 'tenant', token);
    expect(readRefreshToken(keys, 'tenant', text)).to.deep.equal(token);
    for (const other of otherSpellings(text))
      expect(readRefreshToken(keys, 'tenant', other)).to.equal(undefined);
  });

  it('as a code challenge', () => {
    // RFC 7636 appendix B
    const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
    const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
    expect([isChallenge(challenge), verifies(verifier, challenge)]).to.deep.equal([true, true]);
    for (const other of otherSpellings(challenge)) {
      expect([isChallenge(other), verifies(verifier, other)]).to.deep.equal([false, false]);
    }
  });
});
