import { setTimeout as pause } from 'node:timers/promises';

/** The time in milliseconds that running requests get to finish after a signal. */
export const GRACE_MS = 10_000;
/** The time in milliseconds after a signal in which an idle connection stays open, so that its next response announces the end. */
export const NOTICE_MS = 500;

type Stopping = {
  /** The service reports from now on that it is not ready. */
  readonly drain: () => void;
  /** The time for which the service then serves as before. */
  readonly drainSeconds: number;
  /** @returns the exit code. */
  readonly stop: () => Promise<number>;
  /** Ends processes that would outlive this one. */
  readonly abandon?: () => void;
};

/**
 * Ends the process on SIGTERM or SIGINT: after the first signal when `stop` is done, after a second signal at once. A load balancer or
 * service manager sends SIGTERM, and needs time to choose another target; SIGINT comes from a terminal, where a user waits.
 */
export function stopOnSignals({ drain, drainSeconds, stop, abandon = () => {} }: Stopping): void {
  let isStopping = false;
  const end = async (signal: NodeJS.Signals): Promise<number> => {
    if (signal === 'SIGTERM' && drainSeconds > 0) {
      drain();
      await pause(drainSeconds * 1000);
    }
    return stop();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (isStopping) {
        abandon();
        process.exit(1);
      }
      isStopping = true;
      end(signal).then(
        (code) => process.exit(code),
        () => process.exit(1),
      );
    });
  }
}

/** A process that npx started checks in this interval whether its parent still runs. */
const PARENT_INTERVAL_MS = 1_000;

/**
 * Stops the process when its parent has ended. npx starts the service below a shell that ends on SIGTERM without passing it on: the
 * service would continue and keep its database and its port.
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
