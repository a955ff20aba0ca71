import { setTimeout as pause } from 'node:timers/promises';

/** Milliseconds that running requests get to finish after a signal. */
export const GRACE_MS = 10_000;
/** Milliseconds after a signal in which an idle connection is left open, so that its next answer says that it ends. */
export const NOTICE_MS = 500;

type Stopping = {
  /** Says from now on that the service is not ready. */
  readonly drain: () => void;
  /** How long it then serves as before. */
  readonly drainSeconds: number;
  /** Answers with the exit code. */
  readonly stop: () => Promise<number>;
  /** Ends what would outlive this process. */
  readonly abandon?: () => void;
};

/**
 * Ends the process on SIGTERM or SIGINT: on the first when `stop` is done, on a second at once. Who shares out requests sends
 * SIGTERM, and has time to look elsewhere first; SIGINT comes from a terminal, where somebody waits.
 */
export function stopOnSignals({ drain, drainSeconds, stop, abandon = () => {} }: Stopping): void {
  let stopping = false;
  const end = async (signal: NodeJS.Signals): Promise<number> => {
    if (signal === 'SIGTERM' && drainSeconds > 0) {
      drain();
      await pause(drainSeconds * 1000);
    }
    return stop();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) {
        abandon();
        process.exit(1);
      }
      stopping = true;
      end(signal).then(
        (code) => process.exit(code),
        () => process.exit(1),
      );
    });
  }
}
