import type { Log } from '../../application/ports/log.ts';
import type { Store } from '../../application/ports/store.ts';

/** So often a process says under which secret it seals. */
export const SEALING_NOTE_MS = 2_000;

/**
 * Says again and again that this process seals under its secret: one that was not restarted with a new secret in front is
 * noticed by `npm run reseal`, and nobody starts without the secret that it seals under.
 * @returns what stops that.
 */
export function startSealingNotes({ maintenance }: Store, log: Log): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let isFailing = false;
  const note = async () => {
    try {
      await maintenance.keepSealing();
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.error('it cannot be noted which secret this process seals under', {}, error);
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
