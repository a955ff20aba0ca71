import type { Clock } from '../../application/ports/clock.ts';
import type { Log } from '../../application/ports/log.ts';
import type { Probe } from '../../application/ports/probe.ts';
import type { Store } from '../../application/ports/store.ts';

/** Wallets are allowed as much. */
const TOLERATED_MS = 60_000;
const MINUTE_MS = 60_000;

/**
 * What is wrong where a process and its database do not agree on the time: tokens, certificates and lists are judged by
 * the clock of the process, what is over and who works by that of the database.
 * @returns undefined where they agree within a minute.
 */
function clockFault(database: Date, machine: Date, isCatchingUp: boolean): string | undefined {
  const seconds = Math.round((machine.getTime() - database.getTime()) / 1000);
  if (Math.abs(seconds) * 1000 <= TOLERATED_MS) return undefined;
  // After a rest of the service nothing is wrong: nobody has to do anything.
  if (seconds > 0 && isCatchingUp) return undefined;
  const apart = `${Math.abs(seconds)} seconds ${seconds > 0 ? 'ahead of' : 'behind'}`;
  return `the clock of this machine is ${apart} that of the database; set both by a time server`;
}

/** The service goes on with a wrong clock, and says so in `GET /health`. */
export function clockProbe(store: Store, clock: Clock): Probe {
  return {
    name: 'clock',
    isPartial: true,
    async check() {
      // That the database does not answer is said by its own probe.
      const { maintenance } = store;
      const database = await maintenance.time().catch(() => undefined);
      const fault = database && clockFault(database, clock.now(), await maintenance.isCatchingUp());
      if (fault !== undefined) throw new Error(fault);
    },
  };
}

/** @returns what is told the time of the database now and then, and warns at most once a minute. */
export function clockWarning({ maintenance }: Store, clock: Clock, log: Log): (database: Date) => Promise<void> {
  let told = -MINUTE_MS;
  return async (database) => {
    const fault = clockFault(database, clock.now(), await maintenance.isCatchingUp());
    if (fault === undefined || performance.now() - told < MINUTE_MS) return;
    told = performance.now();
    log.warn(fault);
  };
}
