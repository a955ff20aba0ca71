import { Failure } from '../../../domain/shared/failure.ts';

export function assertFound<T extends object>(value: T | null | undefined, resource: string): T {
  if (value === null || value === undefined) throw notFoundError(resource);
  return value;
}

export function notFoundError(resource: string): Failure {
  return new Failure('not_found', `there is no such ${resource}`);
}

/** Returns undefined if the lookup fails with `not_found`. */
export async function undefinedIfNotFound<T>(lookup: Promise<T>): Promise<T | undefined> {
  try {
    return await lookup;
  } catch (error) {
    if (error instanceof Failure && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** @throws Failure `conflict` with this message if a row with the same key exists. */
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
