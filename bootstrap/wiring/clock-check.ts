import type { Clock } from '../../application/ports/clock.ts';
import type { Log } from '../../application/ports/log.ts';
import type { Probe } from '../../application/ports/probe.ts';
import type { Store } from '../../application/ports/store.ts';

/** Wallets get the same tolerance. */
const TOLERATED_MS = 60_000;
const MINUTE_MS = 60_000;

/**
 * Describes the difference between the clock of a process and that of its database. The process clock judges tokens, certificates and
 * lists; the database clock decides expiry and leases.
 * @returns undefined when they differ by at most a minute.
 */
function clockFault(database: Date, machine: Date, isCatchingUp: boolean): string | undefined {
  const seconds = Math.round((machine.getTime() - database.getTime()) / 1000);
  if (Math.abs(seconds) * 1000 <= TOLERATED_MS) return undefined;
  // After a pause of the service this is no fault, and no action is needed.
  if (seconds > 0 && isCatchingUp) return undefined;
  const difference = `${Math.abs(seconds)} seconds ${seconds > 0 ? 'ahead of' : 'behind'}`;
  return `the clock of this machine is ${difference} that of the database; synchronize both by NTP`;
}

/** The service continues with a wrong clock, and `GET /health` reports it. */
export function clockProbe(store: Store, clock: Clock): Probe {
  return {
    name: 'clock',
    isPartial: true,
    async check() {
      // A database that does not answer is reported by its own probe.
      const { maintenance } = store;
      const database = await maintenance.time().catch(() => undefined);
      const fault = database && clockFault(database, clock.now(), await maintenance.isCatchingUp());
      if (fault !== undefined) throw new Error(fault);
    },
  };
}

/** @returns a function that receives the time of the database, and warns at most once a minute. */
export function clockWarning({ maintenance }: Store, clock: Clock, log: Log): (database: Date) => Promise<void> {
  let warnedAt = -MINUTE_MS;
  return async (database) => {
    const fault = clockFault(database, clock.now(), await maintenance.isCatchingUp());
    if (fault === undefined || performance.now() - warnedAt < MINUTE_MS) return;
    warnedAt = performance.now();
    log.warn(fault);
  };
}
