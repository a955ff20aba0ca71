import { Failure } from '../../../domain/shared/failure.ts';

/** @throws Failure `not_found` for what is not there. */
export function existing<T extends object>(found: T | null | undefined, what: string): T {
  if (found === null || found === undefined) throw missing(what);
  return found;
}

export function missing(what: string): Failure {
  return new Failure('not_found', `there is no such ${what}`);
}

/** Undefined in place of `not_found`. */
export async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof Failure && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** @throws Failure `conflict` with this message when a row of the same key is there. */
export async function insertUnique(message: string, insert: () => Promise<unknown>): Promise<void> {
  try {
    await insert();
  } catch (error) {
    if (error instanceof Error && error.name === 'UniqueConstraintViolationException') {
      throw new Failure('conflict', message, { cause: error });
    }
    throw error;
  }
}
