import type { Log } from '../../application/ports/log.ts';
import type { Store } from '../../application/ports/store.ts';

/** Each process notes its secret in this interval. */
export const SEALING_NOTE_MS = 2_000;

/**
 * Notes repeatedly that this process seals under its secret. `npm run reseal` thereby notices a process that was not restarted with a new
 * first secret, and no process starts without the secret under which it seals.
 * @returns a function that stops the notes.
 */
export function startSealingNotes({ maintenance }: Store, log: Log): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let isFailing = false;
  const note = async () => {
    try {
      await maintenance.keepSealing();
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.error('the secret of this process cannot be recorded', {}, error);
      isFailing = true;
    }
  };
  const timer = setInterval(() => {
    running = running.then(note);
  }, SEALING_NOTE_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
