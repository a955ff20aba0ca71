import type { Clock } from '../../application/ports/clock.ts';
import type { EventBus } from '../../application/ports/event-bus.ts';
import type { Probe } from '../../application/ports/probe.ts';
import type { Store } from '../../application/ports/store.ts';

/** A list that was not used for longer is ignored. */
const IN_USE_MS = 2 * 86_400_000;
/** One database query serves all checks within this time. */
const REST_MS = 60_000;

/** Reports external trust lists whose new version an operator has to review. */
export function trustListsProbe({ maintenance }: Pick<Store, 'maintenance'>, clock: Clock, eventBus: EventBus): Probe {
  return {
    name: 'trust-lists',
    isPartial: true,
    restMs: REST_MS,
    onChange(onChanged) {
      eventBus.subscribe((wakeUp) => {
        if (wakeUp.type === 'missed' || (wakeUp.type === 'cache' && wakeUp.lists === 'trust-lists')) onChanged();
      });
    },
    async check() {
      const usedSince = new Date(clock.now().getTime() - IN_USE_MS);
      // A database that does not answer is reported by its own probe.
      const heldCount = await maintenance.countHeldTrustLists(usedSince).catch(() => 0);
      if (heldCount > 0) throw new Error(`${heldCount} followed trust lists require an operator; GET /trust/lists lists them`);
    },
  };
}
