import { positionOf, type Term } from '../../domain/rewinds/term.ts';
import type { Terms } from '../ports/terms.ts';

/** Time within which every process checks the database. */
const DETECTION_MS = 2_500;

/**
 * Makes all running processes stop issuing and drop their caches, before the history of the database continues: each finds that
 * the newest term lost data. They continue by themselves in the next term.
 * @param newest term in the history that was decided on. A term that an operator began since is not stopped.
 */
export async function stopOtherProcesses(terms: Terms, newest: Term, pause: (milliseconds: number) => Promise<unknown>): Promise<void> {
  await terms.markLost(positionOf(newest));
  // A SQLite file is used by one process only.
  if (terms.supportsPromotion) await pause(DETECTION_MS);
}
