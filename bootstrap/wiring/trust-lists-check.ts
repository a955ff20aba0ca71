import type { Clock } from '../../application/ports/clock.ts';
import type { EventBus } from '../../application/ports/event-bus.ts';
import type { Probe } from '../../application/ports/probe.ts';
import type { Store } from '../../application/ports/store.ts';

/** A list that nobody asked for so long concerns nobody. */
const IN_USE_MS = 2 * 86_400_000;
/** One question to the database answers all probes of so long. */
const REST_MS = 60_000;

/** Trust lists of others of which something came that somebody has to look at. */
export function trustListsProbe({ maintenance }: Pick<Store, 'maintenance'>, clock: Clock, eventBus: EventBus): Probe {
  return {
    name: 'trust-lists',
    isPartial: true,
    restMs: REST_MS,
    onChange(changed) {
      eventBus.subscribe((wakeUp) => {
        if (wakeUp.type === 'missed' || (wakeUp.type === 'cache' && wakeUp.lists === 'trust-lists')) changed();
      });
    },
    async check() {
      const since = new Date(clock.now().getTime() - IN_USE_MS);
      // That the database does not answer is said by its own probe.
      const held = await maintenance.heldTrustLists(since).catch(() => 0);
      if (held > 0) throw new Error(`${held} trust lists of others need somebody to look at them; GET /trust/lists names them`);
    },
  };
}
