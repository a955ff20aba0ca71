/** Milliseconds that running requests get to finish after a signal. */
export const GRACE_MS = 10_000;
/** Milliseconds after a signal in which an idle connection is left open, so that its next answer says that it ends. */
export const NOTICE_MS = 500;

/**
 * Ends the process on SIGTERM or SIGINT: on the first when `stop` is done, on a second at once.
 * @param stop answers with the exit code.
 * @param abandon ends what would outlive this process.
 */
export function stopOnSignals(stop: () => Promise<number>, abandon: () => void = () => {}): void {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) {
        abandon();
        process.exit(1);
      }
      stopping = true;
      stop().then(
        (code) => process.exit(code),
        () => process.exit(1),
      );
    });
  }
}
