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

/** How often a process that npx started looks whether its parent is still there. */
const PARENT_INTERVAL_MS = 1_000;

/**
 * Ends the process in order when its parent has ended. npx starts the service below a shell, which ends on SIGTERM without passing it on:
 * the service would go on and keep its database and its port.
 * @param parentOf the process id of the parent; it changes when the parent ends.
 */
export function stopWithParent(environment: NodeJS.ProcessEnv, parentOf = () => process.ppid): void {
  if (environment['npm_command'] !== 'exec' || process.platform === 'win32') return;
  const parent = parentOf();
  const timer = setInterval(() => {
    if (parentOf() === parent) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, PARENT_INTERVAL_MS);
  timer.unref();
}
