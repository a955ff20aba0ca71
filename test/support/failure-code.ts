import { Failure } from '../../domain/shared/failure.ts';

/** What comes of `work`, or the code of the failure that it ends with; anything else that is thrown fails the test. */
export function outcomeOf<T>(work: () => T): T | string {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

/** The code of the failure that `work` ends with, or `taken`. */
export function codeOf(work: () => unknown): string {
  return String(
    outcomeOf(() => {
      work();
      return 'taken';
    }),
  );
}
