import type { Clock } from '../../application/ports/clock.ts';
import type { Probe } from '../../application/ports/probe.ts';
import type { Store } from '../../application/ports/store.ts';

/** A provider that is away for a moment concerns nobody: its list is to be looked at once a day. */
const TOLERATED_MS = 3_600_000;
/** One question to the database answers all probes of so long. */
const REST_MS = 60_000;

/** Status lists of wallet providers that credentials follow, and that cannot be had. */
export function followedListsProbe({ maintenance }: Pick<Store, 'maintenance'>, clock: Clock): Probe {
  return {
    name: 'wallet-status-lists',
    isPartial: true,
    restMs: REST_MS,
    async check() {
      const since = new Date(clock.now().getTime() - TOLERATED_MS);
      // That the database does not answer is said by its own probe.
      const failing = await maintenance.failingLists(since).catch(() => 0);
      if (failing > 0) throw new Error(`${failing} status lists that credentials follow cannot be had; GET /cache/stats names them`);
    },
  };
}
