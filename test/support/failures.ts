import { expect } from 'chai';
import { Failure } from '../../domain/shared/failure.ts';

/** What comes of `work`, or the code of the failure that it ends with; anything else that is thrown fails the test. */
export function resultOrFailureCode<T>(work: () => T): T | string {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

/** The code of the failure that `work` ends with, or `taken`. */
export function failureCode(work: () => unknown): string {
  return String(
    resultOrFailureCode(() => {
      work();
      return 'taken';
    }),
  );
}

// biome-ignore lint/suspicious/noExplicitAny: results of any shape
type Result = Record<string, any>;

const HASH = /^[\w-]{43}$/;

/** What was presented, without who signed it: what has values names its issuer, and nothing else does. */
export function withoutIssuers(credentials: unknown): Result[] {
  return (credentials as Result[]).map(({ issuer, ...result }) => {
    expect(issuer !== undefined, 'an issuer beside values alone').to.equal(result['values'] !== undefined);
    for (const issuerPart of [issuer ?? []].flat()) {
      expect(issuerPart.subject).to.be.a('string').and.not.equal('');
      expect(
        [issuerPart.fingerprint, issuerPart.anchor].every((text) => HASH.test(text)),
        JSON.stringify(issuerPart),
      ).to.equal(true);
    }
    if (Array.isArray(issuer)) expect(issuer, 'one for each').to.have.length(result['values'].length);
    return result;
  });
}
