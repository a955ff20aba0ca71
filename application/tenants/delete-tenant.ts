import type { TenantId } from '../../domain/shared/ids.ts';
import type { Caller } from '../caller.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Log } from '../ports/log.ts';
import type { Store } from '../ports/store.ts';

type Ports = {
  readonly store: Store;
  readonly eventBus: EventBus;
  readonly log: Log;
};

/** Rows that one portion removes. */
const PORTION = 500;
/** Portions that the caller waits for; the rest is left to the chore. */
const PORTIONS = 10;

/** Removes a tenant with everything that is its own. Its tokens end at once, and nothing of it is served any more. */
export class DeleteTenant {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: Caller, id: TenantId): Promise<void> {
    const { store, eventBus } = this.#ports;
    await store.forService(({ tenants }) => tenants.remove(id), { by: caller });
    eventBus.publish({ type: 'tenant', tenantId: id });
    await this.#removeSome(id);
  }

  /** The tenant is gone already, so the caller is not told when this fails. */
  async #removeSome(tenant: TenantId): Promise<void> {
    const { store, log } = this.#ports;
    const { chores } = store;
    try {
      const now = await chores.time();
      for (let portion = 0; portion < PORTIONS; portion++) {
        if ((await chores.removeRemains(now, PORTION)) < PORTION) return;
      }
    } catch (error) {
      log.error('the remains of a tenant are left to the chore', { tenant }, error);
    }
  }
}
