import type { Terms } from '../ports/terms.ts';

/** A process looks at its database each second. */
const ANSWER_MS = 5_000;
const POLL_MS = 250;

/**
 * Asks whether a process that lives has seen everything that it knows of in this database. A process answers only after its own
 * look found nothing missing; on SQLite no other process has the file.
 */
export async function isVouchedFor(
  terms: Terms,
  pause: (milliseconds: number) => Promise<unknown>,
): Promise<boolean> {
  if (!terms.moves) return false;
  const id = await terms.openChallenge();
  try {
    for (let waited = 0; waited < ANSWER_MS; waited += POLL_MS) {
      await pause(POLL_MS);
      if (await terms.isAnswered(id)) return true;
    }
    return false;
  } finally {
    await terms.closeChallenge(id);
  }
}
