import { expect } from 'chai';
import { Failure } from '../../domain/shared/failure.ts';

/** The result of `work`, or the code of its Failure; other errors are rethrown. */
export function resultOrFailureCode<T>(work: () => T): T | string {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

/** The code of the Failure of `work`, or `accepted` when it succeeds. */
export function failureCode(work: () => unknown): string {
  return String(
    resultOrFailureCode(() => {
      work();
      return 'accepted';
    }),
  );
}

// biome-ignore lint/suspicious/noExplicitAny: results of any shape
type Result = Record<string, any>;

const HASH = /^[\w-]{43}$/;

/** The presented credentials without their issuers. Only a credential with values must have an issuer. */
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
