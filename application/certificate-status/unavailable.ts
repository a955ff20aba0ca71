import { DerError } from '../../domain/formats/der/reader.ts';
import { Refusal } from '../../domain/shared/refusal.ts';

/** Nothing that counts can be had of one who says what was revoked. */
export function unavailable(why: string): Refusal {
  return new Refusal('revocation_unavailable', why);
}

/** The message of a refusal without its reason, for a list of several. */
export function detailOf({ message, reason }: Refusal): string {
  return message.slice(`${reason}: `.length);
}

/**
 * @param what is read, for the report: `the list`, `the answer`.
 * @throws Refusal `revocation_unavailable` for what does not have its form.
 */
export function parseDer<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw unavailable(`${what} cannot be used: ${error.message}`);
  }
}
