import { DerError } from '../../domain/formats/der/reader.ts';
import { Refusal } from '../../domain/shared/refusal.ts';

export function unavailable(reason: string): Refusal {
  return new Refusal('revocation_unavailable', reason);
}

/** The message of a refusal without its reason, for a combined message. */
export function detailOf({ message, reason }: Refusal): string {
  return message.slice(`${reason}: `.length);
}

/**
 * @param documentName name of the document for the report: `the list`, `the answer`.
 * @throws Refusal `revocation_unavailable` for a malformed document.
 */
export function parseDer<T>(documentName: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw unavailable(`${documentName} cannot be used: ${error.message}`);
  }
}
