import { positionOf, type Term } from '../../domain/rewinds/term.ts';
import type { Terms } from '../ports/terms.ts';

/** Every process looks at the database within this time. */
const NOTICED_MS = 2_500;

/**
 * Makes all running processes stop issuing and forget what they cached, before the history of the database goes on: each finds that
 * the newest term lost something. They go on by themselves in the next term.
 * @param newest term in the history that was decided on. One that an operator began since is not stopped.
 */
export async function stopOtherProcesses(terms: Terms, newest: Term, pause: (milliseconds: number) => Promise<unknown>): Promise<void> {
  await terms.markLost(positionOf(newest));
  // No other process can have a file of SQLite open.
  if (terms.moves) await pause(NOTICED_MS);
}
