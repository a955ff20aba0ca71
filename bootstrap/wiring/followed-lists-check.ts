import type { Clock } from '../../application/ports/clock.ts';
import type { Probe } from '../../application/ports/probe.ts';
import type { Store } from '../../application/ports/store.ts';

/** Short failures of a provider are ignored: its list is fetched once a day. */
const TOLERATED_MS = 3_600_000;
/** One database query serves all checks within this time. */
const REST_MS = 60_000;

/** Reports status lists of wallet providers that credentials follow and that cannot be fetched. */
export function followedListsProbe({ maintenance }: Pick<Store, 'maintenance'>, clock: Clock): Probe {
  return {
    name: 'wallet-status-lists',
    isPartial: true,
    restMs: REST_MS,
    async check() {
      const failingSince = new Date(clock.now().getTime() - TOLERATED_MS);
      // A database that does not answer is reported by its own probe.
      const failing = await maintenance.failingLists(failingSince).catch(() => 0);
      if (failing > 0) throw new Error(`${failing} followed status lists are unavailable; GET /cache/stats lists them`);
    },
  };
}
