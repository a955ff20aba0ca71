import { expect } from 'chai';

// biome-ignore lint/suspicious/noExplicitAny: results of any shape
type Result = Record<string, any>;

const HASH = /^[\w-]{43}$/;

/** What was presented, without who signed it: what has values names its issuer, and nothing else does. */
export function withoutIssuers(credentials: unknown): Result[] {
  return (credentials as Result[]).map(({ issuer, ...result }) => {
    expect(issuer !== undefined, 'an issuer beside values alone').to.equal(result['values'] !== undefined);
    for (const one of [issuer ?? []].flat()) {
      expect(one.subject).to.be.a('string').and.not.equal('');
      expect(
        [one.fingerprint, one.anchor].every((text) => HASH.test(text)),
        JSON.stringify(one),
      ).to.equal(true);
    }
    if (Array.isArray(issuer)) expect(issuer, 'one for each').to.have.length(result['values'].length);
    return result;
  });
}
