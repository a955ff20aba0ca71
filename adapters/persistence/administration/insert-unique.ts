import { Failure } from '../../../domain/shared/failure.ts';

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
